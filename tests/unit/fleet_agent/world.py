# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet agent without a server: its own classes, controlled by tests, on a cluster in memory."""

from __future__ import annotations

import concurrent.futures
import time
import types
import typing as t

from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, served
from ansible_collections.hwaccel.gpu.tests.unit.clusters.rest import RestApi
from fleet_agent.clock import Clock
from fleet_agent.cluster.api import ApiError
from fleet_agent.kubelet.node import Kubelet
from fleet_agent.kubelet.pods import Pod
from fleet_agent.kubelet.volumes import Store
from fleet_agent.loop import Loop
from fleet_agent.machine.faults import Faults
from fleet_agent.machine.fleet import parse_node

Obj = dict[str, t.Any]
H100 = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559, "mig_capable": True}


RESOURCE_CLAIM = served("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
NODE_FEATURE = served("nfd.k8s-sigs.io/v1alpha1", "NodeFeature", "nodefeatures")


def _with_token(spec: Obj) -> Obj:
    """What the API server's admission adds: the token of the pod's ServiceAccount."""
    if spec.get("automountServiceAccountToken") is False:
        return spec
    name, items = "kube-api-access", [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
    sources: list[Obj] = [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": items}}]
    mount = {"name": name, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    lists = {
        key: [{**one, "volumeMounts": [*(one.get("volumeMounts") or ()), mount]} for one in spec[key]]
        for key in ("containers", "initContainers")
        if key in spec
    }
    return {
        **spec,
        **lists,
        "volumes": [*(spec.get("volumes") or ()), {"name": name, "projected": {"sources": sources}}],
    }


class World:
    """Replaces Agent for kubelets, with helpers for tests."""

    METADATA = ""
    quiet = 0.0

    def __init__(self, scale: float) -> None:
        cluster = Cluster(
            {"kind": "Namespace", "metadata": {"name": "ns"}}, kinds=(*KINDS, NODE_FEATURE, RESOURCE_CLAIM)
        )
        cluster.guarded = ()
        self.api = RestApi(cluster, ApiError)
        self.clock = Clock(scale, 1)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.loop = Loop(self.clock, self.pool)
        self.images = frozenset(("example.com/job:1", "example.com/app:2", "example.com/some/image:1"))
        self.store, self.faults, self.runtime_classes = Store(), Faults(), {"nvidia": "nvidia"}
        self.nodes: dict[str, Kubelet] = {}
        self.port, self.version, self.incarnation = 1, "v1.36.4", "test"
        self.warnings: list[tuple[str, str]] = []
        self.events = types.SimpleNamespace(
            warn=lambda _k, _p, reason, message: self.warnings.append((reason, message))
        )
        self.statuses = types.SimpleNamespace(add=lambda _pod: None)

    def polite(self, _proc: t.Any) -> float:
        return 0.0

    def node_ready(self, kubelet: Kubelet) -> None:
        pass

    def node(self, name: str = "n0", **spec: t.Any) -> Kubelet:
        defaults: Obj = {"pool": "p", "kernel": "6.8.0-106-generic", "gpu": H100}
        kubelet = self.nodes[name] = Kubelet(self, parse_node(name, {**defaults, **spec}), len(self.nodes) + 1)
        self.loop.spawn(kubelet.register())
        self.until(lambda: kubelet.up)
        return kubelet

    def pod(self, kubelet: Kubelet, spec: Obj, **metadata: t.Any) -> Pod:
        number = sum(len(k.pods) for k in self.nodes.values())
        item = {
            "metadata": {"name": f"pod-{number}", "namespace": "ns", "uid": f"pod-uid-{number}", **metadata},
            "spec": {"nodeName": kubelet.name, **_with_token(spec)},
        }
        self.api.cluster.put({"kind": "Pod", **item})
        kubelet.take_pod("ADDED", item)
        return kubelet.pods[item["metadata"]["uid"]]

    def delete(self, pod: Pod, grace: int = 30) -> None:
        metadata = {
            "name": pod.name,
            "namespace": "ns",
            "uid": pod.uid,
            "deletionTimestamp": "now",
            "deletionGracePeriodSeconds": grace,
        }
        pod.kubelet.take_pod("MODIFIED", {"metadata": metadata, "spec": {"nodeName": pod.kubelet.name}})

    def until(self, condition: t.Callable[[], t.Any], seconds: float = 240.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "did not happen in time"
            self.loop.turn()

    def pass_time(self, node_seconds: float) -> None:
        end = time.monotonic() + self.clock.real(node_seconds)
        while time.monotonic() < end:
            self.loop.later(self.clock.real(0.5), lambda: None)
            self.loop.turn()
