# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The complete rig: a sandbox's control plane, and real machines in addition to its simulated nodes."""

from __future__ import annotations

import collections.abc as c
import pathlib
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import WHOLE
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import read_json
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandboxes, find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig import network
from ansible_collections.hwaccel.gpu.tests.node.rig.authority import Authority
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Components
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IMAGES, PROGRAMS, KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import Machines

NODE = Resource("", "v1", "Node", "nodes", False)
POD = Resource("", "v1", "Pod", "pods", True)
_BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)


class Rig(Machines):
    """Machines and a cluster, which close() removes without leaving anything behind."""

    def __init__(self, say: c.Callable[[str], None]) -> None:
        super().__init__(say)
        self._sandboxes = Sandboxes(find_programs())

    def close(self) -> None:
        self._sandboxes.close()
        super().close()

    def cluster(self, fleet: dict[str, t.Any], components: Components, images: pathlib.Path) -> Cluster:
        """A control plane with the simulated nodes of the fleet, which real nodes can join. A rig can have one."""
        sandbox = self._sandboxes.make(fleet)
        network.publish(read_json(sandbox.layout.record)["ports"]["kube-apiserver"])
        return Cluster(self, sandbox, components, images)


class Cluster:
    """The control plane, and its client."""

    def __init__(self, rig: Rig, sandbox: t.Any, components: Components, images: pathlib.Path) -> None:
        self._rig, self.sandbox, self._components, self._images = rig, sandbox, components, images
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        # For logs and exec, the API server sends requests to the kubelet, which authorizes them by the API server.
        subject = {"kind": "User", "name": "kube-apiserver-kubelet-client", "apiGroup": _BINDING.group}
        role = {"kind": "ClusterRole", "name": "system:kubelet-api-admin", "apiGroup": _BINDING.group}
        binding = {
            "apiVersion": _BINDING.api_version,
            "kind": _BINDING.kind,
            "metadata": {"name": "rig-kubelet-api"},
            "roleRef": role,
            "subjects": [subject],
        }
        self.client.create(binding, _BINDING)

    def join(self, name: str, gpus: int = 0, labels: c.Mapping[str, str] | None = None) -> KubernetesNode:
        """Creates a machine, and waits until its node is Ready."""
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
        return any(
            condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions", ())
        )

    def pods(self, node: str, app: str) -> list[dict[str, t.Any]]:
        """Pods of an app on a node, the newest last. During a replacement, there may be none for a moment."""
        pods = self.client.list(POD, label_selector=f"app={app}", field_selector=f"spec.nodeName={node}").items
        return sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def pod(self, node: str, app: str) -> dict[str, t.Any]:
        return self.pods(node, app)[-1]

    def replace_pod(self, node: str, app: str) -> None:
        metadata = self.pod(node, app)["metadata"]
        self.client.delete(POD, metadata["name"], metadata["namespace"])
        self.wait(
            f"another pod of {app} exists",
            lambda: any(pod["metadata"]["uid"] != metadata["uid"] for pod in self.pods(node, app)),
        )

    def gpus(self, node: str) -> tuple[str, str]:
        """Capacity and allocatable of a node."""
        status = self.client.get(NODE, node)["status"]
        return status["capacity"].get(WHOLE, ""), status["allocatable"].get(WHOLE, "")

    def kubelet_metrics(self, node: str) -> str:
        """What the kubelet of a node counts and measures, in the format of Prometheus."""
        path = f"/api/v1/nodes/{node}/proxy/metrics"
        return str(
            self.client._transport.call(Request("GET", path, "reading the kubelet's metrics", accept="*/*")).text
        )

    def others(self, node: str) -> list[str]:
        """Names of all nodes but one."""
        names = (item["metadata"]["name"] for item in self.client.list(NODE, metadata_only=True).items)
        return sorted(name for name in names if name != node)

    def wait(self, what: str, done: c.Callable[[], t.Any], seconds: float = 240) -> t.Any:
        """Waits until `done` returns a true value, and returns that."""
        end = time.monotonic() + seconds
        while not (result := done()):
            assert time.monotonic() < end, f"{what}: not after {seconds:.0f} s"
            time.sleep(0.1)
        return result
