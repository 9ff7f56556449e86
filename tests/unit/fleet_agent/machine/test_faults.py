# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a simulated machine: their effects in the API, which end with their cause."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import (
    DEVICE_PLUGIN,
    DRIVER,
    PROOF,
    TOOLKIT,
    container,
    log,
)
from fleet_agent.machine import faults
from fleet_agent.machine.fleet import parse_node

GPU = "nvidia.com/gpu"


def deploy(world, kubelet):
    return [world.pod(kubelet, spec) for spec in (DRIVER, TOOLKIT, PROOF, DEVICE_PLUGIN)]


def figures(kubelet):
    """(capacity, allocatable) of the Node object."""
    status = kubelet.api.at(f"/api/v1/nodes/{kubelet.name}")["status"]
    return tuple(int(status[kind].get(GPU, 0)) for kind in ("capacity", "allocatable"))


def ready(kubelet):
    conditions = kubelet.api.at(f"/api/v1/nodes/{kubelet.name}")["status"]["conditions"]
    return next((row["status"], row["reason"]) for row in conditions if row["type"] == "Ready")


def set_faults(kubelet, *names):
    spec = parse_node(kubelet.name, {"faults": list(names)})
    kubelet.desired = dataclasses.replace(kubelet.host.spec, faults=spec.faults)
    kubelet.change(kubelet.desired)


def reboot(world, kubelet):
    boots = kubelet.kubelet_starts
    world.loop.spawn(kubelet.reboot())
    world.until(lambda: kubelet.up and kubelet.kubelet_starts > boots)


@pytest.mark.parametrize(
    ("fault", "xid"),
    [
        ("gpu_off_bus", "79"),
        ("gpu_ecc_error", "48"),
        ({"name": "gpu_ecc_error", "xid": "95"}, "95"),
    ],
)
def test_a_gpu_that_fails_at_runtime_is_unhealthy_until_a_reboot(world, fault, xid):
    node = world.node()
    *_others, plugin = deploy(world, node)
    world.until(lambda: figures(node) == (8, 8))
    set_faults(node, fault)
    world.until(lambda: figures(node) == (8, 7))
    assert f"XidCriticalError: Xid={xid} on Device=GPU-" in log(plugin.main[0])
    # NVIDIA's device plugin never marks a GPU as healthy again.
    set_faults(node)
    world.pass_time(60)
    assert figures(node) == (8, 7)
    reboot(world, node)
    world.until(lambda: figures(node) == (8, 8))


def test_nvidia_smi_fails_after_a_bus_failure_and_cuda_after_an_ecc_error(world):
    node = world.node(gpu={"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "ecc": True})
    deploy(world, node)
    world.until(lambda: figures(node) == (8, 8))
    node.host.struck[7] = faults.OFF_THE_BUS
    shell = {"restartPolicy": "Never", "runtimeClassName": "nvidia"}
    query = container(
        "c", "nvcr.io/nvidia/gpu-operator:v26.7.0", ["sh", "-c", "nvidia-smi -L"], NVIDIA_VISIBLE_DEVICES="all"
    )
    smi = world.pod(node, {**shell, "containers": [query]})
    world.until(lambda: "terminated" in smi.main[0].state)
    assert smi.main[0].state["terminated"]["exitCode"] == 15
    assert "handle for GPU 0000:1f:00.0: GPU is lost" in log(smi.main[0])
    node.host.struck[7] = 48
    counted = "nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv,noheader"
    computes = {**query, "command": ["sh", "-c", f"{counted} && CUDA_VISIBLE_DEVICES=7 vectorAdd"]}
    cuda = world.pod(node, {**shell, "containers": [computes]})
    world.until(lambda: "terminated" in cuda.main[0].state)
    assert all(f" {count}\n" in log(cuda.main[0]) for count in ("6, 0", "7, 1"))
    assert "error code uncorrectable ECC error encountered" in log(cuda.main[0])


def test_a_driver_that_does_not_support_the_gpu_reports_it(world):
    driver = world.pod(world.node(faults=["gpu_unsupported"]), DRIVER)
    world.until(lambda: driver.main[0].restarts >= 1)
    for words in (
        "GPU 0000:18:00.0 (PCI ID: 10de:2330)",
        "installed in this system is not supported by the",
        "driver release.",
    ):
        assert words in log(driver.main[0])


def test_without_a_fabric_manager_cuda_starts_on_no_gpu(world):
    node = world.node(faults=["fabric_manager_down"])
    *_others, proof, _plugin = deploy(world, node)
    world.until(lambda: proof.init[2].restarts >= 1)
    assert "GPU-" not in log(proof.init[2])
    assert "(error code system not yet initialized)!" in log(proof.init[2])


def test_a_container_that_exceeds_its_memory_is_killed_also_while_it_runs(world):
    node = world.node()
    pod = world.pod(node, {"containers": [container("greedy", "busybox:1.36", ["sh", "-c", "sleep inf"])]})
    world.until(lambda: pod.main[0].ready)
    set_faults(node, {"name": "out_of_memory", "container": "greedy"})
    world.until(lambda: pod.main[0].restarts >= 2)
    ended = pod.main[0].last_state.get("terminated") or pod.main[0].state["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    set_faults(node)
    world.until(lambda: pod.main[0].ready)


def test_a_node_that_is_not_ready_reports_the_reason_and_continues(world):
    node = world.node(faults=["node_not_ready"])
    assert ready(node) == ("False", "KubeletNotReady")
    pod = world.pod(node, {"containers": [container("c", "busybox:1.36", ["sh", "-c", "sleep inf"])]})
    world.until(lambda: pod.main[0].ready)
    set_faults(node)
    world.until(lambda: ready(node) == ("True", "KubeletReady"))


def test_a_flapping_node_changes_its_readiness_until_it_is_repaired(world):
    node = world.node(faults=["node_flapping"])
    for status in ("False", "True", "False"):
        world.until(lambda status=status: ready(node)[0] == status)
    set_faults(node)
    world.until(lambda: ready(node)[0] == "True" and node.readiness._task.done)


def test_pods_of_a_stopped_kubelet_keep_their_last_status(world):
    reported = []
    world.statuses.add = reported.append
    node = world.node()
    pod = world.pod(node, {"containers": [container("c", "busybox:1.36", ["sh", "-c", "sleep inf"])]})
    world.until(lambda: pod.main[0].ready)
    set_faults(node, "kubelet_gone")
    world.until(lambda: ready(node) == ("Unknown", "NodeStatusUnknown"))
    assert world.api.requests[-1][0] == "", "the control plane reports it, not the node"
    assert node.readiness.silent
    reported.clear()
    set_faults(node)
    world.until(lambda: ready(node) == ("True", "KubeletReady"))
    world.until(lambda: pod in reported)
    assert pod.main[0].ready


def test_work_on_a_slow_node_takes_longer_but_timers_do_not(world):
    slow, other = world.node("n0", faults=[{"name": "slow_node", "factor": "30"}]), world.node("n1")
    assert slow.clock.delay("driver_build") > 20 * other.clock.delay("driver_build")
    assert slow.clock.jitter(1) > 20 * other.clock.jitter(1)
    assert slow.clock.delay("restart_backoff") < 2 * other.clock.delay("restart_backoff")
    assert slow.clock.real(1) == other.clock.real(1)
