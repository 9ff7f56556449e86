# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of the roles on one simulated node: conditions that open, keep and close a gate, and effects of a closed gate."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import log
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack as roles
from fleet_agent.loop import Killed

FOLDER = "/run/nvidia/validations"
HOST_DRIVER = "595.91.07"
FILES = ("driver-ready", "toolkit-ready", "cuda-ready")
ORIN = {
    "architecture": "arm64",
    "kernel": "5.15.148-tegra",
    "host_driver": "540.4.0",
    "gpu": {"product": "Orin", "count": 1, "memory_mib": 15388},
}


class Node:
    """A machine with the pods of the roles."""

    def __init__(self, world, **spec):
        self.world, self.kubelet = world, world.node(**spec)
        found = [one for role in ("driver", "device_plugin") for one in roles.manifests(role)]
        world.store.data |= {
            ("configmap", "ns", one["metadata"]["name"]): one["data"] for one in found if one["kind"] == "ConfigMap"
        }
        world.store.data["configmap", "ns", "nvidia-device-plugin-config"] = {"config.yaml": "version: v1\n"}
        self._specs = {
            one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in found if one["kind"] == "DaemonSet"
        }

    def run(self, name, **main):
        spec = roles.yaml.safe_load(roles.yaml.safe_dump(self._specs[name]))
        spec["containers"][0].update(main)
        return self.world.pod(
            self.kubelet, {key: value for key, value in spec.items() if key != "affinity"}, labels={"app": name}
        )

    def offered(self):
        return self.kubelet.devices.allocatable.get("nvidia.com/gpu", 0)

    def job(self, gpus):
        container = {"name": "c", "image": "example.com/job:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
        return self.world.pod(self.kubelet, {"runtimeClassName": "nvidia", "containers": [container]})

    def file(self, name):
        return self.kubelet.host.read(f"{FOLDER}/{name}")

    def changes_of(self, name):
        """Contents of the file one after the other, with None if it does not exist. The list grows with each change."""
        contents = [self.file(name)]

        def check():
            if self.file(name) != contents[-1]:
                contents.append(self.file(name))
            self.kubelet.host.when_changed(check)

        self.kubelet.host.when_changed(check)
        return contents

    def replaced(self, pod, name):
        """Replace a pod, like a rolling update or a manual deletion."""
        self.world.delete(pod)
        self.world.until(lambda: not self.world.api.has(f"/api/v1/namespaces/ns/pods/{pod.name}"))
        return self.run(name)


@pytest.fixture
def node(world):
    """A validated node whose plugin provides its GPUs. The driver is on the host, so that only the scripts are active."""
    node_under_test = Node(world, host_driver=HOST_DRIVER)
    node_under_test.toolkit, node_under_test.validator, node_under_test.plugin = (
        node_under_test.run(name) for name in ("nvidia-container-toolkit", "nvidia-validator", "nvidia-device-plugin")
    )
    world.until(lambda: node_under_test.validator.main[0].ready and node_under_test.offered() == 8)
    return node_under_test


def test_a_validation_opens_all_gates_of_this_boot(node):
    boot = node.kubelet.host.boot_id
    assert all(f"BOOT_ID={boot}\n" in node.file(name) for name in (*FILES, "host-driver-ready"))
    assert log(node.validator.init[2]).count("Test PASSED") == 8


def test_the_plugin_of_a_board_uses_the_runtime_and_not_cdi(world):
    board = Node(world, **ORIN)
    pods = [board.run(name) for name in ("nvidia-container-toolkit", "nvidia-validator", "nvidia-device-plugin")]
    world.until(lambda: board.offered() == 1)
    assert "error starting plugins" not in log(pods[-1].main[0])


def test_a_plugin_with_cdi_on_a_board_reports_the_reason(world):
    board = Node(world, **ORIN)
    pods = [board.run(name) for name in ("nvidia-container-toolkit", "nvidia-validator")]
    pods.append(board.run("nvidia-device-plugin", command=["nvidia-device-plugin"]))
    world.until(lambda: pods[-1].main[0].restarts)
    assert "CDI --device-list-strategy options are only supported on NVML-based systems" in log(pods[-1].main[0])


@pytest.mark.parametrize("folder", ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/bin"])
def test_a_driver_of_the_host_is_found_in_each_folder_of_the_validator(world, folder):
    node = Node(world)
    node.kubelet.host.modules["nvidia"] = HOST_DRIVER
    node.kubelet.host.write(f"{folder}/nvidia-smi", "")
    toolkit = node.run("nvidia-container-toolkit")
    world.until(lambda: toolkit.init[0].finished)
    assert "IS_HOST_DRIVER=true" in node.file("driver-ready")


def test_a_restarted_toolkit_closes_no_gate(world, node):
    changes = {name: node.changes_of(name) for name in (*FILES, "host-driver-ready")}
    again = node.replaced(node.toolkit, "nvidia-container-toolkit")
    world.until(lambda: again.main[0].ready)
    assert all(None not in found for found in changes.values())
    assert node.validator.main[0].restarts == 0
    assert node.validator.main[0].ready


def test_only_the_second_consecutive_failure_closes_a_gate(world, node):
    host = node.kubelet.host
    module = host.modules.pop("nvidia")
    host.changed()
    world.until(lambda: node.file(".failed") is not None)
    assert node.file("cuda-ready") is not None
    host.modules["nvidia"] = module
    host.changed()
    world.until(lambda: node.file(".failed") is None)
    assert node.validator.main[0].ready
    host.modules.pop("nvidia")
    host.changed()
    world.until(lambda: not node.validator.main[0].ready)
    assert [node.file(name) for name in FILES] == [None] * 3
    world.until(lambda: "the gate was closed, validating again" in log(node.validator.main[0]))


def test_a_new_validator_keeps_proofs_of_gpus_in_use(world, node):
    job = node.job(3)
    world.until(lambda: job.main[0].ready)
    again = node.replaced(node.validator, "nvidia-validator")
    world.until(lambda: again.main[0].ready)
    text = log(again.init[2])
    assert text.count("busy, last proof of 20") == 3
    assert text.count("Test PASSED") == 5
    assert again.init[2].restarts == 0


def test_a_proof_of_another_driver_is_invalid(world, node):
    job = node.job(8)
    world.until(lambda: job.main[0].ready)
    node.kubelet.host.modules.update(dict.fromkeys(node.kubelet.host.modules, "610.57.04"))
    again = node.replaced(node.validator, "nvidia-validator")
    world.until(lambda: "never proven since boot" in log(again.init[2]))
    assert "running" in again.init[2].state
    world.delete(job, 0)
    world.until(lambda: again.main[0].ready)
    assert log(again.init[2]).count("Test PASSED") == 8


def test_a_free_gpu_that_fails_loses_its_proof(world, node):
    assert node.file(".cuda-proof")
    host = node.kubelet.host
    host.spec = host.spec.__class__(**{**vars(host.spec), "faults": ((("name", "cuda_failure"),),)})
    again = node.replaced(node.validator, "nvidia-validator")
    world.until(lambda: again.init[2].restarts >= 1)
    assert "the cuda proof failed on GPU-" in log(again.init[2])
    assert node.file(".cuda-proof") is None
    assert node.file("cuda-ready") is None


PRECOMPILED, BUILT = (
    "nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04",
    "nvcr.io/nvidia/driver:580.95.05-ubuntu24.04",
)


def with_driver_container(world, image):
    """A validated node with a driver container."""
    node_under_test = Node(world)
    node_under_test.driver = node_under_test.run(
        "nvidia-driver", image=image, env=[{"name": "DRIVER_CONFIG_DIGEST", "value": "1"}]
    )
    node_under_test.toolkit, node_under_test.validator, node_under_test.plugin = (
        node_under_test.run(name) for name in ("nvidia-container-toolkit", "nvidia-validator", "nvidia-device-plugin")
    )
    world.until(lambda: node_under_test.validator.main[0].ready and node_under_test.offered() == 8, 20)
    return node_under_test


@pytest.mark.parametrize("image", [PRECOMPILED, BUILT], ids=["precompiled", "built"])
def test_a_killed_driver_closes_the_gate_and_restarts(world, image):
    node = with_driver_container(world, image)
    node.driver.main[0].signal(Killed())
    world.until(lambda: node.file("cuda-ready") is None)
    world.until(lambda: node.validator.main[0].ready and node.offered() == 8, 30)
    assert node.driver.main[0].ready
    # A driver that was built keeps its loaded modules, and so the plugin is not restarted.
    assert (node.plugin.main[0].restarts == 0) == (image == BUILT)


def test_a_killed_driver_that_must_unload_waits_for_jobs_without_allocatable_gpus(world):
    node = with_driver_container(world, PRECOMPILED)
    job = node.job(2)
    world.until(lambda: job.main[0].ready)
    node.driver.main[0].signal(Killed())
    world.until(lambda: node.offered() == 0, 20)
    world.until(lambda: "driver is in use" in log(node.driver.main[0]))
    assert job.main[0].ready
    world.delete(job, 0)
    world.until(lambda: node.validator.main[0].ready and node.offered() == 8, 60)


def test_a_plugin_is_not_restarted_by_a_temporarily_closed_gate(world, node):
    again = node.replaced(node.validator, "nvidia-validator")
    world.until(lambda: again.main[0].ready)
    assert node.plugin.main[0].restarts == 0
    assert node.offered() == 8


@pytest.mark.parametrize(
    ("driver", "default", "binary"),
    [
        ("", "other", "/usr/bin/other"),  # an existing default
        (HOST_DRIVER, "nvidia", "/usr/bin/nvidia-container-runtime"),  # set by nvidia-ctk of the host
        (HOST_DRIVER, "other", "/usr/bin/other"),
    ],
)
def test_an_existing_default_runtime_is_kept_with_and_after_the_toolkit(world, driver, default, binary):
    node = Node(world, **({"host_driver": driver} if driver else {}))
    before = {**node.kubelet.host.handlers, default: binary}
    node.kubelet.host.handlers, node.kubelet.host.default_handler = dict(before), default
    if not driver:
        node.run("nvidia-driver", image="nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04")
    toolkit = node.run("nvidia-container-toolkit")
    world.until(lambda: "Waiting for signal" in log(toolkit.main[0]), 60)
    assert node.kubelet.host.default_handler == default
    assert node.kubelet.host.handlers[default] == binary
    assert "nvidia" in node.kubelet.host.handlers
    world.delete(toolkit)
    world.until(lambda: not world.api.has(f"/api/v1/namespaces/ns/pods/{toolkit.name}"), 60)
    assert (node.kubelet.host.default_handler, node.kubelet.host.handlers) == (default, before)


def test_a_toolkit_of_the_host_without_our_driver_is_replaced_and_remains_the_default(world):
    node = Node(world)
    host = node.kubelet.host
    host.handlers["nvidia"], host.default_handler = "/usr/bin/nvidia-container-runtime", "nvidia"
    node.run("nvidia-driver", image="nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04")
    toolkit = node.run("nvidia-container-toolkit")
    world.until(lambda: "Waiting for signal" in log(toolkit.main[0]), 60)
    assert (host.default_handler, host.handlers["nvidia"]) == (
        "nvidia",
        "/usr/local/nvidia/toolkit/nvidia-container-runtime",
    )
