# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chain of driver, toolkit, validation and plugin on one node, and faults that interrupt it."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import (
    DEVICE_PLUGIN,
    DRIVER,
    PROOF,
    TOOLKIT,
    changed,
    container,
    deploy,
    log,
    mount,
)

GPU = "nvidia.com/gpu"


def allocatable(kubelet):
    return int(kubelet.api.at(f"/api/v1/nodes/{kubelet.name}")["status"]["allocatable"].get(GPU, 0))


@pytest.fixture
def node(world):
    return world.node()


def test_the_whole_chain_is_ready(world, node):
    driver, toolkit, proof, plugin = deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    assert all(pod.main[0].ready for pod in (driver, toolkit, proof, plugin))
    assert "Test PASSED" in log(proof.init[2])
    assert "driver-ready" in node.host.names("/run/nvidia/validations")


def test_no_gpu_is_allocatable_before_the_validation(world, node):
    plugin = world.pod(node, {**DEVICE_PLUGIN, "runtimeClassName": None})
    world.until(lambda: "running" in plugin.init[0].state)
    world.pass_time(120)
    assert "running" in plugin.init[0].state
    assert allocatable(node) == 0


def _unprivileged(spec):
    spec["containers"][0]["securityContext"] = {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_unprivileged, "could not insert 'nvidia': Operation not permitted"),
        (lambda s: s["containers"][0].update(volumeMounts=[]), "nvidia-driver.pid: No such file or directory"),
        (
            lambda s: s["containers"][0].update(image="nvcr.io/nvidia/driver:580-6.8.0-111-generic-ubuntu24.04"),
            "Unable to locate package linux-modules-nvidia-580",
        ),
        (
            lambda s: s["containers"][0].update(image="nvcr.io/nvidia/driver:595.91.07-rhel9"),
            "Could not resolve Linux kernel version",
        ),
        (lambda s: s["containers"][0].update(command=["nvidia-driver", "start"]), "Usage: nvidia-driver COMMAND"),
    ],
)
def test_a_failed_driver_logs_the_reason(world, node, change, words):
    pod = world.pod(node, changed(DRIVER, change))
    world.until(lambda: pod.main[0].restarts >= 1)
    assert words in log(pod.main[0])
    assert not pod.main[0].ready
    assert "nvidia" not in node.host.modules


def test_driver_mounts_are_visible_to_other_pods_only_if_bidirectional(world, node):
    driver, toolkit, *_rest = deploy(
        world, node, driver=changed(DRIVER, lambda s: s["containers"][0]["volumeMounts"][0].pop("mountPropagation"))
    )
    world.until(lambda: driver.main[0].ready)
    world.pass_time(60)
    assert "running" in toolkit.init[0].state
    assert "failed to validate the driver" in log(toolkit.init[0])
    assert allocatable(node) == 0


def test_a_consumer_without_mount_propagation_never_sees_the_driver(world, node):
    toolkit = changed(TOOLKIT, lambda s: s["initContainers"][0]["volumeMounts"][0].pop("mountPropagation"))
    pod = world.pod(node, toolkit)
    world.until(lambda: "running" in pod.init[0].state)
    driver = world.pod(node, DRIVER)
    world.until(lambda: driver.main[0].ready)
    world.pass_time(60)
    assert "running" in pod.init[0].state


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s["containers"][0]["env"].pop(0), "unable to restart docker"),
        (
            lambda s: s["containers"][0]["volumeMounts"].pop(2),
            "dial unix /runtime/sock-dir/containerd.sock: connect: no such file or directory",
        ),
        (lambda s: s["initContainers"][0]["volumeMounts"].pop(3), "could not create symlink"),
        (
            lambda s: s["initContainers"][0].update(env=[{"name": "COMPONENT", "value": "drivers"}]),
            "invalid -c <component-name> flag value: drivers",
        ),
    ],
)
def test_a_failed_toolkit_logs_the_reason(world, node, change, words):
    pod = world.pod(node, changed(TOOLKIT, change))
    driver = world.pod(node, DRIVER)
    world.until(lambda: driver.main[0].ready)
    world.until(lambda: any(words in log(c) for c in pod.containers))
    assert "nvidia" not in node.host.handlers


