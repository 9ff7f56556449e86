# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of the chain from states that kubelets report."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Expectation, judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import image_kernel, reduce_pod
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

N = "training-0"
EIGHT = Expectation(gpu_declared=True, expected={s.GPU: 8})


def verdict(gate: str, node: s.Obj, *pods: s.Obj, expectation: Expectation = EIGHT) -> chain.Verdict:
    facts = {one.role: one for one in map(reduce_pod, pods)}
    return judge(
        gate, reduce_node(node), facts, dataclasses.replace(expectation, excused=chain.excused(facts, expectation))
    )


PULL = 'Back-off pulling image "nvcr.io/nvidia/driver:580-x": ErrImagePull: rpc error: code = NotFound desc = failed to resolve reference: not found'
EARLIER, LATER = "2026-11-20T10:00:00Z", "2026-11-20T10:05:00Z"
LOADING = s.running(ready=False, started=False)
BUSY = s.running(ready=False)

DRIVER_CASES: dict[str, tuple[list[s.Obj], tuple[str, str, str]]] = {
    "all proven": ([s.driver(N), s.toolkit(N), s.validator(N)], ("passed", "cuda", "")),
    "proven, and the toolkit with the runtime is missing": (
        [s.driver(N), s.toolkit(N, s.waiting("ImagePullBackOff", PULL), phase="Pending"), s.validator(N)],
        ("failed", "toolkit", "cannot be pulled"),
    ),
    "proven, and the toolkit starts again": (
        [s.driver(N), s.toolkit(N, s.waiting(), phase="Pending"), s.validator(N)],
        ("passed", "cuda", ""),
    ),
    "no validator": ([s.driver(N), s.toolkit(N)], ("waiting", "driver", "no validator pod")),
    "no validator, driver crashes": ([s.driver(N, s.crash_loop("d", 3))], ("failed", "driver", "crashed 4 times")),
    "driver is loading": ([s.driver(N, LOADING), s.validator(N, BUSY)], ("waiting", "driver", "compiling or loading")),
    "driver manager": (
        [s.driver(N, s.waiting(), BUSY, phase="Pending"), s.validator(N, BUSY)],
        ("waiting", "driver", "preparing the node"),
    ),
    "driver missing": ([s.toolkit(N), s.validator(N, BUSY)], ("waiting", "driver", "no driver pod")),
    "driver crashed twice": (
        [s.driver(N, s.crash_loop("d", 1)), s.validator(N, BUSY)],
        ("waiting", "driver", "crashed twice"),
    ),
    "driver crash loop": (
        [s.driver(N, s.crash_loop("d", 2)), s.validator(N, BUSY)],
        ("failed", "driver", "crashed 3 times, last with exit code 1"),
    ),
    "driver runs again after a crash": (
        [
            s.driver(
                N,
                s.running(
                    ready=False, started=False, restarts=3, last={"terminated": {"exitCode": 1, "reason": "Error"}}
                ),
            ),
            s.validator(N, BUSY),
        ],
        ("waiting", "driver", "run 4; in the previous run, container nvidia-driver-ctr ended with exit code 1"),
    ),
    "driver runs again": (
        [s.driver(N, s.running(ready=False, started=False, restarts=3)), s.validator(N, BUSY)],
        ("waiting", "driver", "run 4"),
    ),
    "image does not exist": (
        [s.driver(N, s.waiting("ImagePullBackOff", PULL), phase="Pending"), s.validator(N, BUSY)],
        ("failed", "driver", "cannot be pulled"),
    ),
    "driver of many months crashed": (
        [s.driver(N, s.ended(137, 7, hours=9)), s.validator(N, BUSY)],
        ("waiting", "driver", "crashed once"),
    ),
    "driver crashed again at once": (
        [s.driver(N, s.backing_off(s.ended(137, 6, hours=0))), s.validator(N, BUSY)],
        ("failed", "driver", "crashed 7 times"),
    ),
    "driver crashed for days": (
        [s.driver(N, s.backing_off(s.ended(137, 900, hours=0))), s.validator(N, BUSY)],
        ("failed", "driver", "crashed at least 6 times"),
    ),
    "driver cannot be started": (
        [s.driver(N, s.backing_off(s.ended(128, 6, since="1970-01-01T00:00:00Z"))), s.validator(N, BUSY)],
        ("failed", "driver", "crashed 7 times"),
    ),
    "three reboots and a crash": (
        [s.driver(N, s.crash_loop("d", 3, back_off="10s")), s.validator(N, BUSY)],
        ("waiting", "driver", "crashed at least once"),
    ),
    "three reboots and two crashes": (
        [s.driver(N, s.crash_loop("d", 4, back_off="20s")), s.validator(N, BUSY)],
        ("waiting", "driver", "crashed at least twice"),
    ),
    "three reboots and three crashes": (
        [s.driver(N, s.crash_loop("d", 5, back_off="40s")), s.validator(N, BUSY)],
        ("failed", "driver", "crashed at least 3 times"),
    ),
    "crashed before the kubelet reports a back-off": (
        [s.driver(N, s.done(1, restarts=3)), s.validator(N, BUSY)],
        ("waiting", "driver", "crashed at least once"),
    ),
    "three crashes of a new pod": (
        [s.driver(N, s.crash_loop("d", 2, back_off="20s")), s.validator(N, BUSY)],
        ("failed", "driver", "crashed 3 times"),
    ),
    "a kubelet with another back-off": (
        [s.driver(N, s.crash_loop("d", 8, back_off="1m0s")), s.validator(N, BUSY)],
        ("failed", "driver", "crashed 9 times"),
    ),
    "node went down under the driver": (
        [s.driver(N, s.ended(255, 7, "Unknown")), s.validator(N, BUSY)],
        ("waiting", "driver", "the driver pod is starting"),
    ),
    "node went down under the validator": (
        [s.driver(N), s.toolkit(N), s.validator(N, main=s.ended(255, 7, "Unknown"))],
        ("waiting", "cuda", "the validator is starting"),
    ),
    "registry slow": (
        [s.driver(N, s.waiting("ErrImagePull", "dial tcp: i/o timeout"), phase="Pending"), s.validator(N, BUSY)],
        ("waiting", "driver", "cannot be pulled"),
    ),
    "toolkit crashes": (
        [s.driver(N), s.toolkit(N, s.crash_loop("toolkit", 4)), s.validator(N, None, s.crash_loop("t", 1))],
        ("failed", "toolkit", "container toolkit"),
    ),
    "toolkit step crashes while the toolkit starts": (
        [s.driver(N), s.toolkit(N, s.waiting("ContainerCreating")), s.validator(N, None, s.crash_loop("t", 1))],
        ("waiting", "toolkit", "is configuring"),
    ),
    "toolkit of the host": (
        [s.driver(N), s.validator(N, None, BUSY)],
        ("waiting", "toolkit", "is checking the toolkit"),
    ),
    "cuda fails": (
        [s.driver(N), s.toolkit(N), s.validator(N, None, None, s.crash_loop("c", 3))],
        ("failed", "cuda", "container cuda-validation"),
    ),
    "cuda failed once": (
        [s.driver(N), s.toolkit(N), s.validator(N, None, None, s.done(1))],
        ("waiting", "cuda", "crashed once"),
    ),
    "cuda runs": (
        [s.driver(N), s.toolkit(N), s.validator(N, None, None, BUSY)],
        ("waiting", "cuda", "CUDA sample is running"),
    ),
    "no RuntimeClass handler": (
        [s.driver(N), s.toolkit(N), s.validator(N, s.waiting("PodInitializing"), sandbox=False)],
        ("waiting", "driver", "sandbox is not created"),
    ),
    "driver was killed": (
        [s.driver(N, LOADING), s.toolkit(N), s.validator(N, main=s.running(ready=False))],
        ("waiting", "driver", "compiling or loading"),
    ),
    "devices disappeared": (
        [s.driver(N), s.toolkit(N), s.validator(N, main=s.running(ready=False))],
        ("waiting", "driver", "readiness probe"),
    ),
    "step crashed before the driver was ready": (
        [s.driver(N, since=LATER), s.toolkit(N), s.validator(N, s.crash_loop("d", 3, ended=EARLIER))],
        ("waiting", "driver", "is retried"),
    ),
    "a toolkit that ended without an error is retried": (
        [s.driver(N), s.toolkit(N, s.crash_loop("t", 3, code=0)), s.validator(N, None, s.crash_loop("v", 1))],
        ("waiting", "toolkit", "ended 4 times, last with exit code 0"),
    ),
    "step crashed before the toolkit was ready": (
        [s.driver(N, since=EARLIER), s.toolkit(N, since=LATER), s.validator(N, s.crash_loop("d", 3, ended=LATER))],
        ("waiting", "driver", "is retried"),
    ),
    "step crashes on a ready driver": (
        [s.driver(N, since=EARLIER), s.toolkit(N, since=EARLIER), s.validator(N, s.crash_loop("d", 3, ended=LATER))],
        ("failed", "driver", "crashed 4 times"),
    ),
    "step cannot be started at all while the driver loads": (
        [s.driver(N, LOADING), s.validator(N, s.waiting("InvalidImageName"))],
        ("failed", "driver", "InvalidImageName"),
    ),
    "config missing": (
        [s.driver(N), s.toolkit(N), s.validator(N, s.waiting("CreateContainerConfigError", 'configmap "x" not found'))],
        ("waiting", "driver", "configmap"),
    ),
}


