# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module calls of a role, repeated with other patches and without the playbook around them.

    calls = read(path)                          # site.playbook(..., environment={ARGUMENTS: str(path)}) has written it
    run = repeat(calls, patches, timeout=14)    # a tenth of the cost of the playbook

Objects and options are those of the role, so that they are not defined here a second time.
"""

from __future__ import annotations

import atexit
import collections.abc as c
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import tempfile
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _module_process
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._slices import without_internal
from ansible_collections.hwaccel.gpu.tests.live.support import site

#: Environment variable with the file for the arguments of a run's modules (callbacks/recorder.py).
ARGUMENTS = "HWACCEL_ARGUMENTS"
#: Modules that write or judge. The other modules of a role only read, for its plan.
_REPEATED = ("manifest_set", "node_gate")


@dataclasses.dataclass(frozen=True)
class Call:
    """One start of a module with its arguments."""

    module: str
    arguments: dict[str, t.Any]


def read(path: pathlib.Path) -> list[Call]:
    """The calls of a run, each once, although a waiting module is started repeatedly."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    calls = [Call(row["module"], without_internal(row["arguments"])) for row in rows if row["module"] in _REPEATED]
    return [call for before, call in zip([None, *calls], calls, strict=False) if call != before]


def repeat(calls: c.Iterable[Call], patches: c.Sequence[dict[str, t.Any]], timeout: float) -> site.Run:
    """The first failed call ends the run, as in a play. timeout: seconds that a gate waits."""
    tasks: list[dict[str, t.Any]] = []
    for call in calls:
        arguments = call.arguments | ({"patches": list(patches)} if "patches" in call.arguments else {})
        result = _result(call.module, arguments | ({"wait_timeout": timeout} if call.module == "node_gate" else {}))
        failed = bool(result.get("failed"))
        tasks.append(
            {
                "host": "",
                "name": call.module,
                "action": call.module,
                "outcome": "failed" if failed else "ok",
                "result": result,
            }
        )
        if failed:
            break
    rc = int(any(task["outcome"] == "failed" for task in tasks))
    return site.Run(rc, json.dumps([task["result"] for task in tasks], indent=1), tasks, {}, {}, [])


def _result(module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
    """The result as the action plugin gets it."""
    with _module_process.connect(_servers(), os.getpid()) as connection:
        connection.settimeout(1200)
        document = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
        done = _module_process.run(connection, module, document, site.inherited())
    assert done.stdout.strip().startswith("{"), f"{module} returned no result:\n{done.stdout}{done.stderr}"
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))


@functools.cache
def _servers() -> pathlib.Path:
    """The folder of the module server, which ends with this process."""
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return folder
