# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fault on one node does to a whole run of site, and what nodes do with nobody running one.

Runtime: four runs of site on five nodes, each of 20 CPU seconds.
"""

from __future__ import annotations

import json
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Page
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

COUNT = 4
POOLS = [{"name": "gpu", "selector": "pool=gpu", "gpu": {"count": 8}}]
VARIABLES = {"hwaccel_wait_timeout": 240, "hwaccel_max_failed": "20%", "hwaccel_pools": POOLS}
#: The driver is built in place for the first two; for the last one NVIDIA publishes an image with its modules.
KERNEL, OTHER_KERNEL, PRECOMPILED_KERNEL = "6.8.0-45-generic", "6.8.0-49-generic", "6.8.0-134-generic"
#: The node with that kernel.
PRECOMPILED = "precompiled-0"
VALIDATOR = "nvidia-operator-validator"
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {"name": "gpu", "count": COUNT, "kernel": KERNEL, "gpu": GPU, "labels": {"pool": "gpu"}},
        {"name": "precompiled", "count": 1, "kernel": PRECOMPILED_KERNEL, "gpu": GPU, "labels": {"pool": "gpu"}},
    ],
}


class Cluster:
    """The sandbox, and what its nodes look like."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})

    def site(self, **variables: t.Any) -> site.Run:
        return site.playbook("site", {"one": site.cluster(self.sandbox.kubeconfig, **{**VARIABLES, **variables})})

    def node(self, name: str) -> dict[str, t.Any]:
        return self.client.get(self.client.resource("v1", "Node"), name)

    def gpus(self, name: str) -> int:
        """GPUs that the scheduler can give out on a node."""
        return resources.total(schedulable.observed(reduce_node(self.node(name), [])))

    def taints(self, name: str) -> dict[str, str]:
        return {taint["key"]: taint.get("value", "") for taint in self.node(name)["spec"].get("taints") or []}

    def pods(self, name: str, app: str) -> Page:
        return self.client.list(
            self.client.resource("v1", "Pod"),
            AGENTS,
            label_selector=f"app={app}",
            field_selector=f"spec.nodeName={name}",
        )

    def containers(self, name: str, app: str) -> list[dict[str, t.Any]]:
        return [
            status for item in self.pods(name, app).items for status in item["status"].get("containerStatuses") or []
        ]

    def restarts(self, name: str, app: str) -> int:
        return sum(status["restartCount"] for status in self.containers(name, app))

    def waits_for(self, name: str, app: str) -> str:
        """Why its container does not run."""
        return "".join(status["state"].get("waiting", {}).get("reason", "") for status in self.containers(name, app))


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    made = Cluster(make_sandbox(FLEET))
    run = made.site()
    assert run.rc == 0, run.stdout[-6000:]
    assert {made.gpus(name) for name in (*(f"gpu-{number}" for number in range(COUNT)), PRECOMPILED)} == {8}
    return made


def test_more_than_is_borne_quarantines_nobody(cluster: Cluster) -> None:
    for name in ("gpu-0", "gpu-2"):
        cluster.sandbox.add_fault("driver_load_failure", node=name)
        cluster.sandbox.reboot(name)
    run = cluster.site()
    assert run.rc != 0
    assert "2 of 5 nodes failed, 1 allowed" in run.failures[0], run.failures
    assert all(name in run.failures[0] for name in ("gpu-0", "gpu-2"))
    assert not any(names.QUARANTINE in cluster.taints(f"gpu-{number}") for number in range(COUNT))
    assert run.results("node_gate")[-1]["gate"] == "driver", "the cluster stops at that stage"
    cluster.sandbox.clear_faults()
    for name in ("gpu-0", "gpu-2"):
        cluster.sandbox.reboot(name)
        until(lambda name=name: cluster.gpus(name) == 8, f"{name} to be well again")


def test_a_late_node_needs_no_run(cluster: Cluster) -> None:
    cluster.sandbox.set_fleet(
        {
            **FLEET,
            "pools": [
                *FLEET["pools"],
                {"name": "late", "count": 1, "kernel": KERNEL, "gpu": GPU, "labels": {"pool": "gpu"}},
            ],
        }
    )
    until(lambda: cluster.gpus("late-0") == 8, "late-0 to offer its GPUs")


@pytest.mark.parametrize("kernel", [KERNEL, OTHER_KERNEL], ids=["same-kernel", "another-kernel"])
def test_a_rebooted_node_needs_no_run(cluster: Cluster, kernel: str) -> None:
    cluster.sandbox.reboot("gpu-3", kernel)
    assert cluster.node("gpu-3")["status"]["nodeInfo"]["kernelVersion"] == kernel
    seen: list[int] = []

    def back() -> bool:
        seen.append(cluster.gpus("gpu-3"))
        return seen[-1] == 8 and (0 in seen or len(seen) > 40)

    until(back, "gpu-3 to offer its GPUs again")


