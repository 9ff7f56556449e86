# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes that a run of `site` in check mode predicted, and those of a real run, as data that can be compared."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

Obj = dict[str, t.Any]
Row = tuple[str, str, str, str]

#: Fields that differ with each write of an object, also with a dry run.
_OF_ONE_WRITE = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"})


def actions(run: Run) -> dict[str, list[Row]]:
    """Action, kind, namespace and name of each object that was, or would be, changed, by set."""
    return {
        f"set {position}": sorted(
            (one["action"], one["kind"], one["namespace"], one["name"]) for one in result["objects"]
        )
        for position, result in enumerate(run.results("manifest_set"))
    }


def marks(run: Run) -> dict[str, dict[str, list[str]]]:
    """Nodes that were, or would be, quarantined, released or switched, by gate."""
    return {
        one["gate"]: {kind: one[kind] for kind in ("quarantined", "released", "switched")}
        for one in run.results("node_gate")
    }


def shown(run: Run) -> dict[tuple[str, str, str], Obj]:
    """Objects after a run with --diff, or as they would be, by kind, namespace and name."""
    after = [
        yaml.safe_load(entry["after"])
        for result in run.results("manifest_set")
        for entry in result["diff"]
        if entry["after"]
    ]
    return {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in after}


def holds(whole: t.Any, part: t.Any) -> bool:
    """Whether the rendered part is contained in what the server would store, which adds defaults and labels of the set."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and holds(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(holds, whole, part))
    return bool(whole == part)


def unmarked(planned: Run, done: Run, covered: c.Mapping[str, c.Sequence[str]]) -> list[str]:
    """Differences between prediction and run that no line `unknown:` has announced.

    covered: regular expressions of such lines, with those of the differences that they announce, in which {0} is the first group of the line.
    """
    lines = [line.partition("unknown: ")[2] for line in planned.stdout.splitlines() if "unknown: " in line]
    announced = [
        pattern.format(*map(re.escape, match.groups()))
        for line in lines
        for mark, patterns in covered.items()
        if (match := re.match(mark, line))
        for pattern in patterns
    ]
    return [one for one in differences(planned, done) if not any(re.fullmatch(pattern, one) for pattern in announced)]


def differences(planned: Run, done: Run) -> list[str]:
    """Differences between prediction and run, one line each: objects, their contents if both are shown, changes of nodes."""
    predicted, real = _rows(planned), _rows(done)
    contents = {key: _lasting(one) for key, one in shown(done).items()}
    other = [key for key, one in shown(planned).items() if key in contents and not holds(contents[key], _lasting(one))]
    return [
        *(f"done: {one}" for one in sorted(real - predicted)),
        *(f"not done: {one}" for one in sorted(predicted - real)),
        *(f"contents: {' '.join(key)}" for key in sorted(other)),
    ]


def _rows(run: Run) -> set[str]:
    objects = {f"{task}: {' '.join(row)}" for task, rows in actions(run).items() for row in rows}
    return objects | {
        f"gate {gate}: {kind} {node}"
        for gate, kinds in marks(run).items()
        for kind, nodes in kinds.items()
        for node in nodes
    }


def _lasting(one: Obj) -> Obj:
    return one | {"metadata": {key: value for key, value in one["metadata"].items() if key not in _OF_ONE_WRITE}}
