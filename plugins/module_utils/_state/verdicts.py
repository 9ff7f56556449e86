# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of readiness predicates."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Verdict:
    """ready: nothing more to wait for. failed: the object will not become ready without a change, so waiting is useless."""

    ready: bool
    failed: bool = False
    reason: str = ""


READY = Verdict(True)


def waiting(reason: str) -> Verdict:
    return Verdict(False, False, reason)


def broken(reason: str) -> Verdict:
    return Verdict(False, True, reason)


def condition(obj: c.Mapping[str, t.Any], kind: str) -> c.Mapping[str, t.Any]:
    """One of status.conditions by its type, {} if there is none."""
    for entry in (obj.get("status") or {}).get("conditions") or ():
        if isinstance(entry, dict) and entry.get("type") == kind:
            return entry
    return {}


def message(entry: c.Mapping[str, t.Any], default: str, longest: int = 300) -> str:
    """Reason and message of a condition in one line. longest: characters."""
    text = ": ".join(str(part) for part in (entry.get("reason"), entry.get("message")) if part)
    return " ".join(text.split())[:longest] or default


def number(obj: c.Mapping[str, t.Any], *path: str, default: int = 0) -> int:
    """A whole number in an object; a missing one counts as the default."""
    value: t.Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def observed(obj: c.Mapping[str, t.Any]) -> bool:
    """Whether the controller has observed the latest spec."""
    return number(obj, "status", "observedGeneration") >= number(obj, "metadata", "generation")
