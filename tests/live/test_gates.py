# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Effects of a fault on one node on a whole run of site, and what nodes do without a run.

Runtime: four runs of site on five nodes, each of 20 CPU seconds.
"""

from __future__ import annotations

import re
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Page
from ansible_collections.hwaccel.gpu.tests.live.support import site, transcripts
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, GPU, Cluster, until

COUNT = 4
POOLS = [{"name": "gpu", "selector": "pool=gpu", "gpu": {"count": 8}}]
VARIABLES = {"hwaccel_wait_timeout": 240, "hwaccel_max_failed": "20%", "hwaccel_pools": POOLS}
#: For the first two, the driver container compiles the kernel modules. For the last one, NVIDIA publishes an image that contains them.
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


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    cluster = Cluster(make_sandbox(FLEET), **VARIABLES)
    cluster.deploy()
    assert {cluster.gpus(name) for name in (*(f"gpu-{number}" for number in range(COUNT)), PRECOMPILED)} == {8}
    return cluster


def test_more_failed_nodes_than_allowed_quarantine_none(cluster: Cluster) -> None:
    for name in ("gpu-0", "gpu-2"):
        cluster.sandbox.add_fault("driver_load_failure", node=name)
        cluster.sandbox.reboot(name)
    run = cluster.run("site")
    assert run.rc != 0
    assert "2 of 5 nodes failed, 1 allowed" in run.failures[0], run.failures
    assert all(name in run.failures[0] for name in ("gpu-0", "gpu-2"))
    assert not any(names.QUARANTINE in cluster.taints(f"gpu-{number}") for number in range(COUNT))
    assert run.results("node_gate")[-1]["gate"] == "driver", "the cluster stops at that stage"
    # Each is reported once, at the end, as lines.
    assert [run.stdout.count(f"{name} (pool gpu) failed at gate driver") for name in ("gpu-0", "gpu-2")] == [1, 1]
    assert "\\n" not in run.stdout
    transcripts.check("failed", transcripts.closing(run.stdout, "one"))
    cluster.sandbox.clear_faults()
    for name in ("gpu-0", "gpu-2"):
        cluster.sandbox.reboot(name)
        until(lambda name=name: cluster.gpus(name) == 8, f"{name} to be healthy again")


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
    observed: list[int] = []

    def recovered() -> bool:
        observed.append(cluster.gpus("gpu-3"))
        return observed[-1] == 8 and (0 in observed or len(observed) > 40)

    until(recovered, "gpu-3 to offer its GPUs again")


@pytest.mark.parametrize("name", ["gpu-0", PRECOMPILED])
def test_a_killed_driver_closes_the_gate_and_it_opens_by_itself(cluster: Cluster, name: str) -> None:
    """These nodes have to be healthy afterwards, because the next run judges faulty nodes beside them."""
    until(lambda: cluster.gpus(name) == 8 and cluster.runs(VALIDATOR, name), f"{name} to be healthy")
    restarts = cluster.restarts(VALIDATOR, name)
    before = cluster.pods(VALIDATOR, node=name)
    cluster.sandbox.kill_container(name, "nvidia-driver-ctr")
    await_closed_and_opened(cluster, name, before)
    until(lambda: cluster.restarts(VALIDATOR, name) > restarts, "the validator to validate again")
    until(lambda: cluster.gpus(name) == 8, "the GPUs to be offered")


def await_closed_and_opened(cluster: Cluster, name: str, before: Page) -> None:
    """Follows the events of the validator pod, which is the node's gate, because the gate can close and open between two requests for its state."""
    pods, states = cluster.client.resource("v1", "Pod"), ["True"]
    place = {"label_selector": f"app={VALIDATOR}", "field_selector": f"spec.nodeName={name}"}
    for event in cluster.client.watch(
        pods, AGENTS, resource_version=before.resource_version, deadline=time.monotonic() + 240, **place
    ):
        ready = {row["type"]: row["status"] for row in event.object.get("status", {}).get("conditions") or []}.get(
            "Ready"
        )
        if event.type == "MODIFIED" and ready != states[-1]:
            states.append(ready)
        if states == ["True", "False", "True"]:
            return
    raise AssertionError(f"the gate of {name} had only the states {states}")


