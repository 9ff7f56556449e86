# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletions that wait for pods: of a workload with foreground deletion, and of a Namespace."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import DELETED_AT, Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import DAEMON_SET, POD
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request


class WorkloadCluster(Cluster):
    """Pods on a Ready node without finalizers end immediately. Owners of other pods stay until a test removes them.

    https://kubernetes.io/docs/concepts/architecture/garbage-collection/#foreground-deletion
    """

    def __init__(self, **nodes: str) -> None:
        """`nodes`: status of the condition Ready by name."""
        super().__init__()
        for name, ready in nodes.items():
            status = {"conditions": [{"type": "Ready", "status": ready}]}
            self.put({"kind": "Node", "metadata": {"name": name}, "status": status})

    def run_pods(self, *nodes: str) -> None:
        """Create pods of the DaemonSet n/agent on these nodes."""
        owner = {"uid": self.stored(DAEMON_SET.kind, "agent")["metadata"]["uid"]}
        for number, name in enumerate(nodes):
            metadata = {"name": f"agent-{number}", "namespace": "n", "ownerReferences": [owner]}
            self.put({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": name}})

    def end(self, request: Request) -> None:
        if request.kind not in ("DaemonSet", "Namespace"):
            return super().end(request)
        obj = self.objects[request.place]
        if request.kind == "DaemonSet":
            assert request.body["propagationPolicy"] == "Foreground"
            pods = [pod for pod in self.all_of("Pod") if _owned_by(pod, obj)]
        else:
            pods = self.all_of("Pod", request.name)
        for pod in pods:
            pod["metadata"]["deletionTimestamp"] = DELETED_AT
            (ready,) = self.stored("Node", pod["spec"]["nodeName"])["status"]["conditions"]
            if ready["status"] == "True":
                self.end(Request("delete", POD, pod["metadata"]["namespace"], pod["metadata"]["name"]))
        if not any(pod in self.all_of("Pod") for pod in pods):
            return super().end(request)
        waits = {"finalizers": ["foregroundDeletion"]} if request.kind == "DaemonSet" else {}
        self.keep(request.place, obj | {"metadata": obj["metadata"] | {"deletionTimestamp": DELETED_AT} | waits})


def _owned_by(pod: Obj, owner: Obj) -> bool:
    return any(one["uid"] == owner["metadata"]["uid"] for one in pod["metadata"].get("ownerReferences") or ())
