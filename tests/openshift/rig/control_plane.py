# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real control plane that is started from the keys on the bootstrap machine's disk, and from nothing else: a wrong key there shows.

    plane = ControlPlane(find_programs(), Disk(folder), state)      # in the rig with address="10.99.0.1", port=6443
    plane.start()                                                   # the API is ready, its controllers have begun; plane.seconds says how long it took
    furnish(plane.admin, plane.disk)                                # world.py: what an OpenShift has on its first day
    plane.stop(); plane.start()                                     # away, and there again with its data, its address and its port
    plane.close()

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are those of the sandbox. They run in the network namespace of the caller.
"""

from __future__ import annotations

import pathlib
import shutil
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import Components
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import write_if_changed
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.supervisor import find_port
from ansible_collections.hwaccel.gpu.tests.openshift.rig import commands
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk

_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts", True)
#: Seconds: a busy machine takes minutes for what an idle one does in five seconds.
_PATIENCE, _STOPPING = 240.0, 20.0


class ControlPlane:
    """seconds: of the last start. kubeconfig: of the administrator, by kubeconfig-loopback of the disk. Raises AssertionError with the end of a log."""

    def __init__(
        self, programs: Components, disk: Disk, state: pathlib.Path, address: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.disk, self.seconds = disk, 0.0
        etcd = find_port(())
        peer = find_port((etcd,))
        own = port or find_port((etcd, peer))
        ports = {commands.ETCD: etcd, f"{commands.ETCD}-peer": peer}
        self._plan = commands.Plan(disk, state, state / "bin", address, own, ports)
        self._plan.programs.mkdir(mode=0o700, parents=True)
        for name in commands.COMPONENTS:
            (self._plan.programs / name).symlink_to(programs.programs[name])
        self.kubeconfig = str(self._plan.kubeconfig())

    def __enter__(self) -> t.Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def endpoint(self) -> str:
        """Address and port of the API."""
        return self._plan.server.removeprefix("https://")

    @property
    def audit_log(self) -> pathlib.Path:
        return self._plan.audit_log

    @property
    def admin(self) -> Client:
        return connect({"kubeconfig": self.kubeconfig})

    def start(self) -> None:
        """Returns once the controllers have made the first ServiceAccount."""
        begin = time.monotonic()
        for path, text in commands.files(self._plan).items():
            write_if_changed(path, text)
        self._run(commands.ETCD, commands.API)
        self._wait(lambda: self.admin.allowed("get", _ACCOUNT, "default"), "the API server")
        self._run(commands.MANAGER, commands.SCHEDULER)
        self._wait(lambda: bool(self.admin.get(_ACCOUNT, "default", "default")), "the controllers")
        self.seconds = time.monotonic() - begin

    def stop(self) -> None:
        """Clients before servers. The data stays."""
        for group in ((commands.MANAGER, commands.SCHEDULER), (commands.API,), (commands.ETCD,)):
            process.stop(self._processes(group), _STOPPING)

    def close(self) -> None:
        """Kills what is left, and deletes all that it wrote."""
        process.stop(self._processes(commands.COMPONENTS), 0)
        shutil.rmtree(self._plan.state, ignore_errors=True)

    def log(self, component: str) -> str:
        return self._log(component).read_text(encoding="utf-8", errors="replace")

    def _log(self, component: str) -> pathlib.Path:
        return self._plan.state / f"{component}.log"

    def _processes(self, components: t.Iterable[str]) -> list[process.Known]:
        found = (process.known(self._pid_file(name)) for name in components)
        return [one for one in found if one is not None]

    def _pid_file(self, component: str) -> pathlib.Path:
        return self._plan.state / f"{component}.pid"

    def _run(self, *components: str) -> None:
        for name in components:
            process.start(commands.command(self._plan, name), self._log(name), self._pid_file(name))

    def _wait(self, done: t.Callable[[], bool], what: str) -> None:
        end, why = time.monotonic() + _PATIENCE, "no answer"
        while True:
            try:
                if done():
                    return
            except ApiError as error:
                why = str(error)
            process.reap()
            ended = [name for name in commands.COMPONENTS if self._ended(name)]
            tails = "\n".join(line for name in ended for line in process.log_tail(self._log(name)))
            assert not ended, f"{', '.join(ended)} ended: {tails}"
            assert time.monotonic() < end, f"{what}: not after {_PATIENCE:.0f} s: {why}"
            time.sleep(0.05)

    def _ended(self, component: str) -> bool:
        known = process.known(self._pid_file(component))
        return known is not None and not process.running(known)