def test_a_container_that_a_reboot_ended_is_not_reported_as_a_crash() -> None:
    rebooted = s.running(
        ready=False, started=False, restarts=1, last={"terminated": {"exitCode": 255, "reason": "Unknown"}}
    )
    assert (
        verdict("driver", s.node(N), s.driver(N, rebooted), s.validator(N, BUSY)).reason
        == "the driver is compiling or loading, run 2"
    )


@pytest.mark.parametrize("case", DRIVER_CASES, ids=str)
def test_verdicts_of_the_driver_gate(case: str) -> None:
    pods, (state, link, text) = DRIVER_CASES[case]
    found = verdict("driver", s.node(N), *pods)
    assert (found.state, found.link) == (state, link), found
    assert text in found.reason
    if state != "passed":
        assert found.reason


@pytest.mark.parametrize(
    ("image", "kernel"),
    [
        ("mirror:5000/nvidia/driver:580-6.8.0-111-generic-ubuntu24.04", "6.8.0-111-generic"),
        ("nvcr.io/nvidia/driver:580-5.14.0-503.11.1.el9_5.x86_64-rhel9.5@sha256:0", "5.14.0-503.11.1.el9_5.x86_64"),
        ("nvcr.io/nvidia/driver:580.178.04-ubuntu24.04", ""),
        ("nvcr.io/nvidia/driver:580", ""),
        ("driver@sha256:0", ""),
    ],
)
def test_the_kernel_of_a_precompiled_image_is_read_from_its_tag(image: str, kernel: str) -> None:
    assert image_kernel(image) == kernel


