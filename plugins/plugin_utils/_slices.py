# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long task as a sequence of short module runs: combines their results. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

#: Options and results that are only used between the action plugin and the module.
INTERNAL = ("wait_slice", "wait_resume", "wait_task", "pending", "progress")
_JOINED = ("warnings", "deprecations", "diff")


class Slices:
    """Collects the results of the runs of one task."""

    def __init__(self) -> None:
        self._changed = False
        self._joined: dict[str, list[t.Any]] = {name: [] for name in _JOINED}
        self._last: dict[str, t.Any] = {}
        self._shown: list[str] = []

    def add(self, result: dict[str, t.Any]) -> None:
        self._shown += self.progress
        self._last = dict(result)
        self._changed = self._changed or bool(result.get("changed"))
        for name, known in self._joined.items():
            value = result.get(name)
            entries = value if isinstance(value, list) else [value] if value else []
            # Every run repeats its warnings.
            known += [entry for entry in entries if entry not in known]

    @property
    def pending(self) -> dict[str, t.Any] | None:
        """State for the next run; None if the task is done."""
        if self._last.get("failed") or self._last.get("unreachable"):
            return None
        pending = self._last.get("pending")
        return pending if isinstance(pending, dict) else None

    @property
    def is_news(self) -> bool:
        """Whether the task has changed something or failed, or is not done after its first run."""
        return bool(self._changed or self._shown or self._last.get("failed") or self.pending is not None)

    @property
    def progress(self) -> list[str]:
        """Lines of the last run. Its last line is repeated, which shows that the task is still running, but not at its end."""
        lines = [" ".join(str(line).split()) for line in self._last.get("progress") or []]
        new = [line for line in lines[:-1] if line not in self._shown]
        return new if self.pending is None and lines[-1:] == self._shown[-1:] else [*new, *lines[-1:]]

    def result(self) -> dict[str, t.Any]:
        """The last run's result, with changed, diff and warnings of all runs."""
        result = {name: value for name, value in self._last.items() if name not in ("pending", "progress")}
        result["changed"] = self._changed
        for name, entries in self._joined.items():
            if entries:
                result[name] = entries
        invocation = result.get("invocation")
        if isinstance(invocation, dict) and isinstance(invocation.get("module_args"), dict):
            result["invocation"] = {"module_args": without_internal(invocation["module_args"])}
        return result


def without_internal(args: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {name: value for name, value in args.items() if name not in INTERNAL}
