# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox as tests use it: runs of playbooks on it, and what its API server reports about nodes and pods.

cluster = Cluster(make_sandbox(FLEET), hwaccel_wait_timeout=240)
cluster.deploy()
until(lambda: cluster.gpus("gpu-0") == 8, "gpu-0 to offer its GPUs")
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

#: Namespaces of the collection: DaemonSets on nodes, and controllers.
AGENTS, CONTROLLERS = "hwaccel-gpu", "hwaccel-gpu-system"
GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559}

Obj = dict[str, t.Any]


def until(
    done: c.Callable[[], bool], what: str, seconds: float = 240, seen: c.Callable[[], t.Any] = lambda: ""
) -> None:
    """Wait until a condition holds. The timeout is generous, because the duration depends on the load of the machine only.

    seen: the observed state, for the message of the AssertionError that ends the wait after these seconds.
    """
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}: {seen()}"
        time.sleep(0.2)


def is_ready(pod: Obj) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def gpus_of(node: Obj) -> int:
    """GPUs of a Node object that the scheduler can assign to pods."""
    return resources.total(schedulable.observed(reduce_node(node, [])))


class Cluster:
    """variables: inventory variables of every run, unless a run has its own."""

    def __init__(self, sandbox: Sandbox, **variables: t.Any) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        self.variables = variables

    def hosts(self, **variables: t.Any) -> site.Clusters:
        """An inventory with this cluster as its only host."""
        return {"one": site.cluster(self.sandbox.kubeconfig, **self.variables | variables)}

    def run(self, playbook: str, *arguments: str, warnings: t.Sequence[str] = (), **variables: t.Any) -> site.Run:
        """A run of a playbook. arguments and warnings: as in `site.playbook`."""
        return site.playbook(playbook, self.hosts(**variables), *arguments, warnings=warnings)

    def deploy(self, **variables: t.Any) -> site.Run:
        """A run of `site` that must succeed."""
        run = self.run("site", **variables)
        assert run.rc == 0, run.stdout[-6000:]
        return run

    def nodes(self) -> dict[str, Obj]:
        """Node objects by name."""
        return {node["metadata"]["name"]: node for node in self.client.list(self.client.resource("v1", "Node")).items}

    def node(self, name: str) -> Obj:
        return self.client.get(self.client.resource("v1", "Node"), name)

    def gpus(self, name: str) -> int:
        return gpus_of(self.node(name))

    def taints(self, name: str) -> dict[str, str]:
        """Values by key."""
        return {taint["key"]: taint.get("value", "") for taint in self.node(name)["spec"].get("taints") or []}

    def quarantined(self) -> set[str]:
        return {
            name for name, node in self.nodes().items() if names.QUARANTINE in (node["metadata"].get("labels") or {})
        }

    def pods(self, *apps: str, node: str = "", namespace: str = AGENTS) -> Page:
        """Pods by their label app and their node. A watch can start at the resource version of the page."""
        return self.client.list(
            self.client.resource("v1", "Pod"),
            namespace,
            label_selector=f"app in ({','.join(apps)})" if apps else "",
            field_selector=f"spec.nodeName={node}" if node else "",
        )

    def containers(self, app: str, node: str) -> list[Obj]:
        """Statuses of the containers in the app's pods on a node, without init containers."""
        pods = self.pods(app, node=node).items
        return [status for pod in pods for status in pod["status"].get("containerStatuses") or []]

    def runs(self, app: str, node: str) -> bool:
        """Whether the app has pods on a node, and all of them are ready."""
        pods = self.pods(app, node=node).items
        return bool(pods) and all(map(is_ready, pods))

    def restarts(self, app: str, node: str) -> int:
        return sum(status["restartCount"] for status in self.containers(app, node))

    def waiting_reason(self, app: str, node: str) -> str:
        """Why a container of the app does not run, "" where it runs."""
        return "".join(status["state"].get("waiting", {}).get("reason", "") for status in self.containers(app, node))

    def jobs(self, label: str = RUN_LABEL) -> list[str]:
        """Names of Jobs and pods with a label, by default of those that the collection's modules have created."""
        kinds = (self.client.resource("batch/v1", "Job"), self.client.resource("v1", "Pod"))
        items = [
            item for kind in kinds for item in self.client.list(kind, label_selector=label, metadata_only=True).items
        ]
        return [item["metadata"]["name"] for item in items]

    @contextlib.contextmanager
    def user_pod(self, node: str, gpus: int) -> c.Iterator[None]:
        """A user's pod default/job holds GPUs of a node."""
        pods = self.client.resource("v1", "Pod")
        container = {
            "name": "job",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"limits": {"nvidia.com/gpu": gpus}},
        }
        spec = {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}],
        }
        self.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "default"}, "spec": spec}, pods
        )
        until(lambda: self.client.get(pods, "job", "default")["status"].get("phase") == "Running", "the job to run")
        try:
            yield
        finally:
            self.client.delete(pods, "job", "default")
            until(
                lambda: not self.client.list(pods, "default", field_selector="metadata.name=job").items,
                "the job to release its GPUs",
            )
