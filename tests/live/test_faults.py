# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many faults at once, each on a node of its own: a run of site tells of each which link, why and what to do, the other nodes go on, and once
the machines are mended the next run is well.

Runtime: three runs of site on eleven nodes; the one in the middle waits for what does not come.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox


@dataclasses.dataclass(frozen=True)
class Case:
    """A fault, and what a run tells of its node. wants: "reboot" where it shows at a start only, "join" where only on a node that is new.

    reason: a regular expression. A container that is tried again and again can run once more just when the gate ends.
    """

    fault: dict[str, str]
    link: str
    reason: str
    next_step: str
    wants: str = ""


#: By pool; each has one node.
CASES = {
    "bus": Case(
        {"name": "gpu_off_bus"},
        "driver",
        "the readiness probe currently does not confirm driver and devices",
        "the GPU does not respond to the driver",
    ),
    "ecc": Case(
        {"name": "gpu_ecc_error"},
        "schedulable",
        "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected",
        "uncorrectable error",
    ),
    "unsupported": Case(
        {"name": "gpu_unsupported"},
        "driver",
        "container nvidia-driver-ctr",
        "the driver does not support this GPU",
        "reboot",
    ),
    "fabric": Case(
        {"name": "fabric_manager_down"},
        "cuda",
        "container cuda-validation|the CUDA sample is running on every GPU",
        "fabric manager",
        "reboot",
    ),
    "unready": Case(
        {"name": "node_not_ready"}, "hardware seen", "the node is not Ready: KubeletNotReady", "repair the kubelet"
    ),
    "gone": Case(
        {"name": "kubelet_gone"},
        "hardware seen",
        "not Ready: NodeStatusUnknown: Kubelet stopped posting",
        "repair the kubelet",
    ),
    "flapping": Case(
        {"name": "node_flapping"}, "hardware seen", "the node became NotReady", "check the logs of its kubelet"
    ),
    "starved": Case(
        {"name": "out_of_memory", "container": "nfd-worker"},
        "hardware seen",
        "OOMKilled",
        "give the container more memory",
        "join",
    ),
}
#: Joins with the fault, and is well all the same.
SLOW = {"name": "slow", "count": 1, "faults": [{"name": "slow_node", "factor": "20"}]}
VARIABLES = {
    "hwaccel_max_failed": "90%",
    "hwaccel_pools": [{"name": "gpu", "selector": "pool=gpu", "gpu": {"count": 8}}],
}
#: What is right to be said of a cluster with such nodes.
WARNINGS = ["gate .* stopped waiting for ", "Deployment nfd-.*; its node .* is not Ready"]


def fleet(pools: t.Iterable[dict[str, t.Any]]) -> dict[str, t.Any]:
    common = {"count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU, "labels": {"pool": "gpu"}}
    return {"time_scale": 0.01, "pools": [{**common, **pool} for pool in pools]}


def pools(*, faulty: bool = False, joined: bool = False) -> list[dict[str, t.Any]]:
    found: list[dict[str, t.Any]] = [{"name": "well"}]
    found += [
        {"name": name, "faults": [case.fault] if faulty else []}
        for name, case in CASES.items()
        if joined or case.wants != "join"
    ]
    return [*found, SLOW] if joined else found


class Cluster:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})

    def site(self, warnings: t.Sequence[str] = (), patience: int = 240) -> site.Run:
        return site.playbook(
            "site",
            {"one": site.cluster(self.sandbox.kubeconfig, hwaccel_wait_timeout=patience, **VARIABLES)},
            warnings=warnings,
        )

    def node(self, name: str) -> dict[str, t.Any]:
        return self.client.get(self.client.resource("v1", "Node"), name)

    def gpus(self, name: str) -> int:
        """GPUs that the scheduler can give out on a node."""
        return resources.total(schedulable.observed(reduce_node(self.node(name), [])))

    def quarantined(self) -> set[str]:
        nodes = self.client.list(self.client.resource("v1", "Node")).items
        return {
            node["metadata"]["name"] for node in nodes if names.QUARANTINE in (node["metadata"].get("labels") or {})
        }


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    made = Cluster(make_sandbox(fleet(pools())))
    run = made.site()
    assert run.rc == 0, run.stdout[-6000:]
    return made


@pytest.fixture(scope="module")
def told(cluster: Cluster) -> site.Run:
    """The run over a fleet in which every fault is there before it begins."""
    cluster.sandbox.set_fleet(fleet(pools(faulty=True, joined=True)))
    for name in (name for name, case in CASES.items() if case.wants == "reboot"):
        cluster.sandbox.reboot(f"{name}-0")
    until(lambda: cluster.gpus("ecc-0") == 7, "the plugin to call a GPU unhealthy", seen=lambda: cluster.gpus("ecc-0"))
    until(
        lambda: cluster.gpus("bus-0") == 0,
        "the gate to close behind a GPU that fell off the bus",
        seen=lambda: cluster.gpus("bus-0"),
    )
    # Some of them would be waited for to the end.
    return cluster.site(WARNINGS, 60)


@pytest.mark.parametrize("name", list(CASES))
def test_each_fault_is_told_with_link_reason_and_next_step(told: site.Run, name: str) -> None:
    case, node = CASES[name], f"{name}-0"
    (row,) = [row for result in told.results("node_gate") for row in result["faults"] if row["node"] == node]
    assert (row["state"], row["link"]) == ("failed", case.link), row
    assert re.search(case.reason, row["reason"]), row
    assert case.next_step in row["next_step"], row
    assert node in told.failures[-1]


def test_the_others_go_on_and_a_slow_one_is_only_slow(cluster: Cluster, told: site.Run) -> None:
    assert told.rc != 0
    assert told.summary["one"]["failed_nodes"] == sorted(f"{name}-0" for name in CASES)
    assert cluster.quarantined() == {f"{name}-0" for name in CASES}
    assert [cluster.gpus(name) for name in ("well-0", "slow-0")] == [8, 8]


def test_the_next_run_over_mended_machines_is_well(cluster: Cluster, told: site.Run) -> None:
    cluster.sandbox.set_fleet(fleet(pools(joined=True)))
    for name in ("bus", "ecc", "unsupported", "fabric"):
        cluster.sandbox.reboot(f"{name}-0")
    run = cluster.site()
    assert run.rc == 0, run.stdout[-6000:]
    assert cluster.quarantined() == set()
    assert {cluster.gpus(f"{name}-0") for name in (*CASES, "well", "slow")} == {8}
