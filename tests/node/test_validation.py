# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hwaccel.gpu.validate on a real node: a pod that gets its GPU from scheduler and kubelet, and what it tells of GPUs and drivers that are not as they should.

nvidia-smi and vectorAdd are stand-ins, with the words and exit codes of the real ones.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS
from ansible_collections.hwaccel.gpu.tests.node.conftest import POOLS, REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import PRODUCT, KubernetesNode
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import defaults
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

PLUGIN, VALIDATOR = "nvidia-device-plugin-daemonset", "nvidia-operator-validator"
DRIVER = defaults("driver")["driver_version"]
OLDER = "580.178.04"


@pytest.fixture(scope="module", autouse=True)
def proven(cluster: Cluster, enabled: Enabled) -> c.Iterator[None]:
    """A failure takes the node's proof away."""
    before = cluster.client.get(NODE, REAL)["metadata"]["annotations"].get(names.PROOF)
    yield
    cluster.client.patch(NODE, REAL, "", {"metadata": {"annotations": {names.PROOF: before}}})


def failure(cluster: Cluster) -> dict[str, t.Any]:
    """What a run of the module that fails says of the node, as data; on the screen it is the same."""
    pod = stack.validation_pod()
    options = RunOptions(namespace=AGENTS, schedule_timeout=240.0)
    settings = validation.Settings(
        pod, parse_pools(POOLS), frozenset(cluster.others(REAL)), always=True, options=options
    )
    outcome = validation.run(settings, cluster.client, Clock())
    assert outcome.values["failed_nodes"] == [REAL], outcome
    (row,) = outcome.values["faults"]
    shown = str(outcome.failure)
    assert all(part in shown for part in (f"node {REAL}", row["link"], row["reason"], row["next_step"])), shown
    assert left(cluster) == []
    return dict(row)


def proof(cluster: Cluster) -> dict[str, str]:
    return dict(json.loads(cluster.client.get(NODE, REAL)["metadata"]["annotations"].get(names.PROOF, "{}")))


def left(cluster: Cluster) -> list[str]:
    """Jobs and pods of validations."""
    kinds = (cluster.client.resource("batch/v1", "Job"), POD)
    return [
        item["metadata"]["name"] for kind in kinds for item in cluster.client.list(kind, label_selector=RUN_LABEL).items
    ]


def allocations(cluster: Cluster) -> int:
    """How often kubelet has asked the plugin for a GPU."""
    metadata = cluster.pod(REAL, PLUGIN)["metadata"]
    return cluster.client.logs(metadata["namespace"], metadata["name"], "nvidia-device-plugin", tail_lines=10000).count(
        "] Allocate GPU-"
    )


@contextlib.contextmanager
def faulty(cluster: Cluster, node: KubernetesNode, faults: dict[str, t.Any]) -> c.Iterator[None]:
    """A GPU that was sick once stays so to the plugin until it starts anew."""
    try:
        with node.faulty(faults):
            yield
    finally:
        if cluster.gpus(REAL) != ("2", "2"):
            cluster.replace_pod(REAL, PLUGIN)
            cluster.wait("both are back", lambda: cluster.gpus(REAL) == ("2", "2"))


@contextlib.contextmanager
def label(cluster: Cluster, value: str) -> c.Iterator[None]:
    """The driver's version, as feature discovery wrote it before the driver became another."""

    def write(version: str) -> None:
        cluster.client.patch(NODE, REAL, "", {"metadata": {"labels": {names.DRIVER_VERSION_LABEL: version}}})

    write(value)
    try:
        yield
    finally:
        write(DRIVER)


@contextlib.contextmanager
def module(cluster: Cluster, node: KubernetesNode, version: str) -> c.Iterator[None]:
    """Another is loaded than the libraries are of, as after an upgrade of the driver's packages without a reboot.

    The node's validator may have seen it meanwhile.
    """
    node.machine.sh(f"echo {version} >/sys/module/nvidia/version")
    try:
        yield
    finally:
        node.machine.sh(f"echo {DRIVER} >/sys/module/nvidia/version")
        cluster.wait(
            "the node is proven again",
            lambda: node.machine.sh("ls -A /run/nvidia/validations").split().count(".failed") == 0,
            240,
        )
        cluster.wait("its gate is open", lambda: reduce_pod(cluster.pod(REAL, VALIDATOR)).ready, 240)


def test_a_pod_takes_a_gpu_computes_is_judged_and_is_gone(cluster: Cluster, enabled: Enabled) -> None:
    log, taken = AuditLog(cluster.sandbox.audit_log), allocations(cluster)
    run = site.playbook(
        "validate",
        {host: values | {"hwaccel_excluded_nodes": cluster.others(REAL)} for host, values in enabled.clusters.items()},
    )
    assert run.rc == 0, run.stdout[-6000:]
    (result,) = run.results("node_validate")
    assert (result["validated"], result["nodes"]) == ([REAL], {"passed": 1, "unproven": 0, "failed": 0})
    bound = [
        one
        for one in log.requests()
        if (one.verb, one.resource, one.subresource, one.namespace) == ("create", "pods", "binding", AGENTS)
    ]
    assert [one.user for one in bound] == ["system:kube-scheduler"]
    assert allocations(cluster) == taken + 1
    assert (proof(cluster)["gpu"], proof(cluster)["driver"]) == (PRODUCT, DRIVER)
    assert left(cluster) == []


def test_fewer_gpus_than_the_fleet_says(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    """One has had an error of its memory, and the plugin has seen it."""
    with faulty(cluster, node, {"xid": {"1": 48}}):
        cluster.wait("one GPU is left", lambda: cluster.gpus(REAL) == ("2", "1"))
        row = failure(cluster)
    assert (row["pool"], row["link"]) == ("real", "schedulable")
    assert row["reason"] == "1 nvidia.com/gpu allocatable, 2 nvidia.com/gpu expected"
    assert "Xid=48" in row["log_tail"] and row["next_step"].startswith("the GPU's memory has an uncorrectable error"), (
        row
    )


def test_memory_errors_and_another_driver_than_the_label_says(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    with faulty(cluster, node, {"ecc": {"0": 2, "1": 2}}), label(cluster, OLDER):
        row = failure(cluster)
    assert (row["pool"], row["link"]) == ("real", "cuda")
    assert row["reason"].split("; ") == [
        f"the pod sees driver {DRIVER}, the node's label is {OLDER}",
        "uncorrectable ECC errors of the GPU's memory since its driver was loaded: 2",
    ]
    assert (
        "check the node; the GPU's memory has an uncorrectable error: end the jobs on the node and reboot it"
        in row["next_step"]
    )
    assert proof(cluster) == {}


def test_libraries_of_another_version_than_the_module(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    with module(cluster, node, OLDER):
        row = failure(cluster)
    assert (row["pool"], row["link"]) == ("real", "cuda")
    assert "Driver/library version mismatch" in row["log_tail"], row
    assert row["next_step"].startswith("kernel module and libraries have different versions"), row
    assert proof(cluster) == {}
