# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the collection's playbooks as a user does, as a process of their own, and returns what they did as data.

    clusters = {"one": cluster(sandbox.kubeconfig, hwaccel_wait_timeout=60)}
    run = playbook("site", clusters)
    assert run.rc == 0, run.stdout

A warning is a failure (design, "tests"): `playbook` raises where Ansible printed one that is not in `warnings`.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t

import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.live.support.ending import kill_with, started_by_these
from ansible_collections.hwaccel.gpu.tests.tools.environments import CONFIGURATION

#: The folder that holds ansible_collections/hwaccel/gpu.
COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
#: The task that fails with what the task above it has shown.
_LAST = "Summary | Fail if there are problems"
#: The same of machine_boot, before any machine is changed, and once for all of them.
_BEFORE = "Summary | Stop if there are problems"
_CALLBACKS = pathlib.Path(__file__).parent / "callbacks"
_WARNING = re.compile(
    r"^\[(?:DEPRECATION )?WARNING\]: ?.*$|^.*(?:MODULE FAILURE|Traceback \(most recent).*$", re.MULTILINE
)
#: What a run inherits from the environment of the tests: where programs, the home and the caches are, and nothing about clusters.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME")

Clusters = dict[str, dict[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class Run:
    """tasks: one row per task and host with host, name, action, outcome and result, its seconds, and after how many of the run it had ended.

    recap: counts by host. summary: hwaccel_summary.
    """

    rc: int
    stdout: str
    tasks: list[dict[str, t.Any]]
    recap: dict[str, dict[str, int]]
    summary: dict[str, t.Any]
    warnings: list[str]

    @property
    def failures(self) -> list[str]:
        """Messages of the tasks that failed, in order; a list of messages is joined. Lines that such a task has shown are part of its message."""
        return [text for _host, text in self._failed()]

    def failures_of(self, host: str) -> list[str]:
        return [text for failed, text in self._failed() if failed == host]

    def _failed(self) -> list[tuple[str, str]]:
        failed = [task for task in self.tasks if task["outcome"] in ("failed", "unreachable")]
        return [(task.get("host", ""), self._shown_by(task) + _message(task["result"])) for task in failed]

    def _shown_by(self, task: dict[str, t.Any]) -> str:
        """The lines above the failure of a task that shows lines, or that follows one: its result does not have them."""
        if task.get("name") == _BEFORE:
            return "".join(f"{reason}\n" for one in self.summary.values() for reason in one["reasons"])
        if task.get("name") == _LAST and "state" in self.summary.get(task["host"], {}):
            return "".join(f"{reason}\n" for reason in self.summary[task["host"]]["reasons"])
        if task.get("action", "").rpartition(".")[2] != "show" and task.get("name") != _LAST:
            return ""
        end = self.stdout.rfind(f"fatal: [{task['host']}]: FAILED!")
        begin = self.stdout.rfind(f"\n{task['host']}:\n", 0, end)
        # Lines of other hosts follow, which ended with the same task.
        others = [self.stdout.find(f"\n{host}:\n", begin, end) for host in self.recap if host != task["host"]]
        end = min([end, *(place for place in others if place >= 0)])
        return self.stdout[begin:end].rstrip("\n") + "\n" if 0 <= begin < end else ""

    def shown(self, host: str) -> str:
        """What it has told of one host, outside of failures."""
        return "\n".join(
            str(task["result"])
            for task in self.tasks
            if task["host"] == host and task["action"].rpartition(".")[2] in ("debug", "show")
        )

    def changed(self, host: str | None = None) -> int:
        """Number of changed tasks, of one host or of all."""
        return sum(counts["changed"] for name, counts in self.recap.items() if host in (None, name))

    def results(self, action: str, host: str | None = None) -> list[dict[str, t.Any]]:
        """Results of all tasks of a module, by its short name, and of the stages that have run it."""
        found = []
        for task in self.tasks:
            name = task["action"].rpartition(".")[2]
            if host in (None, task["host"]) and task["outcome"] != "skipped":
                if name == action:
                    found.append(task["result"])
                elif name == "stage" and (step := _step(task["result"], action)):
                    found.append(step)
        return found


def _step(stage: dict[str, t.Any], action: str) -> dict[str, t.Any]:
    """The result of a module that a stage has run, {} if it has not."""
    steps = {
        "manifest_set": "set",
        "node_gate": "gate",
        "node_validate": "gate",
        "node_allocation": "all_gpus",
        "node_bandwidth": "bandwidth",
    }
    step: dict[str, t.Any] = stage.get(steps.get(action, "")) or {}
    if action == "manifest_set":
        return step and step | {"diff": stage.get("diff") or []}
    validates = step.get("gate") == "validation"
    return {} if validates != (action == "node_validate") and steps.get(action) == "gate" else step


#: Until GPUs can be scheduled: what most tests are about. None: all stages, as users have it.
TO_SCHEDULABLE, ALL = "feature_discovery, driver, device_plugin", None


def cluster(kubeconfig: str, **variables: t.Any) -> dict[str, t.Any]:
    """Variables of an inventory host that stands for a cluster."""
    connection = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "hwaccel_connection": {"kubeconfig": kubeconfig},
    }
    return {**connection, "hwaccel_stages": TO_SCHEDULABLE, **variables}


def playbook(
    name: str,
    clusters: Clusters,
    *arguments: str,
    machines: dict[str, Clusters] | None = None,
    environment: dict[str, str] | None = None,
    warnings: t.Sequence[str] = (),
    timeout: float = 1200,
) -> Run:
    """One `ansible-playbook hwaccel.gpu.<name>` over an inventory with these clusters.

    arguments: more of ansible-playbook's, such as --check. machines: more groups with their hosts' variables.
    warnings: regular expressions of warnings that are right to come.
    """
    with tempfile.TemporaryDirectory(prefix="hwaccel-site-") as folder:
        inventory = {group: {"hosts": hosts} for group, hosts in {"gpu_clusters": clusters, **(machines or {})}.items()}
        run = _run(pathlib.Path(folder), name, inventory, arguments, environment or {}, timeout)
    unexpected = [warning for warning in run.warnings if not any(re.search(pattern, warning) for pattern in warnings)]
    assert not unexpected, f"{name} warned:\n" + "\n".join(unexpected) + "\n" + run.stdout[-6000:]
    return run


def killed(
    name: str,
    clusters: Clusters,
    when: t.Callable[[], bool],
    timeout: float = 900,
    machines: dict[str, Clusters] | None = None,
    environment: dict[str, str] | None = None,
    arguments: t.Sequence[str] = (),
) -> bool:
    """Starts a playbook, and once `when` says so ends all its processes at once, as a machine that loses power would.

    False where it had ended before.
    """
    with tempfile.TemporaryDirectory(prefix="hwaccel-site-") as scratch:
        folder = pathlib.Path(scratch)
        groups = {group: {"hosts": hosts} for group, hosts in {"gpu_clusters": clusters, **(machines or {})}.items()}
        command = _command(folder, name, groups, arguments)
        null, deadline = subprocess.DEVNULL, time.monotonic() + timeout
        known = _environment(folder, folder / "record.json") | (environment or {})
        process = subprocess.Popen(
            command, env=known, cwd=folder, stdin=null, stdout=null, stderr=null, start_new_session=True
        )
        try:
            while process.poll() is None and not when():
                assert time.monotonic() < deadline, f"{name} did not come so far in {timeout:.0f} s"
                time.sleep(0.05)
            return process.poll() is None
        finally:
            end(folder / "record.json")
            process.wait()


def end(record: pathlib.Path) -> None:
    """Kills a run, by where it records what it does."""
    kill_with(f"HWACCEL_RECORD={record}")


def _command(folder: pathlib.Path, name: str, groups: dict[str, t.Any], arguments: t.Sequence[str]) -> list[str]:
    inventory = folder / "inventory.yml"
    (folder / "ansible.cfg").write_text(CONFIGURATION, encoding="utf-8")
    inventory.write_text(yaml.safe_dump(groups), encoding="utf-8")
    return [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        str(inventory),
        name if "/" in name else f"hwaccel.gpu.{name}",
        *arguments,
    ]


def _run(
    folder: pathlib.Path,
    name: str,
    groups: dict[str, t.Any],
    arguments: t.Sequence[str],
    environment: dict[str, str],
    timeout: float,
) -> Run:
    record = folder / "record.json"
    done = subprocess.run(
        _command(folder, name, groups, arguments),
        env=_environment(folder, record) | environment,
        cwd=folder,
        timeout=timeout,
        check=False,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    recorded = (
        json.loads(record.read_text(encoding="utf-8")) if record.exists() else {"tasks": [], "recap": {}, "custom": {}}
    )
    summary = recorded["custom"].get("_run", {}).get("hwaccel_summary", {})
    found = [match.group(0) for match in _WARNING.finditer(done.stdout)]
    return Run(done.returncode, done.stdout, recorded["tasks"], recorded["recap"], summary, found)


@functools.cache
def cheaper() -> dict[str, str]:
    """What the runner has for Pythons of tests (tests/tools/quick), and a folder for the modules that the playbooks of these tests send."""
    if "HWACCEL_QUICK" not in os.environ:
        return {}
    packed = tempfile.mkdtemp(prefix="hwaccel-packed-")
    atexit.register(shutil.rmtree, packed, ignore_errors=True)
    # No more of our own path: what Ansible finds, it finds as a collection.
    return {
        "PYTHONPATH": os.environ["HWACCEL_QUICK"],
        "HWACCEL_PACKED": packed,
        # A module is read from standard input, instead of by four shells that create, use and delete a folder for it.
        "ANSIBLE_PIPELINING": "1",
    }


def inherited() -> dict[str, str]:
    """The environment of whatever these tests start of Ansible, without its settings."""
    return {key: os.environ[key] for key in _KEPT if key in os.environ} | started_by_these() | cheaper()


def _environment(folder: pathlib.Path, record: pathlib.Path) -> dict[str, str]:
    return inherited() | {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CALLBACK_PLUGINS": str(_CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "recorder",
        "HWACCEL_RECORD": str(record),
        # Warnings stay on one line, where they can be found.
        "COLUMNS": "4000",
        "PYTHONWARNINGS": "ignore",
    }


def _message(result: dict[str, t.Any]) -> str:
    message = result.get("msg") or result.get("message") or ""
    return "\n".join(str(line) for line in message) if isinstance(message, list) else str(message)
