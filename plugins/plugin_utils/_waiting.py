# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module that can wait for a long time in slices, and shows the progress after each.

A module cannot print while it runs. So it is run for ten seconds at a time, returns its state, and is run again from there.
The lines that it returns are shown, each with the name of the host, which is the name of the cluster.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
import time
import typing as t

from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import this_process
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._slices import Slices

SLICE = 10.0
#: Limits the rate of restarts if a module returns at once although it is not done.
SHORTEST = 1.0

display = Display()


def _lines_as_they_come() -> None:
    """Makes ansible-playbook flush each line as it is shown, also to a pipe or a file.

    A worker's lines are shown by the main process, where Display does not flush (ansible-core 2.16 to 2.21, utils/display.py: "just write,
    and let the system flush"); into pipes and files Python writes blocks of 8 KiB, so that a gate's lines would only appear at its end.
    Strategies import action plugins in the main process before they start a worker, so this file runs there.

    If the reader of the pipe has ended, nothing is written, because an error would end the thread that receives results, and the run would
    wait for them forever (plugins/strategy/__init__.py, results_thread_main).
    """
    if multiprocessing.parent_process() is None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                _write_while_read(stream)
                stream.reconfigure(line_buffering=True)


def _write_while_read(stream: io.TextIOWrapper) -> None:
    # This is the stream below Display's lock. It is unbuffered if Python was started with -u.
    file: t.Any = getattr(stream.buffer, "raw", stream.buffer)
    write = file.write

    def write_or_drop(data: t.Any) -> t.Any:
        try:
            return write(data)
        except BrokenPipeError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), file.fileno())
            return write(data)

    file.write = write_or_drop


_lines_as_they_come()


class WaitingAction(DirectAction):
    """An action that runs modules that wait."""

    def run_slices(
        self, args: dict[str, t.Any], task_vars: dict[str, t.Any], module: str | None = None, quiet: bool = False
    ) -> dict[str, t.Any]:
        """Result of the module with these arguments, by default the module of the task.

        quiet: without -v, nothing is shown if it has nothing to change and to wait for.
        """
        slices = Slices()
        resume: dict[str, t.Any] = {}
        # Between two slices there is no process of the module. This process exists from the first slice to the last.
        fixed = args | {"wait_slice": SLICE, "wait_task": this_process()}
        while True:
            started = time.monotonic()
            slices.add(self.run_module(fixed | {"wait_resume": resume}, task_vars, module))
            if not self._task.no_log and (display.verbosity or not quiet or slices.is_news):
                for line in slices.progress:
                    display.display(f"{task_vars.get('inventory_hostname', 'localhost')}: {line}")
            pending = slices.pending
            if pending is None:
                return slices.result()
            resume = pending
            time.sleep(max(0.0, SHORTEST - (time.monotonic() - started)))
