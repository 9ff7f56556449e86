# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions on a program's output for its run to count as a success. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import expressions


@dataclasses.dataclass(frozen=True)
class Checks:
    """patterns: regular expressions that must match somewhere in the log; forbidden: those that must not; queries: JMESPath that must yield something true."""

    patterns: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    def validate(self, where: str) -> None:
        """Raises ManyFaults with every invalid expression."""
        faults = []
        for pattern in (*self.patterns, *self.forbidden):
            try:
                re.compile(pattern)
            except re.error as error:
                faults.append(
                    Fault(
                        f"{pattern!r} is not a regular expression",
                        where,
                        str(error),
                        "correct it, in the syntax of Python's module re",
                    )
                )
        for query in self.queries:
            if fault := expressions.fault_of(query):
                faults.append(
                    Fault(
                        f"{query!r} is not a JMESPath expression",
                        where,
                        fault,
                        "correct it, see https://jmespath.org/specification.html",
                    )
                )
        if faults:
            raise ManyFaults(faults)


def observations(log: str, node: str, exit_code: int | None) -> dict[str, t.Any]:
    """The data that queries are evaluated on. json: each line of the log that is a JSON object or array, in order."""
    lines = log.splitlines()
    return {
        "log": log,
        "lines": lines,
        "json": [value for value in map(_json, lines) if value is not None],
        "node": node,
        "exit_code": exit_code,
    }


def judge(found: c.Mapping[str, t.Any], checks: Checks) -> list[str]:
    """Why the run is not a success, in order; empty if it is."""
    log = str(found["log"])
    reasons = [
        f"its log has no match for {pattern!r}"
        for pattern in checks.patterns
        if not re.search(pattern, log, re.MULTILINE)
    ]
    for pattern in checks.forbidden:
        if match := re.search(pattern, log, re.MULTILINE):
            reasons.append(f"its log has {match.group(0)[:200]!r}, which matches {pattern!r}")
    return reasons + [reason for query in checks.queries if (reason := _refused(query, found))]


def captured(log: str, checks: Checks) -> dict[str, str]:
    """Named groups of the patterns, by name, of each pattern's first match."""
    found: dict[str, str] = {}
    for pattern in checks.patterns:
        match = re.search(pattern, log, re.MULTILINE)
        found |= {name: value for name, value in match.groupdict().items() if value is not None} if match else {}
    return found


def _refused(query: str, found: c.Mapping[str, t.Any]) -> str:
    value, fault = expressions.evaluate(query, dict(found))
    return fault or ("" if value else f"{query} is {value!r:.80}")


def _json(line: str) -> t.Any:
    if not line.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None
