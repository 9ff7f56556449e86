# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines meet between their first boot and an installed cluster: once Ignition has written the bootstrap machine's disk, a control plane starts from the
keys on it, with the server of machine configs and the operators.

with Chain(place) as chain:
    ...                             # machines boot meanwhile
    chain.plane.admin               # once chain.started is set
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import datetime
import pathlib
import socket
import subprocess
import threading
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Overloaded, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import token
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY
from ansible_collections.hwaccel.gpu.tests.openshift.rig import coreos
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk
from ansible_collections.hwaccel.gpu.tests.openshift.rig.fleet import Fleet
from ansible_collections.hwaccel.gpu.tests.openshift.rig.machine_configs import MachineConfigServer, of_disk
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import Expected, Operators
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import BOOTSTRAPPER, furnish, put
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import Key, Pair, Signer, Subject, issue
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_configs import CLUSTER

_API_PORT = 6443
_POOLS = ("master", "worker")
#: Seconds, of the identity with which machines join.
_LIFE = 7200


class Chain:
    """place: an empty folder. images: that registries have beside the published ones. gpu: what each worker has, as a fleet file describes it.

    started: set once the API has what an OpenShift has on its first day. failed: why something of it has not started, empty if nothing has failed.
    """

    def __init__(self, place: pathlib.Path, expected: Expected, images: c.Sequence[str], gpu: dict[str, t.Any]) -> None:
        self.place, self.started, self.failed = place, threading.Event(), ""
        self._images, self._gpu, self._ends = images, gpu, threading.Event()
        self.disk = Disk(place / "disk")
        self.configs: dict[str, MachineConfigServer] = {}
        self._expected = expected
        self._stack = contextlib.ExitStack()
        self._socket = socket.create_server((GATEWAY, coreos.FILES_PORT))
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        # This wakes up whoever waits at it.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        self._stack.close()

    def rotate(self) -> bytes:
        """Gives masters' 22623 a certificate of another authority, as machine-config-operator does. Returns the authority, which the cluster tells."""
        begin = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        times, subject = (begin, begin + datetime.timedelta(days=1)), Subject("machine-config-server-ca")
        root, own = Key.generate("P-256"), Key.generate("P-256")
        authority = issue(subject, root, *times)
        signer, name = Signer(subject, Pair(authority, root)), f"api-int.{self.disk.domain}"
        self.configs["cluster"].certify(issue(Subject(name), own, *times, signer, ("server",), (name,)), own.pem())
        metadata = {"name": "machine-config-server-ca", "namespace": BOOTSTRAPPER[0]}
        data = {"ca-bundle.crt": authority.decode()}
        put(self.plane.admin, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return authority

    def _run(self) -> None:
        try:
            if self._take():
                self._start()
                self.started.set()
                self._play()
        except Exception as error:
            self.failed = str(error)

    def _take(self) -> bool:
        """Whether the bootstrap machine has handed its files over, before this has ended."""
        while True:
            try:
                connection, _peer = self._socket.accept()
            except OSError:
                return False
            with connection, connection.makefile("rb") as stream:
                content = stream.read()
            # Somebody who only looks whether the port is open has no files.
            if content:
                self.disk.root.mkdir(mode=0o700)
                subprocess.run(["tar", "--extract", f"--directory={self.disk.root}"], input=content, check=True)
                return True

    def _start(self) -> None:
        enter = self._stack.enter_context
        self.plane = enter(ControlPlane(find_programs(), self.disk, self.place / "plane", GATEWAY, _API_PORT))
        furnish(self.plane.admin, self.disk)
        bootstrap, certificate, key = of_disk(self.disk, *_POOLS)
        secret = token(self.plane.admin, *BOOTSTRAPPER, {"expirationSeconds": _LIFE})
        joining = self.disk.kubeconfig("kubelet")
        joining["users"][0]["user"] = {"token": secret}
        cluster = dataclasses.replace(bootstrap, mode=CLUSTER, kubeconfigs={CLUSTER: yaml.safe_dump(joining)})
        for name, what, ports in (("bootstrap", bootstrap, (22623, 22624)), ("cluster", cluster, coreos.CLUSTER_PORTS)):
            self.configs[name] = MachineConfigServer(self.place / name, GATEWAY, ports)
            self.configs[name].write(what, certificate, key)
            enter(self.configs[name].running())
        (self.place / "fleet").mkdir()
        fleet = (self.plane, self.place / "fleet", self._images, GATEWAY, coreos.LOGS_PORT)
        self.fleet = enter(Fleet(*fleet))
        self.operators = enter(Operators(self.plane.kubeconfig, self._expected))

    def _play(self) -> None:
        """Gives the nodes pods: those of the installation once all have joined, and any other one as soon as it has."""
        expected = {*self._expected.masters, *self._expected.workers}
        played: set[str] = set()
        while not self._ends.wait(1):
            # Tests may stop the API.
            with contextlib.suppress(Unreachable, Overloaded):
                found = {one["metadata"]["name"] for one in self.plane.admin.list(NODE).items}
                if found >= expected and found != played:
                    self.fleet.play(
                        {name: {} if name in self._expected.masters else {"gpu": self._gpu} for name in found}
                    )
                    played = found
