# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module that can wait for long in slices, and says after each how far it is.

A module cannot print while it runs. So it is run for ten seconds at a time, returns where it stands, and is run again from
there; the lines that it returns are shown, each beginning with the name of the host, which is that of the cluster.
Shared by all modules that wait (their action files import it); for manifest_set it also reads templates and files.
"""

from __future__ import annotations

import copy
import io
import multiprocessing
import os
import sys
import time
import typing as t

from ansible.utils.display import Display

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import this_process
from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _sources
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._direct import DirectAction
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._slices import INTERNAL, Slices

SLICE = 10.0
#: A module that is not done but comes back at once must not keep the controller busy with starting it.
SHORTEST = 1.0

display = Display()


def _lines_as_they_come() -> None:
    """Makes ansible-playbook write out each line as it is shown, into a pipe or a file as well.

    A worker's lines are shown by the main process, where Display does not flush (ansible-core 2.16 to 2.21, utils/display.py: "just write,
    and let the system flush"); into pipes and files Python writes blocks of 8 KiB, so that a gate's lines came at its end.
    Of a collection, the main process runs what strategies import before they start a worker: this file.

    Without a reader any more, nothing is written: an error would end the thread of the main process that takes results, and the run would
    wait for them for ever (plugins/strategy/__init__.py, results_thread_main).
    """
    if multiprocessing.parent_process() is None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                _write_while_read(stream)
                stream.reconfigure(line_buffering=True)


def _write_while_read(stream: io.TextIOWrapper) -> None:
    # Below what Display has put its lock around, and without buffers where Python was started so.
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


class ActionModule(DirectAction):
    """The action of manifest_set, node_gate and sandbox."""

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        task_vars = dict(task_vars or {})
        super().run(tmp, task_vars)
        args = {name: value for name, value in copy.deepcopy(dict(self._task.args)).items() if name not in INTERNAL}
        if self._task.action.rpartition(".")[2] == "manifest_set":
            self._read_sources(args, task_vars)
        if self._task.async_val:
            # A background job has nobody to show progress to.
            return self.run_module(args, task_vars)
        return self._run_slices(args, task_vars)

    def _read_sources(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> None:
        template, src = args.pop("template", None), args.pop("src", None)
        if template or src:
            args["texts"] = _sources.texts(self, task_vars, template, src)

    def _run_slices(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        slices = Slices()
        resume: dict[str, t.Any] = {}
        # Between two slices there is no process of the module; this one is there from the first to the last.
        fixed = args | {"wait_slice": SLICE, "wait_task": this_process()}
        while True:
            started = time.monotonic()
            slices.add(self.run_module(fixed | {"wait_resume": resume}, task_vars))
            if not self._task.no_log:
                for line in slices.progress:
                    display.display(f"{task_vars.get('inventory_hostname', 'localhost')}: {line}")
            pending = slices.pending
            if pending is None:
                return slices.result()
            resume = pending
            time.sleep(max(0.0, SHORTEST - (time.monotonic() - started)))