def test_a_precompiled_driver_for_another_kernel_is_reported() -> None:
    pods = [s.driver(N, s.crash_loop("nvidia-driver-ctr", 3)), s.validator(N, BUSY)]
    found = verdict("driver", s.node(N, kernel="6.8.0-45-generic"), *pods)
    assert found.reason.endswith("; its image is for kernel 6.8.0-111-generic, the node runs 6.8.0-45-generic")
    assert "its image" not in verdict("driver", s.node(N), *pods).reason
    assert (
        "its image"
        not in verdict(
            "driver", s.node(N, kernel="6.8.0-45-generic"), s.driver(N, LOADING), s.validator(N, BUSY)
        ).reason
    )


@pytest.mark.parametrize(
    ("restarts", "state", "text"),
    [(4, "waiting", "crashed once"), (5, "waiting", "crashed twice"), (6, "failed", "crashed 3 times")],
)
def test_crashes_count_only_after_the_driver_is_ready(restarts: int, state: str, text: str) -> None:
    """Four crashes occurred while the driver was loaded again."""
    expectation = dataclasses.replace(EIGHT, excused={"driver-validation": 4})
    step = s.crash_loop("d", restarts, ended=LATER)
    found = verdict(
        "driver",
        s.node(N),
        s.driver(N, since=EARLIER),
        s.toolkit(N, since=EARLIER),
        s.validator(N, step),
        expectation=expectation,
    )
    assert (found.state, found.link) == (state, "driver")
    assert text in found.reason


@pytest.mark.parametrize(
    ("main", "deleting", "excused"),
    [(None, False, {}), (LOADING, False, {"driver-validation": 4}), (None, True, {"driver-validation": 4})],
)
def test_a_crash_is_excused_while_the_driver_is_not_ready_or_terminating(
    main: s.Obj | None, deleting: bool, excused: dict[str, int]
) -> None:
    driver = s.driver(N, main, since=EARLIER)
    if deleting:
        driver["metadata"]["deletionTimestamp"] = LATER
    pods = (driver, s.toolkit(N, since=EARLIER), s.validator(N, s.crash_loop("d", 3, ended=LATER)))
    assert chain.excused({one.role: one for one in map(reduce_pod, pods)}, EIGHT) == excused


