# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig as a whole: a sandbox's control plane, and real machines beside its simulated nodes."""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import shutil
import tempfile
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import read_json
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandboxes, find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig import machine_image, network
from ansible_collections.hwaccel.gpu.tests.node.rig.authority import Authority
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Components
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IMAGES, PROGRAMS, KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine, remove_control_groups

NODE = Resource("", "v1", "Node", "nodes", False)
POD = Resource("", "v1", "Pod", "pods", True)
_BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)
#: What the rig calls besides Python.
COMMANDS = ("podman", "runc", "conmon", "mmdebstrap", "iptables", "ip", "nsenter", "unshare", "busybox", "ssh")


def lacking() -> str:
    """Why this machine cannot have the rig, "" where it can."""
    if os.geteuid() != 0:
        return "the rig of real nodes needs root: it makes namespaces and runs containers"
    if not os.environ.get("HWACCEL_ISOLATED"):
        return "the rig of real nodes runs in namespaces of its own only: start it with make test-node"
    missing = [command for command in COMMANDS if not shutil.which(command, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    return f"the rig of real nodes needs {', '.join(missing)}" if missing else ""


class Rig:
    """Machines and a cluster; close() leaves nothing of them."""

    def __init__(self, say: c.Callable[[str], None]) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hwaccel-node-"))
        self.podman = machine_image.Podman(self.folder / "podman", machine_image.ensure_machine_image(say))
        self.podman.prepare()
        network.set_up()
        self._sandboxes = Sandboxes(find_programs())
        self._machines: dict[str, Machine] = {}

    def close(self) -> None:
        for machine in self._machines.values():
            machine.stop()
        self._sandboxes.close()
        remove_control_groups()
        shutil.rmtree(self.folder)

    def machine(self, name: str, shares: dict[str, str] | None = None) -> Machine:
        """A machine more, which has booted."""
        made = Machine(name, self.podman, self.folder / name, network.Port(len(self._machines) + 1), shares or {})
        self._machines[name] = made
        made.start()
        return made

    def cluster(self, fleet: dict[str, t.Any], components: Components, images: pathlib.Path) -> Cluster:
        """A control plane with the simulated nodes of the fleet, which real ones can join. One a rig."""
        sandbox = self._sandboxes.make(fleet)
        network.publish(read_json(sandbox.layout.record)["ports"]["kube-apiserver"])
        return Cluster(self, sandbox, components, images)


class Cluster:
    """The control plane, and its client."""

    def __init__(self, rig: Rig, sandbox: t.Any, components: Components, images: pathlib.Path) -> None:
        self._rig, self.sandbox, self._components, self._images = rig, sandbox, components, images
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        # Logs and exec are the API server's requests to kubelet, which asks back whether it may.
        subject = {"kind": "User", "name": "kube-apiserver-kubelet-client", "apiGroup": _BINDING.group}
        role = {"kind": "ClusterRole", "name": "system:kubelet-api-admin", "apiGroup": _BINDING.group}
        binding = {"apiVersion": _BINDING.api_version, "kind": _BINDING.kind, "metadata": {"name": "rig-kubelet-api"}, "roleRef": role, "subjects": [subject]}
        self.client.create(binding, _BINDING)

    def join(self, name: str, gpus: int = 0, labels: c.Mapping[str, str] | None = None) -> KubernetesNode:
        """A machine that has become a Ready node."""
        machine = self._rig.machine(name, {str(self._components.folder): PROGRAMS, str(self._images): IMAGES})
        node = KubernetesNode(machine, Authority(self.sandbox.layout.pki), labels or {})
        node.install()
        if gpus:
            node.set_gpus(gpus)
        node.start()
        machine.wait("its node is Ready", lambda: self.ready(name))
        return node

    def ready(self, name: str) -> bool:
        try:
            status = self.client.get(NODE, name).get("status", {})
        except NotFound:
            return False
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions", ()))

    def wait(self, what: str, done: c.Callable[[], t.Any], seconds: float = 60) -> t.Any:
        """What `done` answers as soon as that is true of anything."""
        end = time.monotonic() + seconds
        while not (answer := done()):
            assert time.monotonic() < end, f"{what}: not after {seconds:.0f} s"
            time.sleep(0.1)
        return answer
