# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of pytest: which tests need most processor time, with all that they start, daemons and containers too.

With several jobs on two cores a test's duration is mostly that of others. Its processor time is not, and what it costs a run is just that.
Counted are the processes below the parent of pytest's: in a job that is reaper.py, or the first process of its namespace (isolated), and orphans
become its children. What a daemon that several tests share does counts toward the test that runs.
"""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import typing as t

import pytest

#: Tests that are listed, and the processor time in seconds from which on they are.
LISTED, LEAST = 40, 3.0


def processes(folder: pathlib.Path = pathlib.Path("/proc")) -> dict[int, tuple[int, int]]:
    """Parent and clock ticks of each process, by its ID. Ticks include those of children that it has collected (proc(5), stat)."""
    found = {}
    for path in folder.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        found[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    return found


def below(root: int, found: c.Mapping[int, tuple[int, int]]) -> int:
    """Clock ticks of a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _ticks) in found.items():
        children.setdefault(parent, []).append(pid)
    total, left = 0, [root]
    while left:
        pid = left.pop()
        total += found[pid][1] if pid in found else 0
        left += children.get(pid, [])
    return total


def seconds() -> float:
    return below(os.getppid(), processes()) / os.sysconf("SC_CLK_TCK")


class Expensive:
    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> t.Generator[None, object, object]:
        before = seconds()
        try:
            return (yield)
        finally:
            self.spent[item.nodeid] = seconds() - before

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        most = sorted(self.spent.items(), key=lambda one: -one[1])[:LISTED]
        terminalreporter.section(f"most processor time (of {sum(self.spent.values()):.0f} s)")
        for name, spent in most:
            if spent >= LEAST:
                terminalreporter.write_line(f"{spent:7.1f} s  {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Expensive())
