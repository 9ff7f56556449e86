# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on a real control plane. The fleet agent runs the pods."""

from __future__ import annotations

import datetime
import json
import pathlib
import threading
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack as stack
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right
from ansible_collections.hwaccel.gpu.tests.live.support.audit import MUTATING, AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU, Cluster, until

COUNT = 4
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": COUNT,
            "kernel": stack.KERNEL,
            "gpu": GPU,
        },
        {"name": "cpu", "count": 1},
    ],
}
POOLS = parse_pools([{"name": "training", "nodes": [f"gpu-{number}" for number in range(COUNT)], "gpu": {"count": 8}}])


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> t.Any:
    sandbox = make_sandbox(FLEET)
    client = connect({"kubeconfig": sandbox.kubeconfig})
    stack.label_as_nfd_would(client)
    stack.deploy_all(client)
    return sandbox


@pytest.fixture
def cluster(sandbox: t.Any) -> Cluster:
    return Cluster(sandbox)


def gate(
    cluster: Cluster, name: str = "driver", *, client: Client | None = None, check_mode: bool = False, **options: t.Any
) -> Outcome:
    """client: with the rights of another user."""
    settings = {"pools": POOLS, "namespace": stack.NAMESPACE, "max_failed": "25%", "wait_timeout": 240.0} | options
    return run(Settings(name, **settings), client or cluster.client, check_mode=check_mode)