def test_an_existing_plugin_that_waits_is_reported_without_a_validator() -> None:
    plugin = s.plugin(N, s.waiting(), BUSY, phase="Pending")
    found = verdict("driver", s.node(N), s.driver(N), plugin, expectation=dataclasses.replace(EIGHT, existing=True))
    assert (found.state, found.link, found.container) == ("waiting", "plugin", "wait-for-proof")
    assert "the plugin waits in wait-for-proof" in found.reason


def test_a_suspected_failure_has_a_grace_time_and_normal_progress_has_none() -> None:
    assert verdict("driver", s.node(N), s.toolkit(N), s.validator(N, BUSY)).grace == chain.GRACE
    assert verdict("driver", s.node(N), s.driver(N, LOADING), s.validator(N, BUSY)).grace == 0


def test_a_host_driver_needs_no_driver_pod() -> None:
    found = verdict("driver", s.node(N), s.toolkit(N), s.validator(N, BUSY), expectation=Expectation(host_driver=True))
    assert "is checking the driver" in found.reason


def test_init_statuses_count_after_a_reboot() -> None:
    """kubectl prints Unknown, but the init statuses show that the first step runs again."""
    pod = s.validator(
        N, s.running(ready=False, restarts=1, last={"terminated": {"exitCode": 255, "reason": "Unknown"}})
    )
    found = verdict("driver", s.node(N), s.driver(N), s.toolkit(N), pod)
    assert (found.state, found.link) == ("waiting", "driver")


def test_a_node_that_is_not_ready_never_passes() -> None:
    node = s.node(N, allocatable=8, ready=False)
    for gate, pods in (("driver", [s.driver(N), s.toolkit(N), s.validator(N)]), ("devices", [s.plugin(N)])):
        found = verdict(gate, node, *pods)
        assert found.state == "waiting"
        assert "Kubelet stopped posting" in found.reason


PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
CRASHED = {"terminated": {"exitCode": 1, "reason": "Error"}}
DEVICE_CASES: dict[str, tuple[s.Obj, list[s.Obj], tuple[str, str, str]]] = {
    "all devices": (s.node(N, allocatable=8), [s.plugin(N)], ("passed", "schedulable", "")),
    "no label with the GPU product": (
        s.node(N, allocatable=8),
        [s.plugin(N), s.discovery(N)],
        ("waiting", "plugin", "has not labeled the node with its GPU product"),
    ),
    "discovery has labeled": (
        s.node(N, allocatable=8, labels=PRODUCT),
        [s.plugin(N), s.discovery(N)],
        ("passed", "schedulable", ""),
    ),
    "discovery crashes": (
        s.node(N, allocatable=8),
        [s.plugin(N), s.discovery(N, s.crash_loop("g", 5))],
        ("failed", "plugin", "crashed 6 times"),
    ),
    "discovery without NFD": (
        s.node(N, allocatable=8, nfd=False),
        [s.plugin(N), s.discovery(N)],
        ("passed", "schedulable", ""),
    ),
    "integrated GPUs have no product label": (
        s.node(N, allocatable=8, labels={"hwaccel.gpu/integrated": "true"}),
        [s.plugin(N), s.discovery(N)],
        ("passed", "schedulable", ""),
    ),
    "one less": (
        s.node(N, allocatable=7),
        [s.plugin(N)],
        ("waiting", "schedulable", "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"),
    ),
    "one more": (s.node(N, allocatable=9), [s.plugin(N)], ("waiting", "schedulable", "9 nvidia.com/gpu")),
    "plugin waits": (
        s.node(N),
        [s.validator(N, None, None, BUSY), s.plugin(N, s.waiting(), BUSY, phase="Pending")],
        ("waiting", "cuda", "validator has not passed"),
    ),
    "plugin waits for what is proven": (
        s.node(N),
        [s.validator(N), s.plugin(N, s.waiting(), BUSY, phase="Pending")],
        ("waiting", "plugin", "the plugin waits in wait-for-proof"),
    ),
    "plugin starts": (
        s.node(N),
        [s.validator(N), s.plugin(N, s.waiting("ContainerCreating"), phase="Pending")],
        ("waiting", "plugin", "is starting"),
    ),
    "plugin crashes": (s.node(N), [s.plugin(N, s.crash_loop("p", 5))], ("failed", "plugin", "crashed 6 times")),
    "plugin runs again for a moment": (
        s.node(N, allocatable=0),
        [s.plugin(N, s.running(restarts=5, last=CRASHED))],
        (
            "waiting",
            "schedulable",
            "8 nvidia.com/gpu expected, run 6; in the previous run, container nvidia-device-plugin ended with exit code 1",
        ),
    ),
    "plugin runs again and is not started yet": (
        s.node(N),
        [s.plugin(N, s.running(ready=False, restarts=5, last=CRASHED))],
        (
            "waiting",
            "plugin",
            "is starting, run 6; in the previous run, container nvidia-device-plugin ended with exit code 1",
        ),
    ),
    "an old crash is not the reason for a missing GPU": (
        s.node(N, allocatable=7),
        [s.plugin(N, s.running(restarts=1, last=CRASHED))],
        ("waiting", "schedulable", "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected"),
    ),
    "discovery runs again for a moment": (
        s.node(N, allocatable=8),
        [s.plugin(N), s.discovery(N, s.running(restarts=5, last=CRASHED))],
        (
            "waiting",
            "plugin",
            "has not labeled the node with its GPU product, run 6; in the previous run, container gpu-feature-discovery ended with exit code 1",
        ),
    ),
    "no plugin": (
        s.node(N),
        [],
        ("waiting", "plugin", "8 nvidia.com/gpu expected; no device plugin pod is on the node"),
    ),
    "foreign plugin, and too few GPUs": (
        s.node(N, allocatable=7),
        [],
        (
            "waiting",
            "schedulable",
            "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected; no device plugin pod of this",
        ),
    ),
    "foreign plugin": (s.node(N, allocatable=8), [], ("passed", "schedulable", "")),
    "plugin missing, capacity remains": (s.node(N, allocatable=0), [], ("waiting", "plugin", "no device plugin pod")),
    "evicted": (
        s.node(N),
        [
            s.plugin(
                N,
                phase="Failed",
                ready=False,
                extra={"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."},
            )
        ],
        ("waiting", "plugin", "Evicted"),
    ),
}


