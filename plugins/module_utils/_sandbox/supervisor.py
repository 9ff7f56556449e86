# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings the processes of a sandbox to the desired state, step by step.

Every step starts from the observed state, so the next run completes an interrupted one. Steps that wait are generators:
they yield a progress line, or "" where the slice may end.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import http.client
import json
import pathlib
import random
import shutil
import socket
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.client import ControlPlane, ObservedNode
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import (
    AGENT,
    COMPONENTS,
    CONTROL_PLANE,
    PORTS,
    CommandSettings,
    command,
    files,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.fleet_file import FLAPPING, NOT_READY
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import Layout, read_json, write_if_changed
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pki import ensure_pki

#: Below the kernel's range of outgoing connections, so that the ports of a stopped sandbox stay free.
_PORT_RANGE = (15000, 32000)
_TICK = 0.05
Steps = c.Iterator[str]


@dataclasses.dataclass
class Run:
    """The state of one run (all its slices), as plain data for the next slice."""

    changed: bool = False
    #: Actions and their reasons, for the result.
    actions: list[str] = dataclasses.field(default_factory=list)
    #: Components that had died: {component, log_tail}.
    died: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    #: Components that this run has started. If one of them ends, this is a failure, and it is not restarted.
    started: list[str] = dataclasses.field(default_factory=list)
    #: Start of the current wait in seconds since 1970, by its name.
    since: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Previous boot identities of the nodes that this run reboots.
    boot_ids: dict[str, str] = dataclasses.field(default_factory=dict)

    def did(self, action: str) -> None:
        self.changed = True
        self.actions.append(action)

    def waited(self, what: str) -> float:
        return time.time() - self.since.setdefault(what, time.time())


@dataclasses.dataclass(frozen=True)
class Supervisor:
    """One sandbox and its desired components."""

    layout: Layout
    #: Path of each component's program.
    programs: t.Mapping[str, pathlib.Path]
    #: Digest of each program.
    versions: t.Mapping[str, str]
    #: Folder with the package fleet_agent, None for a sandbox without it.
    agent_source: pathlib.Path | None
    python: str
    run: Run
    #: Seconds for one component to become healthy. A busy machine takes minutes for what a quiet one does in five seconds; one that has ended is not
    #: waited for.
    patience: float = 600.0

    @property
    def components(self) -> tuple[str, ...]:
        return COMPONENTS if self.has_agent else CONTROL_PLANE

    @property
    def has_agent(self) -> bool:
        return has_agent(self.agent_source)

    def plan(self) -> CommandSettings:
        record = read_json(self.layout.record)
        nodes = len(read_json(self.layout.fleet).get("nodes", {}))
        versions = dict(self.versions)
        if self.has_agent and self.agent_source is not None:
            versions[AGENT] = folder_digest(self.agent_source / "fleet_agent")
        return CommandSettings(self.layout, record.get("ports", {}), self.python, nodes, versions)

    def bring_up(self) -> Steps:
        """Writes files, then starts processes in the order of their dependencies."""
        self._prepare()
        plan = self.plan()
        server = ControlPlane(self.layout.pki, plan.ports)
        yield from self._start(plan, ("etcd", "kube-apiserver"))
        yield from self._wait_healthy(server, "kube-apiserver")
        if server.grant_kwok():
            self.run.did("created kwok's role")
        yield from self._start(plan, ("kube-controller-manager", "kube-scheduler", "kwok"))
        yield from self._wait_healthy(server, "kube-controller-manager")
        yield from self._wait_healthy(server, "kube-scheduler")
        while self._missing(server):
            yield from self._keep_waiting("the controllers' first objects", self.patience)
        if self.has_agent:
            yield from self._start(plan, (AGENT,))
        self._all_alive()

    def boot_ids(self, names: c.Collection[str]) -> dict[str, str]:
        """Boot identities of these nodes, {} if the API server does not answer."""
        if not names or not process.running(process.known(self.layout.pid_file("kube-apiserver"))):
            return {}
        server = ControlPlane(self.layout.pki, self.plan().ports)
        try:
            # The server's health is not checked first, because a busy server may fail that, and without these a node would count as rebooted too early.
            return {name: node.boot_id for name, node in server.nodes().items() if name in names}
        except (OSError, http.client.HTTPException, HwaccelError):
            return {}

    def wait_for_nodes(self, expected: t.Mapping[str, t.Mapping[str, t.Any]], limit: float) -> Steps:
        """Waits until every node has its desired state (Ready except for some faults), and until removed nodes are gone."""
        server = ControlPlane(self.layout.pki, self.plan().ports)
        shown = ""
        while True:
            started = time.monotonic()
            observed = server.nodes() if (count := server.node_count()) >= len(expected) else {}
            ready = {
                name
                for name, node in expected.items()
                if name in observed and self._as_declared(observed[name], node, name)
            }
            # This includes nodes that were removed in an earlier run, or while no agent was running.
            leaving = sorted(name for name, node in observed.items() if node.simulated and name not in expected)
            if len(ready) == len(expected) and not leaving:
                return
            self._all_alive()
            if self.run.waited("the nodes") > limit:
                missing = sorted(set(expected) - ready)
                what = f"{len(missing)} of {len(expected)} nodes are not Ready and {len(leaving)} not gone after {limit:.0f} s"
                raise self._failure(AGENT, what, ", ".join([*missing[:5], *leaving[:5]]))
            line = f"nodes {len(ready) if observed else count} of {len(expected)}" + (
                f", {len(leaving)} leaving" if leaving else ""
            )
            yield line if line != shown else ""
            shown = line
            # The interval grows with the fleet, because listing a large fleet takes the server seconds.
            time.sleep(max(0.2, 2 * (time.monotonic() - started)))

    def _as_declared(self, observed: ObservedNode, node: t.Mapping[str, t.Any], name: str) -> bool:
        rebooted = observed.boot_id != self.run.boot_ids.get(name)
        faults = {fault["name"] for fault in node["faults"]}
        ready = bool(faults & FLAPPING) or observed.ready != bool(faults & NOT_READY)
        return ready and rebooted and observed.kernel == node["kernel"] and observed.os_image == node["os_image"]

    def halt(self, patience: float) -> None:
        """Stops everything, clients before servers, so that clients do not log errors."""
        found = {
            name: known for name in COMPONENTS if process.running(known := process.known(self.layout.pid_file(name)))
        }
        if found:
            self.run.did("stopped " + ", ".join(found))
        for group in ((AGENT, "kwok", "kube-scheduler", "kube-controller-manager"), ("kube-apiserver",), ("etcd",)):
            process.stop([known for name in group if (known := found.get(name))], patience)
        process.stop(process.strays(map(self.layout.log, COMPONENTS)), 0)
        for name in COMPONENTS:
            self.layout.pid_file(name).unlink(missing_ok=True)

    def _prepare(self) -> None:
        layout, run = self.layout, self.run
        layout.make_folders()
        if ensure_pki(layout.pki):
            run.did("created certificates")
        for name in CONTROL_PLANE:
            _link(layout.bin / name, self.programs[name])
        if self.has_agent and self.agent_source is not None:
            _copy_package(self.agent_source / "fleet_agent", layout.agent / "fleet_agent")
        known = [process.known(layout.pid_file(name)) for name in COMPONENTS]
        # A process that has just died may hold its port until its last thread has ended.
        process.stop([one for one in known if one and not process.running(one)], 0)
        alive = {one.pid for one in known if one and process.running(one)}
        process.stop([one for one in process.strays(map(layout.log, COMPONENTS)) if one.pid not in alive], 0)
        self._choose_ports()
        for path, text in files(self.plan()).items():
            if write_if_changed(path, text):
                run.changed = True

    def _choose_ports(self) -> None:
        """Ports are chosen once, so that the kubeconfig stays valid. A port is only replaced if another program has taken it."""
        record = read_json(self.layout.record)
        ports = dict(record.get("ports", {}))
        for name in PORTS:
            owner = "etcd" if name == "etcd-peer" else name
            known = process.known(self.layout.pid_file(owner))
            if name in ports and (process.running(known) or _free(ports[name])):
                continue
            if name in ports:
                self.run.did(f"moved {name} off port {ports[name]}, which another program has taken")
            ports[name] = find_port(set(ports.values()))
        if ports != record.get("ports"):
            write_if_changed(self.layout.record, json.dumps({**record, "ports": ports}, indent=1) + "\n")

    def _start(self, plan: CommandSettings, names: c.Iterable[str]) -> Steps:
        for name in names:
            desired = command(plan, name)
            now = process.known(self.layout.pid_file(name))
            if now is not None and process.running(now):
                if now.digest == desired.digest:
                    continue
                process.stop([now], 10)
                self.run.did(f"restarted {name}: its program or configuration has changed")
            elif name in self.run.started:
                raise self._failure(name, f"{name} ended right after its start")
            elif now is not None:
                process.stop([now], 0)
                self.run.died.append({"component": name, "log_tail": process.log_tail(self.layout.log(name))})
                self.run.did(f"restarted {name}: it had died")
                yield f"{name} had died, restarting it"
            else:
                self.run.did(f"started {name}")
            process.start(desired, self.layout.log(name), self.layout.pid_file(name))
            self.run.started.append(name)

    def _wait_healthy(self, server: ControlPlane, name: str) -> Steps:
        while reason := server.healthy(name):
            yield from self._keep_waiting(name, self.patience, reason)

    def _missing(self, server: ControlPlane) -> str:
        try:
            return server.missing_basics()
        except OSError as error:
            return str(error)

    def _keep_waiting(self, what: str, limit: float, reason: str = "") -> Steps:
        self._all_alive()
        waited = self.run.waited(what)
        if waited > limit:
            component = what if what in COMPONENTS else "kube-controller-manager"
            raise self._failure(component, f"{what}: not ready after {limit:.0f} s", reason)
        noted = self.run.since.setdefault(f"told {what}", 0.0)
        if waited - noted > 5:
            self.run.since[f"told {what}"] = waited
            yield f"waiting for {what}, {waited:.0f} s"
        else:
            yield ""
        time.sleep(_TICK)

    def _all_alive(self) -> None:
        process.reap()
        for name in self.components:
            now = process.known(self.layout.pid_file(name))
            if now is not None and not process.running(now):
                raise self._failure(name, f"{name} ended")

    def _failure(self, component: str, what: str, why: str = "") -> HwaccelError:
        log = self.layout.log(component)
        tail = "\n".join(f"    {line}" for line in process.log_tail(log))
        why = why + (": " if why and tail else "") + (f"its log ends with\n{tail}\n" if tail else "")
        return HwaccelError(what, str(log), why, "run again: a process that died is restarted")


def folder_digest(folder: pathlib.Path) -> str:
    """Digest of a Python package's sources."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _copy_package(source: pathlib.Path, target: pathlib.Path) -> None:
    if target.is_dir() and folder_digest(source) == folder_digest(target):
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def has_agent(source: pathlib.Path | None) -> bool:
    return source is not None and (source / "fleet_agent" / "__main__.py").is_file()


def _link(link: pathlib.Path, target: pathlib.Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    temporary = link.with_name(f".{link.name}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def _free(port: int) -> bool:
    """Whether a server can take the port."""
    with socket.socket() as probe:
        # Connections of a stopped server in TIME_WAIT do not block the next one.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def find_port(taken: c.Collection[int]) -> int:
    """A free port of 127.0.0.1 that connections do not take while its server is stopped. taken: others that it must not be."""
    for _attempt in range(1000):
        # Ports are tried in random order, so that concurrently created sandboxes do not conflict.
        port = random.SystemRandom().randrange(*_PORT_RANGE)
        if port not in taken and _free(port):
            return port
    why = f"1,000 tries from {_PORT_RANGE[0]} to {_PORT_RANGE[1]}"
    raise HwaccelError("no free port was found", "127.0.0.1", why, "stop sandboxes or programs that use these ports")
