# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hwaccel.gpu.validate on a real node: a pod that gets its GPU from scheduler and kubelet, and its messages about faulty GPUs and drivers.

nvidia-smi and vectorAdd are stand-ins with the output and exit codes of the real programs.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import json
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import WHOLE
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
    """Restores the proof of the node, which a failed validation deletes."""
    before = cluster.client.get(NODE, REAL)["metadata"]["annotations"].get(names.PROOF)
    yield
    cluster.client.patch(NODE, REAL, "", {"metadata": {"annotations": {names.PROOF: before}}})


def failure(cluster: Cluster) -> dict[str, t.Any]:
    """The row of a failed run of the module about the node; its message has the same contents."""
    pod = stack.validation_pod()
    options = RunOptions(namespace=AGENTS, schedule_timeout=240.0)
    settings = validation.Settings(
        pod, parse_pools(POOLS), frozenset(cluster.others(REAL)), always=True, options=options
    )
    outcome = validation.run(settings, cluster.client, Clock())
    assert outcome.values["failed_nodes"] == [REAL], outcome
    (row,) = outcome.values["faults"]
    message = str(outcome.failure)
    assert all(part in message for part in (f"node {REAL}", row["link"], row["reason"], row["next_step"])), message
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
    """Number of times that the kubelet has asked the plugin for GPUs since its start, from the kubelet's own metric."""
    text = cluster.kubelet_metrics(REAL)
    counts = re.findall(
        rf'^kubelet_device_plugin_alloc_duration_seconds_count{{resource_name="{WHOLE}"}} (\d+)$', text, re.M
    )
    return sum(map(int, counts))


@contextlib.contextmanager
def faulty(cluster: Cluster, node: KubernetesNode, faults: dict[str, t.Any]) -> c.Iterator[None]:
    """The plugin regards a GPU as unhealthy until its own restart, which happens here at the end."""
    try:
        with node.faulty(faults):
            yield
    finally:
        if cluster.gpus(REAL) != ("2", "2"):
            cluster.replace_pod(REAL, PLUGIN)
            cluster.wait("both are allocatable", lambda: cluster.gpus(REAL) == ("2", "2"))


@contextlib.contextmanager
def label(cluster: Cluster, value: str) -> c.Iterator[None]:
    """The label with the version of the driver is that of another version, as before an update of the driver."""

    def write(version: str) -> None:
        cluster.client.patch(NODE, REAL, "", {"metadata": {"labels": {names.DRIVER_VERSION_LABEL: version}}})

    write(value)
    try:
        yield
    finally:
        write(DRIVER)


@contextlib.contextmanager
def module(cluster: Cluster, node: KubernetesNode, version: str) -> c.Iterator[None]:
    """The loaded module has another version than the libraries, as after an update of the driver's packages without a reboot.

    The validator of the node may observe this during the test.
    """
    node.machine.sh(f"echo {version} >/sys/module/nvidia/version")
    try:
        yield
    finally:
        node.machine.sh(f"echo {DRIVER} >/sys/module/nvidia/version")
        cluster.wait(
            "the node is validated again",
            lambda: node.machine.sh("ls -A /run/nvidia/validations").split().count(".failed") == 0,
            240,
        )
        cluster.wait("the gate of the node is open", lambda: reduce_pod(cluster.pod(REAL, VALIDATOR)).ready, 240)


def test_a_validation_pod_uses_a_gpu_and_is_deleted(cluster: Cluster, enabled: Enabled) -> None:
    log, before = AuditLog(cluster.sandbox.audit_log), allocations(cluster)
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
    assert allocations(cluster) == before + 1
    assert (proof(cluster)["gpu"], proof(cluster)["driver"]) == (PRODUCT, DRIVER)
    assert left(cluster) == []


def test_fewer_gpus_than_declared_fail(cluster: Cluster, node: KubernetesNode, enabled: Enabled) -> None:
    """One GPU has had a memory error, which the plugin has observed."""
    with faulty(cluster, node, {"xid": {"1": 48}}):
        cluster.wait("one GPU is allocatable", lambda: cluster.gpus(REAL) == ("2", "1"))
        row = failure(cluster)
    assert (row["pool"], row["link"]) == ("real", "schedulable")
    assert row["reason"] == "1 nvidia.com/gpu allocatable, 2 nvidia.com/gpu expected"
    assert "Xid=48" in row["log_tail"] and row["next_step"].startswith("the GPU's memory has an uncorrectable error"), (
        row
    )


def test_memory_errors_and_another_driver_than_in_the_label_fail(
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


def test_libraries_of_another_version_than_the_module_fail(
    cluster: Cluster, node: KubernetesNode, enabled: Enabled
) -> None:
    with module(cluster, node, OLDER):
        row = failure(cluster)
    assert (row["pool"], row["link"]) == ("real", "cuda")
    assert "Driver/library version mismatch" in row["log_tail"], row
    assert row["next_step"].startswith("kernel module and libraries have different versions"), row
    assert proof(cluster) == {}
