# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many faults at once, each on a node of its own: a run of site reports link, reason and next step of each, the other nodes are not affected,
and the next run succeeds after the machines are repaired.

Runtime: three runs of site on eleven nodes. The second one waits until the gates time out.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU, Cluster, until


@dataclasses.dataclass(frozen=True)
class Case:
    """A fault, and what a run reports about its node. needs: "reboot" if only a reboot shows the fault, "join" if only a new node shows it.

    reason: a regular expression, because a container that is restarted repeatedly may be running when the gate ends.
    """

    fault: dict[str, str]
    link: str
    reason: str
    next_step: str
    needs: str = ""


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
#: Joins with the fault, and is healthy nevertheless.
SLOW = {"name": "slow", "count": 1, "faults": [{"name": "slow_node", "factor": "20"}]}
VARIABLES = {
    "hwaccel_wait_timeout": 240,
    "hwaccel_max_failed": "90%",
    "hwaccel_pools": [{"name": "gpu", "selector": "pool=gpu", "gpu": {"count": 8}}],
}
#: Warnings that are correct on a cluster with such nodes.
WARNINGS = ["gate .* stopped waiting for ", "Deployment nfd-.*; its node .* is not Ready"]


def fleet(pools: t.Iterable[dict[str, t.Any]]) -> dict[str, t.Any]:
    common = {"count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU, "labels": {"pool": "gpu"}}
    return {"time_scale": 0.01, "pools": [{**common, **pool} for pool in pools]}


def pools(*, faulty: bool = False, joined: bool = False) -> list[dict[str, t.Any]]:
    result: list[dict[str, t.Any]] = [{"name": "healthy"}]
    result += [
        {"name": name, "faults": [case.fault] if faulty else []}
        for name, case in CASES.items()
        if joined or case.needs != "join"
    ]
    return [*result, SLOW] if joined else result


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    cluster = Cluster(make_sandbox(fleet(pools())), **VARIABLES)
    cluster.deploy()
    return cluster


@pytest.fixture(scope="module")
def faulty(cluster: Cluster) -> site.Run:
    """The run over a fleet in which every fault exists before the run starts."""
    cluster.sandbox.set_fleet(fleet(pools(faulty=True, joined=True)))
    for name in (name for name, case in CASES.items() if case.needs == "reboot"):
        cluster.sandbox.reboot(f"{name}-0")
    until(
        lambda: cluster.gpus("ecc-0") == 7,
        "the device plugin to report a GPU as unhealthy",
        seen=lambda: cluster.gpus("ecc-0"),
    )
    until(
        lambda: cluster.gpus("bus-0") == 0,
        "the gate to close after a GPU has fallen off the bus",
        seen=lambda: cluster.gpus("bus-0"),
    )
    # For some of the faults the gate waits until its timeout, so the timeout is short.
    return cluster.run("site", warnings=WARNINGS, hwaccel_wait_timeout=60)


@pytest.mark.parametrize("name", list(CASES))
def test_each_fault_is_reported_with_link_reason_and_next_step(faulty: site.Run, name: str) -> None:
    case, node = CASES[name], f"{name}-0"
    (row,) = [row for result in faulty.results("node_gate") for row in result["faults"] if row["node"] == node]
    assert (row["state"], row["link"]) == ("failed", case.link), row
    assert re.search(case.reason, row["reason"]), row
    assert case.next_step in row["next_step"], row
    assert node in faulty.failures[-1]


def test_healthy_and_slow_nodes_are_not_affected(cluster: Cluster, faulty: site.Run) -> None:
    assert faulty.rc != 0
    assert faulty.summary["one"]["failed_nodes"] == sorted(f"{name}-0" for name in CASES)
    assert cluster.quarantined() == {f"{name}-0" for name in CASES}
    assert [cluster.gpus(name) for name in ("healthy-0", "slow-0")] == [8, 8]


def test_the_next_run_succeeds_on_repaired_machines(cluster: Cluster, faulty: site.Run) -> None:
    cluster.sandbox.set_fleet(fleet(pools(joined=True)))
    for name in ("bus", "ecc", "unsupported", "fabric"):
        cluster.sandbox.reboot(f"{name}-0")
    cluster.deploy()
    assert cluster.quarantined() == set()
    assert {cluster.gpus(f"{name}-0") for name in (*CASES, "healthy", "slow")} == {8}
