# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role has asked of a cluster, asked again with other patches: its modules as they were, without the playbook around them.

    calls = read(path)                          # site.playbook(..., environment={ARGUMENTS: str(path)}) has written it
    run = repeat(calls, patches, patience=14)   # a tenth of what the playbook costs

Which objects and options these are, the role has said: nothing of it is written here a second time.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib
import subprocess
import sys
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _run_module
from ansible_collections.hwaccel.gpu.plugins.plugin_utils._slices import without_internal
from ansible_collections.hwaccel.gpu.tests.live.support import site

#: Names the file in which a run's modules keep their arguments (callbacks/recorder.py).
ARGUMENTS = "HWACCEL_ARGUMENTS"
#: What writes and what judges. The others of a role read, for its plan.
_REPEATED = ("manifest_set", "node_gate")
_PACKAGE = "ansible_collections.hwaccel.gpu.plugins.modules"


@dataclasses.dataclass(frozen=True)
class Call:
    """One start of a module with its arguments."""

    module: str
    arguments: dict[str, t.Any]


def read(path: pathlib.Path) -> list[Call]:
    """The calls that a run has made, each once: a module that waits is started again and again."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    calls = [Call(row["module"], without_internal(row["arguments"])) for row in rows if row["module"] in _REPEATED]
    return [call for before, call in zip([None, *calls], calls, strict=False) if call != before]


def repeat(calls: c.Iterable[Call], patches: c.Sequence[dict[str, t.Any]], patience: float) -> site.Run:
    """The first that fails ends it, as it ends a play. patience: seconds that a gate waits."""
    tasks: list[dict[str, t.Any]] = []
    for call in calls:
        given = call.arguments | ({"patches": list(patches)} if "patches" in call.arguments else {})
        result = _result(call.module, given | ({"wait_timeout": patience} if call.module == "node_gate" else {}))
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
    """As the action has it: from the module's file, in a process of its own."""
    command = [sys.executable, "-P", str(_run_module.__file__), str(site.COLLECTIONS), f"{_PACKAGE}.{module}"]
    given = json.dumps({"ANSIBLE_MODULE_ARGS": arguments})
    done = subprocess.run(
        command, input=given, env=site.inherited(), capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.stdout.strip().startswith("{"), f"{module} has no result:\n{done.stdout}{done.stderr}"
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))