def test_a_validator_without_permission_to_list_daemon_sets_fails(world, node):
    world.api.forbidden.append(r"GET /apis/apps/v1/namespaces/ns/daemonsets")
    pod = world.pod(node, TOOLKIT)
    world.until(lambda: pod.init[0].restarts >= 1)
    assert "error listing daemonsets: daemonsets is forbidden" in log(pod.init[0])
    assert ("system:serviceaccount:ns:default", "GET") in [request[:2] for request in world.api.requests]


def test_without_a_runtime_handler_no_sandbox_is_created(world, node):
    pod = world.pod(node, PROOF)
    world.until(lambda: world.warnings)
    assert world.warnings[0][0] == "FailedCreatePodSandBox"
    assert 'no runtime for "nvidia" is configured' in world.warnings[0][1]
    assert not pod.sandbox_ready


def test_cuda_needs_the_runtime(world, node):
    deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    pod = world.pod(
        node,
        {
            "restartPolicy": "Never",
            "containers": [container("c", "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0", ["vectorAdd"])],
        },
    )
    world.until(lambda: pod.forced_phase == "Failed")
    assert "CUDA driver version is insufficient" in log(pod.main[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda s: s["containers"][0].update(volumeMounts=[]),
            "failed to create FS watcher for /var/lib/kubelet/device-plugins/",
        ),
        (lambda s: s.pop("runtimeClassName"), "did you set the docker default runtime to `nvidia`?"),
        (
            lambda s: s["containers"][0]["env"].append({"name": "CONFIG_FILE", "value": "/config/c.yaml"}),
            "open /config/c.yaml: no such file or directory",
        ),
    ],
)
def test_a_failed_plugin_logs_the_reason(world, node, change, words):
    *_others, plugin = deploy(world, node, plugin=changed(DEVICE_PLUGIN, change))
    world.until(lambda: plugin.main[0].restarts >= 1)
    assert words in log(plugin.main[0])
    assert allocatable(node) == 0


