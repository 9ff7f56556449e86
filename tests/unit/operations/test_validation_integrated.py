# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of nodes with an integrated GPU: another pod, and another program that identifies the GPU."""

from __future__ import annotations

import json

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.tests.unit.clusters.jobs import node_of
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.gpu.test_device_query import GOOD, NO_DRIVER
from ansible_collections.hwaccel.gpu.tests.unit.operations.validation_fleets import (
    LOG,
    POD,
    ValidationCluster,
    fault,
    go,
    node,
)

JETSON_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "j"},
    "spec": {"containers": [{"name": "cuda", "image": "jetson:1"}]},
}
POOLS = parse_pools(
    [{"name": "edge", "selector": "pool=edge", "gpu": {"product": "Orin", "count": 1, "memory_mib": 16384}}]
)
COMPUTED = GOOD + "[Vector addition of 50000 elements]\nTest PASSED\nDone\n"


def jetson(name: str, architecture: str = "arm64") -> Obj:
    fleet = s.node(
        name, labels={"pool": "edge", names.INTEGRATED_LABEL: "true"}, allocatable=1, gpus=1, kernel="5.15.148-tegra"
    )
    fleet["status"]["nodeInfo"]["architecture"] = architecture
    return fleet


def cluster(*nodes: Obj, log: str = COMPUTED) -> ValidationCluster:
    fleet = ValidationCluster(*nodes)
    fleet.printed = {item["metadata"]["name"]: log for item in nodes}
    return fleet


def images(fleet: ValidationCluster) -> dict[str, str]:
    return {node_of(job): job["spec"]["template"]["spec"]["containers"][0]["image"] for job in fleet.created}


def test_an_integrated_gpu_has_its_own_pod_and_is_proven_by_the_output_of_cuda() -> None:
    fleet = cluster(jetson("orin"), node("big"))
    fleet.printed["big"] = LOG
    outcome = go(fleet, pools=POOLS, integrated_definition=JETSON_POD)
    assert outcome.failure is None, outcome.failure
    assert images(fleet) == {"orin": "jetson:1", "big": "sample:1"}
    assert (fleet.proof("orin")["gpu"], fleet.proof("orin")["driver"]) == ("Orin", "CUDA 11.4")
    assert (fleet.proof("big")["gpu"], fleet.proof("big")["driver"]) == ("NVIDIA H100 80GB HBM3", "580.178.04")
    assert go(fleet, pools=POOLS, integrated_definition=JETSON_POD).values["validated"] == []


def test_another_image_invalidates_only_proofs_of_integrated_gpus() -> None:
    fleet = cluster(jetson("orin"), node("big"))
    fleet.printed["big"] = LOG
    go(fleet, pools=POOLS, integrated_definition=JETSON_POD)
    other = JETSON_POD | {"spec": {"containers": [{"name": "cuda", "image": "jetson:2"}]}}
    assert go(fleet, pools=POOLS, integrated_definition=other).values["validated"] == ["orin"]


def test_with_another_architecture_or_without_such_a_pod_the_default_pod_runs() -> None:
    fleet = cluster(jetson("odd", "amd64"), log=LOG.replace("NVIDIA H100 80GB HBM3, 81559", "Orin, 16000"))
    assert go(fleet, pools=POOLS, integrated_definition=JETSON_POD).failure is None
    assert images(fleet) == {"odd": "sample:1"}
    fleet = cluster(jetson("orin"), log="Test PASSED\n")
    assert go(fleet, pools=POOLS).failure is None, "nvidia-smi is not required"


def test_the_output_of_cuda_is_validated() -> None:
    for log, message in (
        (GOOD, "no CUDA kernel ran"),
        (COMPUTED.replace('"Orin"', '"NVIDIA Tegra X1"'), "the pod sees a NVIDIA Tegra X1, Orin is expected"),
        (COMPUTED.replace("15388", "7618"), "the pod sees 7618 MiB of memory, 16384 MiB are expected"),
    ):
        outcome = go(cluster(jetson("orin"), log=log), pools=POOLS, integrated_definition=JETSON_POD)
        assert message in fault(outcome)["reason"] and outcome.failure is not None


class Broken(ValidationCluster):
    """Every Job fails."""

    def job_status(self, name: str, job: Obj) -> Obj:
        return {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}


def test_a_failed_pod_reports_the_error_of_cuda() -> None:
    fleet = Broken(jetson("orin"))
    fleet.printed = {"orin": NO_DRIVER}
    reason = fault(go(fleet, pools=POOLS, integrated_definition=JETSON_POD))["reason"]
    assert reason.endswith("; CUDA error 35: CUDA driver version is insufficient for CUDA runtime version")


def test_later_slices_use_the_same_pods() -> None:
    fleet = cluster(jetson("orin"), jetson("xavier"))
    settings = validation.Settings(
        POD, POOLS, options=RunOptions(namespace="n", parallel=1), integrated_definition=JETSON_POD
    )
    outcome = validation.run(settings, fleet, fleet.clock(0.1))
    while outcome.pending is not None:
        outcome = validation.run(settings, fleet, fleet.clock(0.1), resume=json.loads(json.dumps(outcome.pending)))
    assert images(fleet) == {"orin": "jetson:1", "xavier": "jetson:1"}
