# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on a real control plane, whose pods the fleet agent runs."""

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
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import until

COUNT = 4
FLEET: dict[str, t.Any] = {
    "time_scale": 0.02,
    "pools": [
        {
            "name": "gpu",
            "count": COUNT,
            "kernel": stack.KERNEL,
            "gpu": {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559},
        },
        {"name": "cpu", "count": 1},
    ],
}
POOLS = parse_pools([{"name": "training", "nodes": [f"gpu-{number}" for number in range(COUNT)], "gpu": {"count": 8}}])


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> t.Any:
    made = make_sandbox(FLEET)
    client = connect({"kubeconfig": made.kubeconfig})
    stack.label_as_nfd_would(client)
    stack.deploy_all(client)
    return made


@pytest.fixture
def client(sandbox: t.Any) -> Client:
    return connect({"kubeconfig": sandbox.kubeconfig})


def gate(client: Client, name: str = "driver", *, check_mode: bool = False, **options: t.Any) -> Outcome:
    settings = {"pools": POOLS, "namespace": stack.NAMESPACE, "max_failed": "25%", "wait_timeout": 240.0} | options
    return run(Settings(name, **settings), client, check_mode=check_mode)


def now() -> str:
    """As the audit log writes times. Its end is no such mark: the watch of a gate that has ended is written there once the server has noticed."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def requests(audit_log: pathlib.Path, since: str) -> list[Request]:
    """What the gate and this test have asked for."""
    log = AuditLog(audit_log)
    log.offset = 0
    return [request for request in log.ours() if request.received >= since]


def writes(audit_log: pathlib.Path, since: str) -> list[str]:
    return [str(request) for request in requests(audit_log, since) if request.is_write]


def looks(audit_log: pathlib.Path, since: str) -> list[str]:
    """At the nodes; a gate that waits looks again and again, or watches them."""
    return [
        f"{request.verb} {request.uri}"
        for request in requests(audit_log, since)
        if request.verb in ("list", "watch") and request.resource == "nodes"
    ]


def test_a_healthy_fleet_passes_every_gate_and_nothing_is_written(sandbox: t.Any, client: Client) -> None:
    assert gate(client).values["nodes"]["passed"] == COUNT
    devices = gate(client, "devices")
    assert devices.values["nodes"] == {"passed": COUNT, "waiting": 0, "failed": 0, "unknown": 0}
    assert devices.values["pools"][0]["expected"] == devices.values["pools"][0]["seen"] == 8 * COUNT
    assert writes(sandbox.audit_log, ""), "the audit log shows what this client writes"
    begun = now()
    for name in ("features", "driver", "devices"):
        again = gate(client, name)
        assert again.values["nodes"]["passed"] == COUNT, again.values
        assert not again.changed
    assert looks(sandbox.audit_log, begun) == ["list /api/v1/nodes?limit=500"] * 3, "a gate that is passed looks once"
    assert [entry for entry in writes(sandbox.audit_log, begun) if "nodes" in entry] == []


def test_check_mode_tells_a_reader_what_it_may_not_do(sandbox: t.Any, client: Client) -> None:
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
    for made in (role, binding):
        client.create(made, client.resource(made["apiVersion"], made["kind"]))
    assert gate(client).values["nodes"]["passed"] == COUNT
    reader = connect({"kubeconfig": sandbox.kubeconfig, "impersonate_user": name})
    await_right(reader, "list", reader.resource("v1", "Node"))
    begun = now()
    assert gate(reader, check_mode=True).failure is None, "a fleet that has passed needs no write"
    # Nobody has made this namespace: all nodes wait for pods.
    refused = gate(reader, check_mode=True, namespace="nowhere")
    assert [(one["verb"], one["resource"], one["namespace"]) for one in refused.values["missing_rights"]] == [
        ("get", "pods/log", "nowhere"),
        ("patch", "nodes", ""),
        ("watch", "nodes", ""),
        ("watch", "pods", "nowhere"),
    ]
    assert "permission to patch nodes is missing (cluster-wide)" in str(refused.failure)
    assert gate(client, check_mode=True, namespace="nowhere").failure is None
    assert {request.resource for request in requests(sandbox.audit_log, begun) if request.verb in MUTATING} == {
        "selfsubjectaccessreviews"
    }


def test_a_driver_that_does_not_load_is_told_with_its_log_and_kept_apart(sandbox: t.Any, client: Client) -> None:
    sandbox.add_fault("driver_load_failure", node="gpu-1")
    sandbox.reboot("gpu-1")
    result = gate(client)
    assert result.values["failed_nodes"] == ["gpu-1"], result.values
    assert result.failure is None
    (fault,) = result.values["faults"]
    assert (fault["link"], fault["pool"], fault["state"]) == ("driver", "training", "failed")
    assert fault["log_tail"]
    assert fault["next_step"]
    assert stack.taints(client, "gpu-1")[marks.names.QUARANTINE] == "driver"
    assert stack.node(client, "gpu-1")["metadata"]["annotations"][marks.names.QUARANTINE_REASON]
    others = gate(client, "devices", exclude=frozenset(result.values["failed_nodes"]))
    assert others.values["nodes"]["passed"] == COUNT - 1
    sandbox.clear_faults()
    repaired = gate(client)
    assert repaired.values["nodes"]["passed"] == COUNT, str(repaired.values["faults"])
    assert repaired.values["released"] == ["gpu-1"]
    assert marks.names.QUARANTINE not in stack.taints(client, "gpu-1")


def test_one_gpu_less_is_seen_at_the_devices_gate(sandbox: t.Any, client: Client) -> None:
    sandbox.add_fault("plugin_fewer_gpus", node="gpu-2")
    sandbox.reboot("gpu-2")
    gate(client)
    result = gate(client, "devices", quarantine=False)
    assert result.values["failed_nodes"] == ["gpu-2"], result.values
    assert result.values["faults"][0]["link"] == "schedulable"
    assert "7 nvidia.com/gpu allocatable, 8 nvidia.com/gpu expected" in result.values["faults"][0]["reason"]
    sandbox.clear_faults()
    sandbox.reboot("gpu-2")
    assert gate(client, "devices").values["nodes"]["passed"] == COUNT


def test_the_breaker_holds_and_check_mode_only_looks(sandbox: t.Any, client: Client) -> None:
    for name in ("gpu-0", "gpu-1"):
        sandbox.add_fault("driver_load_failure", node=name)
        sandbox.reboot(name)
    stopped = gate(client)
    assert sorted(stopped.values["failed_nodes"]) == ["gpu-0", "gpu-1"]
    assert stopped.failure is not None
    assert not stopped.values["within_limit"]
    assert marks.names.QUARANTINE not in stack.taints(client, "gpu-0")
    begun = now()
    planned = gate(client, check_mode=True)
    assert planned.failure is None
    assert planned.values["nodes"]["waiting"] == 2
    assert looks(sandbox.audit_log, begun) == ["list /api/v1/nodes?limit=500"], (
        "check mode looks once and does not wait"
    )
    assert writes(sandbox.audit_log, begun) == []
    sandbox.clear_faults()
    repaired = gate(client)
    assert repaired.values["nodes"]["passed"] == COUNT, str(repaired.values["faults"])


def test_two_writers_of_one_nodes_taints_lose_nothing(sandbox: t.Any, client: Client) -> None:
    """Another controller adds and removes taints of its own as fast as it can, while the node is marked and freed again and again."""
    resource = client.resource("v1", "Node")
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
            assert marks.quarantine(client, resource, "gpu-3", "driver", "a test", lambda _node: marks.HARD)
            assert stack.taints(client, "gpu-3")[marks.names.QUARANTINE] == "driver"
            assert marks.release(client, resource, "gpu-3")
            assert marks.names.QUARANTINE not in stack.taints(client, "gpu-3")
    finally:
        stop.set()
        thread.join()
    assert len(written) > 10
    assert stack.taints(client, "gpu-3") == {"maintenance/window": str(written[-1])}
    assert not marks.release(client, resource, "gpu-3")


def test_foreign_cordon_stays_when_a_node_is_freed(client: Client) -> None:
    resource = client.resource("v1", "Node")
    client.patch(resource, "gpu-0", "", {"spec": {"unschedulable": True}}, field_manager="somebody")
    until(
        lambda: "node.kubernetes.io/unschedulable" in stack.taints(client, "gpu-0"),
        "the node controller to taint the cordoned node",
    )
    assert marks.quarantine(client, resource, "gpu-0", "driver", "a test", lambda _node: marks.HARD)
    assert gate(client).values["released"] == ["gpu-0"]
    node = stack.node(client, "gpu-0")
    assert node["spec"]["unschedulable"]
    assert "node.kubernetes.io/unschedulable" in stack.taints(client, "gpu-0")
    client.patch(resource, "gpu-0", "", {"spec": {"unschedulable": None}}, field_manager="somebody")


def test_slices_wait_for_a_rebooting_node(sandbox: t.Any, client: Client) -> None:
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


def test_a_missing_stack_is_named(client: Client, sandbox: t.Any) -> None:
    stack.delete_daemon_set(client, "nvidia-operator-validator")
    pods = client.resource("v1", "Pod")
    until(
        lambda: not client.list(pods, stack.NAMESPACE, label_selector="app=nvidia-operator-validator").items,
        "the validator's pods to go",
    )
    result = gate(client, wait_timeout=6.0)
    assert result.failure is not None
    assert "no validator pod is on the node" in result.values["faults"][0]["reason"]
    assert result.values["faults"][0]["next_step"]
    stack.deploy(client, stack.validator())
    assert gate(client).values["nodes"]["passed"] == COUNT