def test_devices_are_counted_and_freed(world, node):
    deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    job = container("c", "example.com/job:1", ["sh", "-c", "nvidia-smi -L; sleep 9999"], privileged=False)
    user = {"runtimeClassName": "nvidia", "containers": [{**job, "resources": {"limits": {GPU: "5"}}}]}
    first, second = world.pod(node, user), world.pod(node, user)
    world.until(lambda: first.main[0].ready and second.forced_phase == "Failed")
    assert second.status_reason == "UnexpectedAdmissionError"
    assert "Requested: 5, Available: 3" in second.status_message
    assert log(first.main[0]).count("GPU ") == 5
    world.delete(first, 0)
    world.until(lambda: first.uid not in node.devices.allocated)
    third = world.pod(node, user)
    world.until(lambda: third.main[0].ready)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mig_capable": False}, "[N/A], [N/A], [N/A]"),
        ({"ecc": True}, "Enabled, Disabled, 0"),
        ({"ecc": False}, "Disabled, Disabled, [N/A]"),
        ({"ecc": True, "mig": True}, "Enabled, Enabled, 0"),
    ],
)
def test_nvidia_smi_reports_the_modes(world, given, words):
    node = world.node(gpu={"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "mig_capable": True, **given})
    deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    query = "nvidia-smi --query-gpu=name,ecc.mode.current,mig.mode.current,ecc.errors.uncorrected.volatile.total --format=csv,noheader"
    requesting = {
        **container("c", "example.com/job:1", ["sh", "-c", query], privileged=False),
        "resources": {"limits": {GPU: "1"}},
    }
    pod = world.pod(node, {"runtimeClassName": "nvidia", "restartPolicy": "Never", "containers": [requesting]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert log(pod.main[0]).splitlines()[-1].endswith(f" NVIDIA H100 80GB HBM3, {words}")


def test_after_the_loss_of_the_plugin_allocatable_is_removed_first_and_capacity_later(world, node):
    *_others, plugin = deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    world.delete(plugin, 0)
    world.until(lambda: allocatable(node) == 0)
    assert node.api.at("/api/v1/nodes/n0")["status"]["capacity"][GPU] == "8"
    world.until(lambda: node.api.at("/api/v1/nodes/n0")["status"]["capacity"][GPU] == "0")


def test_after_a_restart_of_the_kubelet_devices_are_missing_until_the_plugin_registers(world, node):
    deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    node.restarted()
    world.until(lambda: allocatable(node) == 0)
    world.until(lambda: allocatable(node) == 8)


def test_killed_driver_leaves_its_mounts_and_cannot_load_again_while_clients_hold_the_modules(world, node):
    from fleet_agent.loop import Killed

    driver, *_others, plugin = deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    driver.main[0].signal(Killed())
    world.until(lambda: driver.main[0].restarts >= 2)
    assert node.host.mounts
    assert node.host.read("/run/nvidia/validations/.driver-ctr-ready") is not None
    assert "Could not unload NVIDIA driver kernel modules, driver is in use" in log(driver.main[0])
    world.delete(plugin, 0)
    world.until(lambda: driver.main[0].ready, 20)


def test_reboot_empties_run_and_closes_the_gates(world, node):
    driver, toolkit, proof, plugin = deploy(world, node)
    world.until(lambda: allocatable(node) == 8)
    boot = node.host.boot_id
    before = proof.init[0].restarts
    node.desired = node.host.spec.__class__(**{**vars(node.host.spec), "boot": 2})
    world.loop.spawn(node.reboot())
    world.until(lambda: node.host.boot_id != boot and node.up)
    assert allocatable(node) == 0
    assert node.host.read("/run/nvidia/validations/cuda-ready") is None
    world.until(lambda: allocatable(node) == 8, 20)
    assert proof.init[0].restarts > before
    world.until(lambda: all(pod.main[0].ready for pod in (driver, toolkit, proof, plugin)))


def test_faults_of_the_fleet_have_their_effects(world):
    bad = world.node("n0", faults=["driver_load_failure"])
    driver = world.pod(bad, DRIVER)
    world.until(lambda: driver.main[0].restarts >= 1)
    assert "Xid (PCI:0000:18:00): 119" in log(driver.main[0])
    fewer = world.node("n1", faults=["plugin_fewer_gpus"])
    deploy(world, fewer)
    world.until(lambda: allocatable(fewer) == 7)
    fewer.host.spec = fewer.host.spec.__class__(**{**vars(fewer.host.spec), "faults": ()})
    fewer.host.changed()
    world.until(lambda: allocatable(fewer) == 8)
    unpullable = world.node("n2", faults=[{"name": "image_pull_failure", "image": "driver"}])
    pod = world.pod(unpullable, DRIVER)
    world.until(lambda: pod.main[0].state.get("waiting", {}).get("reason") == "ImagePullBackOff")
    assert "503 Service Unavailable" in pod.main[0].state["waiting"]["message"]
    cuda = world.node("n3", faults=["cuda_failure"])
    *_rest, proof, _plugin = deploy(world, cuda)
    world.until(lambda: proof.init[2].restarts >= 1)
    assert "system not yet initialized" in log(proof.init[2])


MANAGER_IMAGE = "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0"
MANAGER = {
    "containers": [container("main", "registry.k8s.io/pause:3.10", ["/pause"])],
    "initContainers": [
        container(
            "manager",
            MANAGER_IMAGE,
            ["driver-manager", "uninstall_driver"],
            NODE_NAME="n0",
            OPERATOR_NAMESPACE="ns",
            ENABLE_GPU_POD_EVICTION="false",
            ENABLE_AUTO_DRAIN="false",
        ),
    ],
}


def switches(world):
    labels = world.api.at("/api/v1/nodes/n0")["metadata"]["labels"]
    return {
        key.removeprefix("nvidia.com/gpu.deploy."): value
        for key, value in labels.items()
        if key.startswith("nvidia.com/gpu.deploy.")
    }


def written(world):
    """Values of two switches in the order of the manager's writes."""
    bodies = [
        body["metadata"]["labels"]
        for _user, method, path, body in world.api.requests
        if (method, path) == ("PATCH", "/api/v1/nodes/n0")
    ]
    found = [
        (labels.get("nvidia.com/gpu.deploy.device-plugin"), labels.get("nvidia.com/gpu.deploy.dcgm"))
        for labels in bodies
    ]
    return [pair for pair in found if pair != (None, None)]


def test_the_manager_restores_switches_if_no_driver_is_loaded(world, node):
    world.api.at("/api/v1/nodes/n0")["metadata"]["labels"] |= {
        "nvidia.com/gpu.deploy.device-plugin": "paused-for-driver-upgrade"
    }
    pod = world.pod(node, MANAGER)
    world.until(lambda: pod.init[0].finished)
    assert "No NVIDIA driver loaded" in log(pod.init[0])
    found = switches(world)
    assert found.pop("device-plugin") == "true"
    assert set(found.values()) == {""}
    assert {"dcgm", "gpu-feature-discovery", "dra-driver"} < found.keys()
    assert "mig-manager" not in found


def test_the_manager_waits_for_clients_and_fails_if_they_remain(world, node):
    world.api.at("/api/v1/nodes/n0")["metadata"]["labels"] |= {"nvidia.com/gpu.deploy.device-plugin": "true"}
    node.host.modules.update(dict.fromkeys(("nvidia", "nvidia_uvm", "nvidia_modeset"), "580.1"))
    metadata = {"name": "client", "namespace": "ns", "labels": {"app": "nvidia-operator-validator"}}
    world.api.cluster.put({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n0"}, "status": {}})
    pod = world.pod(node, MANAGER)
    world.until(lambda: pod.init[0].restarts >= 1)
    assert "Failed to wait for nvidia-operator-validator to shutdown" in log(pod.init[0])
    assert written(world)[:2] == [("paused-for-driver-upgrade", ""), ("true", "")]
    assert node.host.modules
    world.api.cluster.remove("Pod", "client")
    world.until(lambda: pod.init[0].finished)
    assert not node.host.modules
    assert switches(world)["device-plugin"] == "true"


@pytest.mark.parametrize(("switch", "listed"), [("client", True), ("dra-driver", True), ("dcgm", False)])
def test_the_manager_lists_foreign_clients_if_a_switch_requires_it(world, node, switch, listed):
    world.api.at("/api/v1/nodes/n0")["metadata"]["labels"] |= {f"nvidia.com/gpu.deploy.{switch}": "true"}
    node.host.modules.update(dict.fromkeys(("nvidia", "nvidia_uvm", "nvidia_modeset"), "580.1"))
    pod = world.pod(node, MANAGER)
    world.api.cluster.remove("Pod", pod.name)
    world.until(lambda: pod.init[0].finished)
    users = {user for user, method, path, _body in world.api.requests if (method, path) == ("GET", "/api/v1/pods")}
    assert users == ({"system:serviceaccount:ns:default"} if listed else set())
    assert switches(world)[switch] == "true"


def test_a_host_driver_is_detected_and_the_manager_stops(world):
    node = world.node("n0", host_driver="580.95.05")
    toolkit = world.pod(node, TOOLKIT)
    world.until(lambda: toolkit.init[0].finished)
    assert "IS_HOST_DRIVER=true" in node.host.read("/run/nvidia/validations/driver-ready")
    pod = world.pod(node, MANAGER)
    world.until(lambda: pod.init[0].restarts >= 1)
    assert "already pre-installed on the node" in log(pod.init[0])
    assert world.api.at("/api/v1/nodes/n0")["metadata"]["labels"]["nvidia.com/gpu.deploy.driver"] == "pre-installed"


@pytest.mark.parametrize(
    ("config", "resource", "count"),
    [
        ("version: v1\nsharing:\n  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n", GPU, 32),
        (
            "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    resources: [{name: nvidia.com/gpu, replicas: 2}]\n",
            GPU + ".shared",
            16,
        ),
    ],
)
def test_the_plugin_configuration_is_applied(world, node, config, resource, count):
    world.store.data[("configmap", "ns", "plugin")] = {"config.yaml": config}

    def configure(spec):
        spec["volumes"] = [*spec["volumes"], {"name": "config", "configMap": {"name": "plugin"}}]
        spec["containers"][0]["volumeMounts"].append(mount("config", "/config"))
        spec["containers"][0]["env"].append({"name": "CONFIG_FILE", "value": "/config/config.yaml"})

    deploy(world, node, plugin=changed(DEVICE_PLUGIN, configure))
    world.until(lambda: node.devices.allocatable.get(resource) == count)
