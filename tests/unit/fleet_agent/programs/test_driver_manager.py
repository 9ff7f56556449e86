# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the driver manager, which runs before the driver of a node."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log

IMAGE = "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [(["uninstal_driver"], 3, "No help topic for 'uninstal_driver'"), ([], 0, "NAME:")],
)
def test_another_command_unloads_nothing(world, command, code, message):
    node = world.node()
    node.host.modules.update(dict.fromkeys(("nvidia", "nvidia_uvm", "nvidia_modeset"), "580.95.05"))
    made = container("c", IMAGE, ["driver-manager", *command], NODE_NAME="n0")
    pod = world.pod(node, {"restartPolicy": "Never", "containers": [made]})
    world.until(lambda: "terminated" in pod.main[0].state)
    assert pod.main[0].state["terminated"]["exitCode"] == code
    assert message in log(pod.main[0])
    assert "nvidia" in node.host.modules


def workload(world, node, name, owners=(), gpus=1):
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    metadata = {"name": name, "namespace": "ns", "uid": name, "ownerReferences": list(owners)}
    spec = {"nodeName": node.name, "containers": [{"name": "c", "resources": limits}]}
    world.api.cluster.put({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


REPLICA = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}


def managed(world, node, **settings):
    node.host.modules.update(dict.fromkeys(("nvidia", "nvidia_uvm", "nvidia_modeset"), "580.95.05"))
    made = container(
        "c", IMAGE, ["driver-manager", "uninstall_driver"], NODE_NAME="n0", OPERATOR_NAMESPACE="other", **settings
    )
    pod = world.pod(node, {"restartPolicy": "Never", "containers": [made]})
    world.until(lambda: "terminated" in pod.main[0].state)
    return pod.main[0]


def written(world, name):
    return [
        body
        for _user, method, path, body in world.api.requests
        if method == "PATCH" and path == f"/api/v1/nodes/{name}"
    ]


@pytest.mark.parametrize("evicts", ["true", None, "false"])
def test_it_cordons_and_evicts_unless_it_is_told_not_to(world, evicts):
    """Both settings are true where the manifest does not have them."""
    node = world.node()
    settings = {} if evicts is None else {"ENABLE_GPU_POD_EVICTION": evicts, "ENABLE_AUTO_DRAIN": evicts}
    workload(world, node, "job", [REPLICA])
    workload(world, node, "web", [REPLICA], gpus=0)
    status = managed(world, node, **settings)
    cordons = [body for body in written(world, "n0") if "unschedulable" in body.get("spec", {})]
    assert status.state["terminated"]["exitCode"] == 0
    assert bool(cordons) == (evicts != "false")
    assert world.api.has("/api/v1/namespaces/ns/pods/job") == (evicts == "false")
    assert world.api.has("/api/v1/namespaces/ns/pods/web")


def test_a_node_that_it_may_not_cordon_keeps_its_driver(world):
    node = world.node()
    world.api.forbidden.append(r"PATCH /api/v1/nodes/n0.*")
    status = managed(world, node)
    assert status.state["terminated"]["exitCode"] == 1
    assert "nvidia" in node.host.modules


def test_of_a_pod_without_a_controller_only_force_evicts(world):
    node = world.node()
    workload(world, node, "bare")
    status = managed(world, node, ENABLE_AUTO_DRAIN="false")
    assert "cannot proceed until all GPU pods are drained from the node" in log(status)
    assert status.state["terminated"]["exitCode"] == 1
    status = managed(world, node, ENABLE_AUTO_DRAIN="false", DRAIN_USE_FORCE="true")
    assert status.state["terminated"]["exitCode"] == 0
    assert not world.api.has("/api/v1/namespaces/ns/pods/bare")


def test_a_drain_of_all_pods_fails_where_a_daemon_set_has_one(world):
    """What holds the driver is not evicted, so the manager tries to drain the node, on which its own pod is one of a DaemonSet."""
    node = world.node()
    node.host.clients.add("job")
    workload(world, node, "agent", [{**REPLICA, "kind": "DaemonSet"}], gpus=0)
    status = managed(world, node)
    assert "cannot delete DaemonSet-managed Pods" in log(status)
    assert "nvidia" in node.host.modules


def test_without_the_name_of_its_node_it_does_not_start(world):
    pod = world.pod(
        world.node(),
        {"restartPolicy": "Never", "containers": [container("c", IMAGE, ["driver-manager", "uninstall_driver"])]},
    )
    world.until(lambda: "terminated" in pod.main[0].state)
    assert 'Required flag "node-name" not set' in log(pod.main[0])