def now() -> str:
    """A time in the format of the audit log. The end of the log is no substitute, because the watch of an ended gate is logged with a delay."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def requests(audit_log: pathlib.Path, since: str) -> list[Request]:
    """Requests of the gate and of this test."""
    log = AuditLog(audit_log)
    log.offset = 0
    return [request for request in log.ours() if request.received >= since]


def writes(audit_log: pathlib.Path, since: str) -> list[str]:
    return [str(request) for request in requests(audit_log, since) if request.is_write]


def node_reads(audit_log: pathlib.Path, since: str) -> list[str]:
    """Lists and watches of nodes; a waiting gate sends several."""
    return [
        f"{request.verb} {request.uri}"
        for request in requests(audit_log, since)
        if request.verb in ("list", "watch") and request.resource == "nodes"
    ]


def test_a_healthy_fleet_passes_every_gate_and_nothing_is_written(sandbox: t.Any, cluster: Cluster) -> None:
    assert gate(cluster).values["nodes"]["passed"] == COUNT
    devices = gate(cluster, "devices")
    assert devices.values["nodes"] == {"passed": COUNT, "waiting": 0, "failed": 0, "unknown": 0}
    assert devices.values["pools"][0]["expected"] == devices.values["pools"][0]["seen"] == 8 * COUNT
    assert writes(sandbox.audit_log, ""), "the audit log shows what this client writes"
    begun = now()
    for name in ("features", "driver", "devices"):
        again = gate(cluster, name)
        assert again.values["nodes"]["passed"] == COUNT, again.values
        assert not again.changed
    assert node_reads(sandbox.audit_log, begun) == ["list /api/v1/nodes?limit=500"] * 3, (
        "a gate that passes lists the nodes once"
    )
    assert [entry for entry in writes(sandbox.audit_log, begun) if "nodes" in entry] == []


def test_check_mode_reports_missing_rights_of_a_reader(sandbox: t.Any, cluster: Cluster) -> None:
    rbac, name = "rbac.authorization.k8s.io", "gate-reader"
    rules = [
        {"apiGroups": ["", "apps"], "resources": ["nodes", "pods", "daemonsets", "events"], "verbs": ["get", "list"]}
    ]
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": name, "apiGroup": rbac}],
    }
    for body in (role, binding):
        cluster.client.create(body, cluster.client.resource(body["apiVersion"], body["kind"]))
    assert gate(cluster).values["nodes"]["passed"] == COUNT
    reader = connect({"kubeconfig": sandbox.kubeconfig, "impersonate_user": name})
    await_right(reader, "list", reader.resource("v1", "Node"))
    begun = now()
    assert gate(cluster, client=reader, check_mode=True).failure is None, "a fleet that has passed needs no write"
    # The namespace does not exist, so all nodes wait for pods.
    refused = gate(cluster, client=reader, check_mode=True, namespace="nowhere")
    assert [(one["verb"], one["resource"], one["namespace"]) for one in refused.values["missing_rights"]] == [
        ("get", "pods/log", "nowhere"),
        ("patch", "nodes", ""),
        ("watch", "nodes", ""),
        ("watch", "pods", "nowhere"),
    ]
    assert "permission to patch nodes is missing (cluster-wide)" in str(refused.failure)
    assert gate(cluster, check_mode=True, namespace="nowhere").failure is None
    assert {request.resource for request in requests(sandbox.audit_log, begun) if request.verb in MUTATING} == {
        "selfsubjectaccessreviews"
    }


def test_a_driver_that_does_not_load_is_reported_with_its_log_and_quarantined(sandbox: t.Any, cluster: Cluster) -> None:
    sandbox.add_fault("driver_load_failure", node="gpu-1")
    sandbox.reboot("gpu-1")
    result = gate(cluster)
    assert result.values["failed_nodes"] == ["gpu-1"], result.values
    assert result.failure is None
    (fault,) = result.values["faults"]
    assert (fault["link"], fault["pool"], fault["state"]) == ("driver", "training", "failed")
    assert fault["log_tail"]
    assert fault["next_step"]
    assert cluster.taints("gpu-1")[marks.names.QUARANTINE] == "driver"
    assert cluster.node("gpu-1")["metadata"]["annotations"][marks.names.QUARANTINE_REASON]
    others = gate(cluster, "devices", exclude=frozenset(result.values["failed_nodes"]))
    assert others.values["nodes"]["passed"] == COUNT - 1
    sandbox.clear_faults()
    repaired = gate(cluster)
    assert repaired.values["nodes"]["passed"] == COUNT, str(repaired.values["faults"])
    assert repaired.values["released"] == ["gpu-1"]
    assert marks.names.QUARANTINE not in cluster.taints("gpu-1")


def test_a_missing_gpu_is_reported_at_the_devices_gate(sandbox: t.Any, cluster: Cluster) -> None:
    sandbox.add_fault("plugin_fewer_gpus", node="gpu-2")
    sandbox.reboot("gpu-2")
    gate(cluster)
    result = gate(cluster, "devices", quarantine=False)
    assert result.values["failed_nodes"] == ["gpu-2"], result.values
    assert result.values["faults"][0]["link"] == "schedulable"
    assert "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected" in result.values["faults"][0]["reason"]
    sandbox.clear_faults()
    sandbox.reboot("gpu-2")
    assert gate(cluster, "devices").values["nodes"]["passed"] == COUNT


def test_too_many_failed_nodes_stop_the_gate_and_check_mode_only_reads(sandbox: t.Any, cluster: Cluster) -> None:
    for name in ("gpu-0", "gpu-1"):
        sandbox.add_fault("driver_load_failure", node=name)
        sandbox.reboot(name)
    stopped = gate(cluster)
    assert sorted(stopped.values["failed_nodes"]) == ["gpu-0", "gpu-1"]
    assert stopped.failure is not None
    assert not stopped.values["within_limit"]
    assert marks.names.QUARANTINE not in cluster.taints("gpu-0")
    begun = now()
    planned = gate(cluster, check_mode=True)
    assert planned.failure is None
    assert planned.values["nodes"]["waiting"] == 2
    assert node_reads(sandbox.audit_log, begun) == ["list /api/v1/nodes?limit=500"], (
        "check mode lists the nodes once and does not wait"
    )
    assert writes(sandbox.audit_log, begun) == []
    sandbox.clear_faults()
    repaired = gate(cluster)
    assert repaired.values["nodes"]["passed"] == COUNT, str(repaired.values["faults"])


def test_two_writers_of_the_taints_of_a_node_lose_no_change(sandbox: t.Any, cluster: Cluster) -> None:
    """Another controller changes its own taint as fast as possible, while the node is quarantined and released repeatedly."""
    resource = cluster.client.resource("v1", "Node")
    stop = threading.Event()
    written: list[int] = []

    def other_writer() -> None:
        other = connect({"kubeconfig": sandbox.kubeconfig})
        while not stop.is_set():
            number = len(written)
            node = other.get(resource, "gpu-3")
            kept = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != "maintenance/window"]
            taints = [*kept, {"key": "maintenance/window", "value": str(number), "effect": "PreferNoSchedule"}]
            patch = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": taints}}
            try:
                other.patch(resource, "gpu-3", "", patch, field_manager="maintenance")
            except marks.Conflict:
                continue
            written.append(number)
            stop.wait(0.02)

    thread = threading.Thread(target=other_writer)
    thread.start()
    try:
        for turn in range(200):
            if turn >= 10 and len(written) > 10:
                break
            assert marks.quarantine(cluster.client, resource, "gpu-3", "driver", "a test", lambda _node: marks.HARD)
            assert cluster.taints("gpu-3")[marks.names.QUARANTINE] == "driver"
            assert marks.release(cluster.client, resource, "gpu-3")
            assert marks.names.QUARANTINE not in cluster.taints("gpu-3")
    finally:
        stop.set()
        thread.join()
    assert len(written) > 10
    assert cluster.taints("gpu-3") == {"maintenance/window": str(written[-1])}
    assert not marks.release(cluster.client, resource, "gpu-3")


def test_the_cordon_of_another_user_remains_when_a_node_is_released(cluster: Cluster) -> None:
    resource = cluster.client.resource("v1", "Node")
    cluster.client.patch(resource, "gpu-0", "", {"spec": {"unschedulable": True}}, field_manager="kubectl-cordon")
    until(
        lambda: "node.kubernetes.io/unschedulable" in cluster.taints("gpu-0"),
        "the node controller to taint the cordoned node",
    )
    assert marks.quarantine(cluster.client, resource, "gpu-0", "driver", "a test", lambda _node: marks.HARD)
    assert gate(cluster).values["released"] == ["gpu-0"]
    node = cluster.node("gpu-0")
    assert node["spec"]["unschedulable"]
    assert "node.kubernetes.io/unschedulable" in cluster.taints("gpu-0")
    cluster.client.patch(resource, "gpu-0", "", {"spec": {"unschedulable": None}}, field_manager="kubectl-cordon")


def test_slices_wait_for_a_rebooting_node(sandbox: t.Any, cluster: Cluster) -> None:
    sandbox.reboot("gpu-2")
    settings = Settings("devices", POOLS, stack.NAMESPACE, wait_timeout=240.0)
    resume: dict[str, t.Any] = {}
    for _slice in range(1000):
        result = run(
            settings, connect({"kubeconfig": sandbox.kubeconfig}), deadline=time.monotonic() + 1, resume=resume
        )
        if result.pending is None:
            break
        resume = json.loads(json.dumps(result.pending))
    assert result.values["nodes"]["passed"] == COUNT, result.values


def test_a_missing_validator_is_reported(cluster: Cluster) -> None:
    stack.delete_daemon_set(cluster.client, "nvidia-operator-validator")
    until(
        lambda: not cluster.pods("nvidia-operator-validator", namespace=stack.NAMESPACE).items,
        "the validator's pods to be deleted",
    )
    result = gate(cluster, wait_timeout=6.0)
    assert result.failure is not None
    assert "no validator pod is on the node" in result.values["faults"][0]["reason"]
    assert result.values["faults"][0]["next_step"]
    stack.deploy(cluster.client, stack.validator())
    assert gate(cluster).values["nodes"]["passed"] == COUNT
