# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The features gate and NFD's Deployments of this collection, whose state no node reflects."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.names import OWNER_LABELS
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import warning
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster, Step
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import settings

IMAGE = "registry.k8s.io/nfd/node-feature-discovery:v0.91.0"
NO_IMAGE = s.waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: {IMAGE}: not found')


def deployment(program: str = "nfd-gc", available: int = 1, *, ours: bool = True, replicas: int = 1) -> Obj:
    template = {"spec": {"containers": [{"name": program, "image": IMAGE, "command": [program]}]}}
    return {
        "kind": "Deployment",
        "metadata": {
            "name": program,
            "namespace": "system",
            "labels": dict(OWNER_LABELS) if ours else {},
            "generation": 1,
        },
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": program}}, "template": template},
        "status": {
            "observedGeneration": 1,
            "replicas": available,
            "updatedReplicas": replicas,
            "availableReplicas": available,
        },
    }


def pod(status: Obj, program: str = "nfd-gc", on: str = "cpu") -> Obj:
    created = s.pod(program, on, {}, {program: status}, IMAGE, phase="Running")
    created["metadata"] |= {"labels": {"app": program}, "namespace": "system"}
    created["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"{program}-5d4f", "controller": True}]
    created["spec"]["containers"][0]["command"] = [program]
    return created


def gate_result(
    clock: Time,
    *objects: Obj,
    script: list[Step] | None = None,
    node: Obj | None = None,
    check_mode: bool = False,
    **options: t.Any,
) -> Outcome:
    """The gate on a fleet whose only GPU node has passed, unless another one is given."""
    cluster = NodeCluster([node or s.node("n"), s.node("cpu", gpus=0)], [s.worker("n")], script, clock.advance)
    for one in objects:
        cluster.put(one)
    return run(settings("features", pools=(), **options), cluster, check_mode=check_mode)


def test_a_deployment_without_image_fails_the_gate_and_no_node(clock: Time) -> None:
    began = clock.now
    result = gate_result(clock, deployment(available=0), pod(NO_IMAGE))
    assert result.values["nodes"] == {"passed": 1, "waiting": 0, "failed": 0, "unknown": 0}
    assert "nfd-gc (Deployment system/nfd-gc): container nfd-gc of pod nfd-gc-" in str(result.failure)
    assert f"the image cannot be pulled: {IMAGE}: not found. Next: check the image's name" in str(result.failure)
    assert result.warnings == []
    assert chain.GRACE <= clock.now - began < chain.GRACE + 60


def test_a_starting_deployment_is_waited_for(clock: Time) -> None:
    began = clock.now
    result = gate_result(
        clock,
        deployment(available=0),
        pod(s.waiting()),
        script=[lambda cluster: clock.advance(6), lambda cluster: cluster.put(deployment())],
    )
    assert (result.failure, result.warnings) == (None, [])
    assert clock.now - began == 6


def test_a_passed_gate_needs_one_more_request(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    plain = NodeCluster.list

    def recording(cluster: NodeCluster, resource: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
        listed.append(resource.kind)
        return plain(cluster, resource, *args, **kwargs)

    monkeypatch.setattr(NodeCluster, "list", recording)
    assert gate_result(clock, deployment(), deployment("nfd-master"), pod(s.running())).failure is None
    assert listed == ["DaemonSet", "DaemonSet", "Deployment"]
    gate_result(clock, deployment(available=0), check_mode=True)
    assert listed == ["DaemonSet", "DaemonSet", "Deployment", "DaemonSet"], "check mode sends no request for rollouts"


def test_the_reason_of_a_missing_pod_comes_from_an_event(clock: Time) -> None:
    why = 'Error creating: pods "nfd-gc-1-" is forbidden: error looking up service account system/absent: serviceaccount "absent" not found'
    events = [
        warning("system", owner, {"kind": "ReplicaSet", "name": f"{owner}-1"}, "FailedCreate", text)
        for owner, text in (("nfd-gc", why), ("other", "unrelated"))
    ]
    failure = str(gate_result(clock, deployment(available=0), *events).failure)
    assert "nfd-gc (Deployment system/nfd-gc): 0 of 1 pods; FailedCreate: Error creating" in failure
    assert 'serviceaccount "absent" not found' in failure


def test_a_reason_in_status_and_event_is_reported_once(clock: Time) -> None:
    denied = deployment(available=0)
    message = 'pods "nfd-gc-1-" is forbidden: serviceaccount "absent" not found'
    denied["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    ]
    owner = {"kind": "ReplicaSet", "name": "nfd-gc-1"}
    event = warning("system", "e", owner, "FailedCreate", message)
    assert str(gate_result(clock, denied, event).failure).count(message) == 1


def test_a_running_old_pod_does_not_hide_a_missing_new_one(clock: Time) -> None:
    lagging = deployment()
    lagging["status"] |= {"updatedReplicas": 0}
    failure = str(gate_result(clock, lagging, pod(s.running())).failure)
    assert "nfd-gc (Deployment system/nfd-gc): 0 of 1 pods are of the new version" in failure


def test_the_reason_of_a_pod_that_does_not_start_comes_from_an_event(clock: Time) -> None:
    stuck = pod(s.waiting("ContainerCreating"))
    event = warning(
        "system",
        "e",
        {"kind": "Pod", "uid": stuck["metadata"]["uid"]},
        "FailedMount",
        'MountVolume.SetUp failed for volume "conf" : configmap "absent" not found',
    )
    failure = str(gate_result(clock, deployment(available=0), stuck, event).failure)
    assert (
        'it is not ready; FailedMount: MountVolume.SetUp failed for volume "conf" : configmap "absent" not found. Next: create what'
        in failure
    )


def test_a_crashing_deployment_is_reported_with_its_log(clock: Time) -> None:
    failure = str(gate_result(clock, deployment(available=0), pod(s.crash_loop("nfd-gc", 4))).failure)
    assert "crashed 5 times" in failure
    assert "its log: nfd-gc: could not load" in failure
    assert "secret" not in failure


@pytest.mark.parametrize("known", [True, False], ids=["not Ready", "deleted"])
def test_a_deployment_on_a_failed_node_is_only_a_warning(clock: Time, known: bool) -> None:
    """Kubernetes creates its pod again on another node, so a run need not wait for it."""
    began = clock.now
    dead = [s.node("dead", gpus=0, ready=False)] if known else []
    result = gate_result(clock, deployment(available=0), pod(s.running(ready=False), on="dead"), *dead)
    assert (result.failure, clock.now) == (None, began)
    assert result.warnings == ["Deployment nfd-gc: 0 of 1 pods; its node dead is not Ready"]


@pytest.mark.parametrize(
    "other",
    [deployment(available=0, ours=False), deployment(available=0, replicas=0), deployment("other", available=0)],
)
def test_foreign_and_disabled_deployments_are_ignored(clock: Time, other: Obj) -> None:
    began = clock.now
    result = gate_result(clock, other, pod(NO_IMAGE))
    assert (result.failure, result.warnings, clock.now) == (None, [], began)


def test_failed_nodes_do_not_hide_a_failed_deployment(clock: Time) -> None:
    undiscovered = s.node("n", nfd=False)
    failure = str(gate_result(clock, deployment(available=0), pod(NO_IMAGE), node=undiscovered).failure)
    assert "nodes failed" in failure
    assert "nfd-gc (Deployment system/nfd-gc)" in failure


def test_a_failed_master_is_reported_once(clock: Time) -> None:
    failure = str(
        gate_result(
            clock, deployment("nfd-master", available=0), pod(NO_IMAGE, "nfd-master"), node=s.node("n", nfd=False)
        ).failure
    )
    assert failure.count("the image cannot be pulled") == 1
    assert "no pod of nfd-master" not in failure


def test_a_lost_connection_is_no_fault_of_the_deployments(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = NodeCluster.list

    def away(cluster: NodeCluster, resource: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
        if resource.kind == "Deployment":
            raise Unreachable("listing deployments", "https://cluster:6443", "connection refused")
        return plain(cluster, resource, *args, **kwargs)

    monkeypatch.setattr(NodeCluster, "list", away)
    failure = str(gate_result(clock, deployment(available=0), pod(NO_IMAGE)).failure)
    assert "lost the connection to the cluster" in failure
    assert "nfd-gc" not in failure