@pytest.mark.parametrize("case", DEVICE_CASES, ids=str)
def test_verdicts_of_the_devices_gate(case: str) -> None:
    node, pods, (state, link, text) = DEVICE_CASES[case]
    found = verdict("devices", node, *pods)
    assert (found.state, found.link) == (state, link), found
    assert text in found.reason


@pytest.mark.parametrize(
    ("gate", "component", "pods"),
    [("driver", "operator-validator", [s.driver(N), s.toolkit(N)]), ("devices", "device-plugin", [])],
)
def test_a_disabled_component_is_reported_in_the_next_step(gate: str, component: str, pods: list[t.Any]) -> None:
    switch = f"nvidia.com/gpu.deploy.{component}"
    steps = {
        value: verdict(gate, s.node(N, labels={switch: value}), *pods).next_step for value in ("false", "true", "")
    }
    assert f"label {switch}=false disables it" in steps["false"]
    assert steps["true"] == steps[""] == "check the DaemonSet's node selector, tolerations and events"


def test_missing_gpus_have_a_short_grace_time() -> None:
    assert verdict("devices", s.node(N, allocatable=7), s.plugin(N)).grace == chain.SETTLE


def test_devices_of_a_node_without_declaration() -> None:
    assert verdict("devices", s.node(N, allocatable=4), s.plugin(N), expectation=Expectation()).state == "passed"
    assert (
        verdict("devices", s.node(N, allocatable=0), s.plugin(N), expectation=Expectation()).reason
        == "no GPU is allocatable"
    )
    assert (
        verdict("devices", s.node(N, allocatable=0), expectation=Expectation()).reason
        == "no device plugin pod is on the node"
    )


def features_case(**kwargs: t.Any) -> chain.Verdict:
    labels = kwargs.pop("labels", {})
    pods = kwargs.pop("pods", [s.worker(N)])
    expectation = kwargs.pop("expectation", EIGHT)
    return verdict("features", s.node(N, labels=labels, **kwargs), *pods, expectation=expectation)