#: By node: its fault, the gate that fails, and the reason that is reported. The last node joins later, because the others have the image already.
FAULTS = {
    "gpu-1": ("driver_load_failure", "driver", "nvidia-driver-ctr"),
    "gpu-2": ("plugin_fewer_gpus", "devices", "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"),
    "fresh-0": ("image_pull_failure", "driver", "the image cannot be pulled"),
}
FRESH = {"name": "fresh", "count": 1, "kernel": KERNEL, "gpu": GPU, "labels": {"pool": "gpu"}}
REPAIRED = ("gpu-1", "gpu-2")


@pytest.fixture(scope="module")
def faulty(cluster: Cluster) -> site.Run:
    """A run over all faulty nodes."""
    fresh = FRESH | {"faults": [{"name": "image_pull_failure", "image": "driver"}]}
    cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], fresh]})
    for name in REPAIRED:
        cluster.sandbox.add_fault(FAULTS[name][0], node=name)
        cluster.sandbox.reboot(name)
    until(
        lambda: cluster.waiting_reason("nvidia-driver", "fresh-0") in ("ErrImagePull", "ImagePullBackOff"),
        "the pull of the image to fail",
    )
    until(lambda: cluster.gpus("gpu-2") == 7, "gpu-2 to lose a GPU", seen=lambda: cluster.gpus("gpu-2"))
    # For the gate, the pull may still succeed, so this node fails only at the timeout.
    return cluster.run("site", hwaccel_wait_timeout=40, hwaccel_max_failed="50%")


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_faulty_node_is_quarantined_and_reported(cluster: Cluster, faulty: site.Run, name: str) -> None:
    _fault, gate, reason = FAULTS[name]
    assert faulty.rc != 0
    (last,) = faulty.failures
    (message,) = re.findall(rf"^  {name} \(pool gpu\) failed at gate {gate}, .*\n(?:    .*\n)+", last, re.MULTILINE)
    for part in (reason, "    Next: "):
        assert part in message, last
    assert cluster.taints(name)[names.QUARANTINE] == gate
    metadata = cluster.node(name)["metadata"]
    assert metadata["labels"][names.QUARANTINE] == gate
    assert metadata["annotations"][names.QUARANTINE_REASON]


def test_healthy_nodes_are_not_affected(cluster: Cluster, faulty: site.Run) -> None:
    """The run reports which nodes failed, and only these accept no new pods."""
    assert faulty.summary["one"]["failed_nodes"] == sorted(FAULTS)
    others = [name for name in (*(f"gpu-{number}" for number in range(COUNT)), PRECOMPILED) if name not in FAULTS]
    assert {cluster.gpus(other) for other in others} == {8}
    assert not any(names.QUARANTINE in cluster.taints(other) for other in others)


def test_repaired_nodes_are_released_and_keep_taints_and_cordons_of_others(cluster: Cluster, faulty: site.Run) -> None:
    """The collection removes its own taint only."""
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
    run = cluster.run("site")
    assert (run.rc, run.summary["one"]["failed_nodes"]) == (0, []), run.stdout[-6000:]
    for name in FAULTS:
        assert names.QUARANTINE not in cluster.taints(name)
        assert names.QUARANTINE not in (cluster.node(name)["metadata"].get("labels") or {})
        assert names.QUARANTINE_REASON not in (cluster.node(name)["metadata"].get("annotations") or {})
        assert cluster.gpus(name) == 8
    for name in REPAIRED:
        assert "example.com/repair" in cluster.taints(name)
        assert cluster.node(name)["spec"]["unschedulable"] is True
