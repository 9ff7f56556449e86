# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandboxes for live tests: they start in seconds, each in its own folder, and leave nothing behind after the tests."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import components, layout, process, resolver, sandbox

REPOSITORY = pathlib.Path(__file__).parents[3]
#: Two GPU nodes and one without GPUs: sufficient for tests that need one node of a kind.
SMALL_FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": 2,
            "gpu": {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559, "mig_capable": True},
        },
        {"name": "cpu", "count": 1},
    ],
}
#: Timeout in seconds of operations that take a moment on an idle machine.
_LIMIT = 180.0
_numbers = itertools.count()


@dataclasses.dataclass
class Sandbox:
    """One running sandbox, which is changed by the functions that the module calls as well."""

    layout: layout.Layout
    programs: components.Components
    sources: pathlib.Path
    wait_limit: float = 300.0

    @property
    def kubeconfig(self) -> str:
        return str(self.layout.kubeconfig)

    @property
    def audit_log(self) -> pathlib.Path:
        return self.layout.audit_log

    @property
    def state_dir(self) -> pathlib.Path:
        return self.layout.root

    def set_fleet(self, fleet: dict[str, t.Any]) -> sandbox.Run:
        """Applies another fleet; returns when its nodes are Ready and removed nodes are deleted."""
        return self._apply(sandbox.FleetAsk(declared=fleet))

    def reboot(self, node: str, kernel: str | None = None) -> sandbox.Run:
        return self._apply(sandbox.FleetAsk(reboot=[{"node": node, "kernel": kernel}]))

    def add_fault(self, name: str, *, node: str | None = None, pool: str | None = None, **options: str) -> sandbox.Run:
        """Adds a fault, on a node or on a pool."""
        fault = {"name": name, **({"node": node} if node else {}), **({"pool": pool} if pool else {}), **options}
        return self._apply(sandbox.FleetAsk(faults=[*self.faults, fault]))

    def clear_faults(self) -> sandbox.Run:
        """Removes the faults of add_fault; those of the fleet remain."""
        return self._apply(sandbox.FleetAsk(faults=[]))

    @property
    def faults(self) -> list[dict[str, t.Any]]:
        return t.cast("list[dict[str, t.Any]]", layout.read_json(self.layout.record).get("faults", []))

    def start(self, fleet: dict[str, t.Any] | None = None) -> sandbox.Run:
        """Starts components that do not run, and applies the fleet, if there is one."""
        return self._apply(sandbox.FleetAsk(declared=fleet))

    def stop(self) -> sandbox.Run:
        run = sandbox.Run()
        sandbox.stop(self.layout, run)
        return run

    def kill(self, component: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Sends a signal to the process of a component, and returns its pid."""
        known = process.known(self.layout.pid_file(component))
        assert known is not None
        assert process.running(known)
        os.kill(known.pid, number)
        # The process has to end first: a run that starts while it still exists regards it as running.
        end = time.monotonic() + _LIMIT
        while number == signal.SIGKILL and process.running(known):
            assert time.monotonic() < end, f"{component} does not end"
            process.reap()
            time.sleep(0.02)
        return known.pid

    def kill_container(self, node: str, container: str) -> None:
        """Sends SIGKILL to the simulated processes of the containers with that name on a node."""
        order = {"kill": {"node": node, "container": container, "signal": "KILL"}}
        with (self.state_dir / "control.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(order) + "\n")

    def log(self, component: str) -> str:
        return self.layout.log(component).read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Kills the processes and deletes the files."""
        sandbox.remove(self.layout, sandbox.Run())

    def _apply(self, ask: sandbox.FleetAsk) -> sandbox.Run:
        run = sandbox.Run()
        supervisor = sandbox.supervisor_for(self.layout, self.programs, self.sources, sys.executable, run)
        for _line in sandbox.start(supervisor, ask, self.wait_limit):
            pass
        self._await_agent()
        return run

    def _await_agent(self) -> None:
        """Waits until the fleet agent has applied the present fleet, because a fault need not change the readiness of a node."""
        end = time.monotonic() + _LIMIT
        expected = self.layout.fleet.stat().st_mtime_ns if self.layout.fleet.exists() else 0
        while layout.read_json(self.layout.root / "agent-status.json").get("fleet_mtime_ns") != expected:
            assert time.monotonic() < end, "the fleet agent does not apply the fleet"
            time.sleep(0.05)


class Sandboxes:
    """Sandboxes in one temporary folder, which are closed together."""

    def __init__(self, programs: components.Components) -> None:
        self.programs = programs
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="hwaccel-sandboxes-"))
        self._created: list[Sandbox] = []
        # A copy, because a change of the agent's files during the tests would restart it.
        self._sources = self._folder / "files"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(
            REPOSITORY / "roles" / "sandbox" / "files" / "fleet_agent", self._sources / "fleet_agent", ignore=ignored
        )

    def make(self, fleet: dict[str, t.Any] | None = None, *, name: str = "", start: bool = True) -> Sandbox:
        name = name or f"test-{next(_numbers)}"
        created = Sandbox(layout.layout(name, str(self._folder / name)), self.programs, self._sources)
        self._created.append(created)
        if start:
            created.start(SMALL_FLEET if fleet is None else fleet)
        return created

    def close(self) -> None:
        for created in self._created:
            created.close()
        shutil.rmtree(self._folder)


def find_programs() -> components.Components:
    """The control plane as users get it: from the folder in HWACCEL_COMPONENTS, from the cache, or downloaded or built into the cache, with progress."""
    request = resolver.ComponentRequest(
        layout.cache_folder(),
        sources=REPOSITORY / "roles" / "sandbox" / "files" / "control_plane",
        environment=dict(os.environ),
    )
    steps = resolver.resolve(request)
    while True:
        try:
            line = next(steps)
        except StopIteration as end:
            return t.cast("components.Components", end.value)
        if line:
            print(line, file=sys.stderr, flush=True)