@pytest.mark.parametrize("name", ["gpu-0", PRECOMPILED])
def test_a_killed_driver_closes_the_gate_and_it_opens_by_itself(cluster: Cluster, name: str) -> None:
    """The next run, over faulty nodes, finds these well."""
    until(
        lambda: cluster.gpus(name) == 8 and all(one["ready"] for one in cluster.containers(name, VALIDATOR)),
        f"{name} to be well",
    )
    before = cluster.restarts(name, VALIDATOR)
    seen = cluster.pods(name, VALIDATOR)
    order = {"kill": {"node": name, "container": "nvidia-driver-ctr", "signal": "KILL"}}
    with (cluster.sandbox.state_dir / "control.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(order) + "\n")
    closed_and_opened(cluster, name, seen)
    until(lambda: cluster.restarts(name, VALIDATOR) > before, "the validator to prove again")
    until(lambda: cluster.gpus(name) == 8, "the GPUs to be offered")


def closed_and_opened(cluster: Cluster, name: str, seen: Page) -> None:
    """By the events of the node's validator pod, which is its gate: between two looks it can have been closed and be open again."""
    pods, states = cluster.client.resource("v1", "Pod"), ["True"]
    place = {"label_selector": f"app={VALIDATOR}", "field_selector": f"spec.nodeName={name}"}
    for event in cluster.client.watch(
        pods, AGENTS, resource_version=seen.resource_version, deadline=time.monotonic() + 240, **place
    ):
        ready = {row["type"]: row["status"] for row in event.object.get("status", {}).get("conditions") or []}.get(
            "Ready"
        )
        if event.type == "MODIFIED" and ready != states[-1]:
            states.append(ready)
        if states == ["True", "False", "True"]:
            return
    raise AssertionError(f"the gate of {name} has gone through {states}")


#: On which node which fault is, at which gate it shows, and what is said of it. The last one joins: the others have the image.
FAULTS = {
    "gpu-1": ("driver_load_failure", "driver", "nvidia-driver-ctr"),
    "gpu-2": ("plugin_fewer_gpus", "devices", "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"),
    "fresh-0": ("image_pull_failure", "driver", "the image cannot be pulled"),
}
FRESH = {"name": "fresh", "count": 1, "kernel": KERNEL, "gpu": GPU, "labels": {"pool": "gpu"}}
REPAIRED = ("gpu-1", "gpu-2")


@pytest.fixture(scope="module")
def faulty(cluster: Cluster) -> site.Run:
    """A run over all of them."""
    fresh = FRESH | {"faults": [{"name": "image_pull_failure", "image": "driver"}]}
    cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], fresh]})
    for name in REPAIRED:
        cluster.sandbox.add_fault(FAULTS[name][0], node=name)
        cluster.sandbox.reboot(name)
    until(
        lambda: cluster.waits_for("fresh-0", "nvidia-driver") in ("ErrImagePull", "ImagePullBackOff"),
        "the image to be missed",
    )
    until(lambda: cluster.gpus("gpu-2") == 7, "gpu-2 to lose a GPU", seen=lambda: cluster.gpus("gpu-2"))
    # The image may still come, as far as the gate knows: that node fails by time alone.
    return cluster.site(hwaccel_wait_timeout=40, hwaccel_max_failed="50%")


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_faulty_node_is_out_and_told(cluster: Cluster, faulty: site.Run, name: str) -> None:
    _fault, gate, reason = FAULTS[name]
    assert faulty.rc != 0
    (last,) = faulty.failures
    (told,) = [line for line in last.splitlines() if f"{name} (pool gpu) failed at gate {gate}" in line]
    for part in (reason, "next: "):
        assert part in told, last
    assert cluster.taints(name)[names.QUARANTINE] == gate
    metadata = cluster.node(name)["metadata"]
    assert metadata["labels"][names.QUARANTINE] == gate
    assert metadata["annotations"][names.QUARANTINE_REASON]


def test_the_others_work(cluster: Cluster, faulty: site.Run) -> None:
    """The run says which nodes failed, and they alone are kept from new pods."""
    assert faulty.summary["one"]["failed_nodes"] == sorted(FAULTS)
    others = [name for name in (*(f"gpu-{number}" for number in range(COUNT)), PRECOMPILED) if name not in FAULTS]
    assert {cluster.gpus(other) for other in others} == {8}
    assert not any(names.QUARANTINE in cluster.taints(other) for other in others)


def test_mended_nodes_are_back_with_what_somebody_else_put_on_them(cluster: Cluster, faulty: site.Run) -> None:
    """What else keeps a node out is not ours to lift."""
    node = cluster.client.resource("v1", "Node")
    for name in REPAIRED:
        taints = [*cluster.node(name)["spec"]["taints"], {"key": "example.com/repair", "effect": "NoSchedule"}]
        cluster.client.patch(
            node, name, "", {"spec": {"taints": taints, "unschedulable": True}}, field_manager="people"
        )
    cluster.sandbox.clear_faults()
    cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], FRESH]})
    for name in REPAIRED:
        cluster.sandbox.reboot(name)
    run = cluster.site()
    assert (run.rc, run.summary["one"]["failed_nodes"]) == (0, []), run.stdout[-6000:]
    for name in FAULTS:
        assert names.QUARANTINE not in cluster.taints(name)
        assert names.QUARANTINE not in (cluster.node(name)["metadata"].get("labels") or {})
        assert names.QUARANTINE_REASON not in (cluster.node(name)["metadata"].get("annotations") or {})
        assert cluster.gpus(name) == 8
    for name in REPAIRED:
        assert "example.com/repair" in cluster.taints(name)
        assert cluster.node(name)["spec"]["unschedulable"] is True
