# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that an action shows to the user while it runs."""

from __future__ import annotations

import collections.abc as c
import re
import typing as t

from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.printable import printable

display = Display()
#: "feature discovery by hwaccel (…)" and "pool training: driver by hwaccel (…)".
_PART, _POOL = (
    re.compile(r"(?P<who>[^:]+?)(?P<what> by hwaccel \(.*\))"),
    re.compile(r"pool (?P<who>\S+)(?P<what>: .*)"),
)


def show(lines: c.Iterable[str], task: t.Any, variables: c.Mapping[str, t.Any]) -> list[str]:
    """Shows lines under the name of the host, unless the task has no_log. Returns them as shown."""
    shown = [printable(line) for line in lines]
    if shown and not task.no_log:
        # Lines of a task with run_once do not belong to a host.
        whose = [] if task.run_once else [f"{variables.get('inventory_hostname', 'localhost')}{_named(task)}:"]
        # All lines are written at once, because otherwise lines of hosts that run in parallel would mix.
        display.display("\n".join([*whose, *shown]))
    return shown


def _named(task: t.Any) -> str:
    """The name of the task, where its lines come before its headline.

    With strategies by which hosts do not wait for each other, the default callback shows the headline with the result (ansible-core 2.16 to 2.21,
    plugins/callback/default.py, _task_start).
    """
    strategy = str(task.get_play().strategy).rpartition(".")[2]
    return f", {task.get_name()}" if strategy in ("free", "host_pinned") else ""


def grouped(lines: c.Iterable[str]) -> list[str]:
    """Decisions that are the same for several parts or pools in one line, which takes the place of the first."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in dict.fromkeys(lines):
        pool, part = _POOL.fullmatch(line), _PART.fullmatch(line)
        match = pool or part
        found.setdefault(("pool" if pool else "", match["what"] if match else line), []).append(
            match["who"] if match else ""
        )
    return [
        f"{kind}{'s' if kind and len(who) > 1 else ''}{' ' if kind else ''}{', '.join(who)}{what}"
        for (kind, what), who in found.items()
    ]