def test_whole_gpus_beside_slices_are_no_surplus() -> None:
    """Six GPUs are whole and two partitioned. No label has the number of whole GPUs of a node."""
    labels = {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/gpu.product": "NVIDIA-H100",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/mig-1g.10gb.count": "14",
    }
    node = s.node(N, labels=labels, allocatable=6)
    node["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = "14"
    facts = reduce_node(node)
    whole = {s.GPU: 6, "nvidia.com/mig-1g.10gb": 14}
    assert chain.schedulable.expected(facts) == whole
    assert (
        verdict(
            "devices", node, s.driver(N), s.validator(N), s.plugin(N), expectation=Expectation(expected=whole)
        ).state
        == "passed"
    )


def test_verdicts_of_the_features_gate() -> None:
    assert features_case().state == "passed"
    assert "not labeled" in features_case(nfd=False).reason
    assert "no NFD worker" in features_case(nfd=False, pods=[]).reason
    late = features_case(labels={s.NFD + "kernel-version.full": "6.8.0-106-generic"})
    assert (late.state, late.grace) == ("waiting", 0)
    assert "still says kernel 6.8.0-106-generic" in late.reason
    undetected = features_case(gpus=0)
    assert "detects none on the PCI bus" in undetected.reason
    assert undetected.grace == chain.GRACE
    assert features_case(gpus=0, expectation=Expectation()).state == "passed"
    assert features_case(nfd=False, pods=[s.worker(N, s.crash_loop("w", 4))]).state == "failed"


def test_a_kernel_that_is_no_valid_label_value() -> None:
    node = s.node(N, kernel="6.1.0-custom+")
    del node["metadata"]["labels"][s.NFD + "kernel-version.full"]
    assert verdict("features", node, s.worker(N)).state == "passed"


@pytest.mark.parametrize("label", ["pci-10de.present", "pci-0302_10de.present", "pci-0300_10de.present"])
def test_all_forms_of_the_pci_label_are_supported(label: str) -> None:
    assert features_case(gpus=0, labels={s.NFD + label: "true"}).state == "passed"


def test_an_unscheduled_pod_belongs_to_the_node_of_its_affinity() -> None:
    pod = s.validator(N, s.waiting())
    del pod["spec"]["nodeName"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [N]}]}
    pod["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    pod["status"] = {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/4 nodes are available: 1 Insufficient cpu.",
            }
        ],
    }
    assert reduce_pod(pod).node == N
    found = verdict("driver", s.node(N), s.driver(N), s.toolkit(N), pod)
    assert "1 Insufficient cpu" in found.reason
    assert found.grace == chain.GRACE


def test_a_changing_mig_configuration_is_waited_for() -> None:
    found = verdict(
        "devices", s.node(N, allocatable=8, labels={"nvidia.com/mig.config.state": "rebooting"}), s.plugin(N)
    )
    assert (found.state, found.grace) == ("waiting", 0)


def test_later_steps_of_the_operators_validator_do_not_delay_a_gate() -> None:
    """The fourth step waits for the device plugin, which the next gate checks."""
    waits = s.validator(N, main=s.waiting())
    waits["spec"]["initContainers"].append({"name": "plugin-validation", "image": "x"})
    waits["status"]["initContainerStatuses"].append({"name": "plugin-validation", **s.running(ready=False)})
    assert verdict("driver", s.node(N), s.driver(N), s.toolkit(N), waits).state == "passed"
    assert verdict("devices", s.node(N, allocatable=8), s.plugin(N), waits).state == "passed"
    unproven = s.validator(N, cuda=s.running(ready=False))
    unproven["spec"]["initContainers"].append({"name": "plugin-validation", "image": "x"})
    assert verdict("devices", s.node(N, allocatable=8), s.plugin(N), unproven).state == "waiting"


@pytest.mark.parametrize(
    ("answer", "state", "next_step"),
    [
        (
            "429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit",
            "waiting",
            "limits pulls",
        ),
        (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "failed",
            "certificate authority",
        ),
        ("connection refused", "waiting", "the node reaches the registry"),
    ],
)
def test_the_answer_of_a_registry_names_the_next_step(answer: str, state: str, next_step: str) -> None:
    pull = (
        f'Back-off pulling image "nvcr.io/nvidia/driver:580-x": ErrImagePull: rpc error: code = Unknown desc = {answer}'
    )
    found = verdict(
        "driver", s.node(N), s.driver(N, s.waiting("ImagePullBackOff", pull), phase="Pending"), s.validator(N, BUSY)
    )
    assert (found.state, found.link) == (state, "driver")
    assert next_step in found.next_step
