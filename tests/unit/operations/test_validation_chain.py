# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation reports the first failed link of nodes without GPUs, like the gates, for all deployers."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import parse_plugin_config
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.validation_fleets import (
    ValidationCluster,
    deployed,
    fault,
    go,
    node,
)

WITHOUT_GPUS = node("a", allocatable=0)
QUARANTINED = node("a", taints=[{"key": names.QUARANTINE, "value": "driver", "effect": "NoSchedule"}])


def stack(name: str, **parts: Obj) -> list[Obj]:
    """A healthy chain on a node; `parts` replace some of its pods."""
    pods = {
        "worker": s.worker(name),
        "driver": s.driver(name),
        "toolkit": s.toolkit(name),
        "validator": s.validator(name),
        "plugin": s.plugin(name),
    }
    return list((pods | parts).values())


CRASHED = stack(
    "a", driver=s.driver("a", s.crash_loop("nvidia-driver-ctr", 3)), validator=s.validator("a", s.running(ready=False))
)


@pytest.mark.parametrize("namespace", ["hwaccel-gpu", "gpu-operator"])
def test_a_failed_driver_of_any_deployer_is_reported(namespace: str) -> None:
    cluster = ValidationCluster(WITHOUT_GPUS, node("b"), pods=deployed(*CRASHED, namespace=namespace))
    outcome = go(cluster)
    found = fault(outcome)
    assert (found["node"], found["state"], found["link"]) == ("a", "failed", "driver")
    assert "nvidia-driver-ctr" in found["reason"] and "crashed" in found["reason"]
    assert "could not load" in found["log_tail"] and found["next_step"] == "check its log"
    assert "node a" in str(outcome.failure) and "driver" in str(outcome.failure)
    assert outcome.values["validated"] == ["b"]
    assert cluster.read == ["Node", "DaemonSet", f"Pod {namespace}"]


def test_in_check_mode_a_node_that_a_stage_would_repair_has_not_failed() -> None:
    outcome = go(ValidationCluster(WITHOUT_GPUS, pods=deployed(*CRASHED)), check_mode=True)
    assert outcome.failure is None
    assert (outcome.values["failed_nodes"], outcome.values["nodes"]) == ([], {"passed": 0, "unproven": 1, "failed": 0})
    assert (fault(outcome)["state"], fault(outcome)["link"]) == ("unproven", "driver")


def test_without_missing_gpus_no_pod_is_read() -> None:
    cluster = ValidationCluster(node("a"), pods=deployed(*stack("a")))
    assert go(cluster).failure is None
    assert cluster.read == ["Node"]


@pytest.mark.parametrize(
    ("odd", "pods", "link", "message"),
    [
        (
            node("a", 0, nfd=False),
            stack("a", worker=s.worker("a", s.crash_loop("nfd-worker", 5))),
            "hardware seen",
            "nfd-worker",
        ),
        (
            WITHOUT_GPUS,
            stack(
                "a",
                driver=s.driver("a", s.running(ready=False, started=False)),
                validator=s.validator("a", s.running(ready=False)),
            ),
            "driver",
            "the driver is compiling or loading",
        ),
        (
            WITHOUT_GPUS,
            stack(
                "a",
                toolkit=s.toolkit("a", s.waiting("ErrImagePull", "manifest unknown")),
                validator=s.validator("a", toolkit=s.running(ready=False)),
            ),
            "toolkit",
            "the image cannot be pulled",
        ),
        (
            WITHOUT_GPUS,
            stack("a", validator=s.validator("a", cuda=s.crash_loop("cuda-validation", 5))),
            "cuda",
            "cuda-validation",
        ),
        (
            WITHOUT_GPUS,
            stack("a", plugin=s.plugin("a", s.crash_loop("nvidia-device-plugin", 5))),
            "plugin",
            "nvidia-device-plugin",
        ),
        (node("a", 7), stack("a"), "schedulable", "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"),
        (QUARANTINED, CRASHED, "driver", "nvidia-driver-ctr"),
        (QUARANTINED, stack("a"), "schedulable", "it is quarantined at gate driver"),
    ],
)
def test_the_first_failed_link_is_reported(odd: Obj, pods: list[Obj], link: str, message: str) -> None:
    outcome = go(ValidationCluster(odd, pods=deployed(*pods)))
    assert (fault(outcome)["link"], fault(outcome)["state"]) == (link, "failed")
    assert message in fault(outcome)["reason"]
    assert outcome.values["validated"] == []


def test_without_permission_to_list_daemon_sets_nodes_and_the_permission_are_reported() -> None:
    cluster = ValidationCluster(WITHOUT_GPUS, node("b"), pods=deployed(*CRASHED))
    why = "permission to list daemonsets.apps is missing"
    cluster.fail(Forbidden("listing daemonsets", "https://x", why, "grant it"), "list", kind="DaemonSet")
    outcome = go(cluster, max_failed="1")
    assert outcome.failure is None and outcome.values["validated"] == ["b"]
    assert (fault(outcome)["node"], fault(outcome)["state"]) == ("a", "failed")
    assert "0 nvidia.com/gpu allocatable" in fault(outcome)["reason"]
    assert "permission to list daemonsets.apps is missing" in fault(outcome)["next_step"]


def test_with_a_driver_on_the_hosts_no_driver_pod_is_required() -> None:
    pods = [s.validator("a", s.crash_loop("driver-validation", 1)), s.plugin("a")]
    assert "driver-validation" in fault(go(ValidationCluster(WITHOUT_GPUS, pods=deployed(*pods))))["reason"]


def test_without_a_deployment_the_next_step_is_site() -> None:
    found = fault(go(ValidationCluster(WITHOUT_GPUS)))
    assert (found["link"], found["next_step"].partition(":")[0]) == ("plugin", "run hwaccel.gpu.site")


def test_logs_are_only_read_for_reported_nodes() -> None:
    pods = [
        pod
        for name in "abc"
        for pod in deployed(
            s.driver(name, s.crash_loop("nvidia-driver-ctr", 3)), s.validator(name, s.running(ready=False))
        )
    ]
    cluster = ValidationCluster(*(node(name, 0) for name in "abc"), pods=pods)
    outcome = go(cluster, sample=1)
    assert outcome.values["failed_nodes"] == ["a", "b", "c"]
    assert len({request.name for request in cluster.sent("logs")}) == 1
    assert [row["link"] for row in outcome.values["faults"]] == ["driver"]


def test_a_renamed_resource_of_a_plugin_configuration_is_expected() -> None:
    config: dict[str, t.Any] = {
        "sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}
    }
    odd = node("a")
    odd["status"]["allocatable"] = {"nvidia.com/gpu.shared": "16"}
    cluster = ValidationCluster(odd)
    assert go(cluster, plugin_configs={"default": parse_plugin_config(config)}).failure is None
    assert cluster.created[0]["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "limits": {"nvidia.com/gpu.shared": 1}
    }
    assert go(cluster).values["nodes"]["failed"] == 1
