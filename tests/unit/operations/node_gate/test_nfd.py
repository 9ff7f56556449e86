# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The features gate and NFD's Deployments of this collection, which no node tells of."""

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
    made = s.pod(program, on, {}, {program: status}, IMAGE, phase="Running")
    made["metadata"] |= {"labels": {"app": program}, "namespace": "system"}
    made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"{program}-5d4f", "controller": True}]
    made["spec"]["containers"][0]["command"] = [program]
    return made


def judged(
    clock: Time,
    *objects: Obj,
    script: list[Step] | None = None,
    node: Obj | None = None,
    check_mode: bool = False,
    **options: t.Any,
) -> Outcome:
    """A fleet whose only GPU node has passed, unless another is given."""
    cluster = NodeCluster([node or s.node("n"), s.node("cpu", gpus=0)], [s.worker("n")], script, clock.advance)
    for one in objects:
        cluster.put(one)
    return run(settings("features", pools=(), **options), cluster, check_mode=check_mode)


def test_one_whose_image_does_not_exist_fails_the_gate_and_no_node(clock: Time) -> None:
    began = clock.now
    result = judged(clock, deployment(available=0), pod(NO_IMAGE))
    assert result.values["nodes"] == {"passed": 1, "waiting": 0, "failed": 0, "unknown": 0}
    assert "nfd-gc (Deployment system/nfd-gc): container nfd-gc of pod nfd-gc-" in str(result.failure)
    assert f"the image cannot be pulled: {IMAGE}: not found. Next: check the image's name" in str(result.failure)
    assert result.warnings == []
    assert chain.GRACE <= clock.now - began < chain.GRACE + 60


def test_one_that_comes_up_is_waited_for(clock: Time) -> None:
    began = clock.now
    result = judged(
        clock,
        deployment(available=0),
        pod(s.waiting()),
        script=[lambda cluster: clock.advance(6), lambda cluster: cluster.put(deployment())],
    )
    assert (result.failure, result.warnings) == (None, [])
    assert clock.now - began == 6


def test_a_passed_gate_costs_one_request_more(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    plain = NodeCluster.list

    def noted(cluster: NodeCluster, resource: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
        listed.append(resource.kind)
        return plain(cluster, resource, *args, **kwargs)

    monkeypatch.setattr(NodeCluster, "list", noted)
    assert judged(clock, deployment(), deployment("nfd-master"), pod(s.running())).failure is None
    assert listed == ["DaemonSet", "Deployment"]
    judged(clock, deployment(available=0), check_mode=True)
    assert listed == ["DaemonSet", "Deployment"], "check mode asks nothing"


def test_an_event_tells_why_there_is_no_pod(clock: Time) -> None:
    why = 'Error creating: pods "nfd-gc-1-" is forbidden: error looking up service account system/absent: serviceaccount "absent" not found'
    events = [
        warning("system", owner, {"kind": "ReplicaSet", "name": f"{owner}-1"}, "FailedCreate", text)
        for owner, text in (("nfd-gc", why), ("other", "somebody else's"))
    ]
    failure = str(judged(clock, deployment(available=0), *events).failure)
    assert "nfd-gc (Deployment system/nfd-gc): 0 of 1 pods; FailedCreate: Error creating" in failure
    assert 'serviceaccount "absent" not found' in failure


def test_what_its_status_says_of_missing_pods_is_told_once(clock: Time) -> None:
    refused = deployment(available=0)
    message = 'pods "nfd-gc-1-" is forbidden: serviceaccount "absent" not found'
    refused["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    ]
    owner = {"kind": "ReplicaSet", "name": "nfd-gc-1"}
    event = warning("system", "e", owner, "FailedCreate", message)
    assert str(judged(clock, refused, event).failure).count(message) == 1


def test_an_old_pod_that_still_runs_tells_nothing_of_a_new_one_that_is_missing(clock: Time) -> None:
    lagging = deployment()
    lagging["status"] |= {"updatedReplicas": 0}
    failure = str(judged(clock, lagging, pod(s.running())).failure)
    assert "nfd-gc (Deployment system/nfd-gc): 0 of 1 pods are of the new version" in failure


def test_an_event_tells_why_a_pod_does_not_start(clock: Time) -> None:
    stuck = pod(s.waiting("ContainerCreating"))
    event = warning(
        "system",
        "e",
        {"kind": "Pod", "uid": stuck["metadata"]["uid"]},
        "FailedMount",
        'MountVolume.SetUp failed for volume "conf" : configmap "absent" not found',
    )
    failure = str(judged(clock, deployment(available=0), stuck, event).failure)
    assert (
        'it is not ready; FailedMount: MountVolume.SetUp failed for volume "conf" : configmap "absent" not found. Next: create what'
        in failure
    )


def test_one_that_crashes_is_told_with_its_log(clock: Time) -> None:
    failure = str(judged(clock, deployment(available=0), pod(s.crash_loop("nfd-gc", 4))).failure)
    assert "crashed 5 times" in failure
    assert "its log: nfd-gc: could not load" in failure
    assert "secret" not in failure


@pytest.mark.parametrize("known", [True, False], ids=["not Ready", "gone"])
def test_one_on_a_dead_node_is_only_told(clock: Time, known: bool) -> None:
    """Kubernetes makes it anew on another node; a run need not wait for that."""
    began = clock.now
    dead = [s.node("dead", gpus=0, ready=False)] if known else []
    result = judged(clock, deployment(available=0), pod(s.running(ready=False), on="dead"), *dead)
    assert (result.failure, clock.now) == (None, began)
    assert result.warnings == ["Deployment nfd-gc: 0 of 1 pods; its node dead is not Ready"]


@pytest.mark.parametrize(
    "other",
    [deployment(available=0, ours=False), deployment(available=0, replicas=0), deployment("other", available=0)],
)
def test_what_is_not_ours_to_judge_is_left_alone(clock: Time, other: Obj) -> None:
    began = clock.now
    result = judged(clock, other, pod(NO_IMAGE))
    assert (result.failure, result.warnings, clock.now) == (None, [], began)


def test_nodes_that_wait_to_the_end_do_not_hide_it(clock: Time) -> None:
    unseen = s.node("n", nfd=False)
    failure = str(judged(clock, deployment(available=0), pod(NO_IMAGE), node=unseen).failure)
    assert "nodes failed" in failure
    assert "nfd-gc (Deployment system/nfd-gc)" in failure


def test_what_nodes_tell_of_the_master_is_told_once(clock: Time) -> None:
    failure = str(
        judged(
            clock, deployment("nfd-master", available=0), pod(NO_IMAGE, "nfd-master"), node=s.node("n", nfd=False)
        ).failure
    )
    assert failure.count("the image cannot be pulled") == 1
    assert "no pod of nfd-master" not in failure


def test_a_cluster_that_is_lost_at_the_end_is_no_fault_of_theirs(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = NodeCluster.list

    def away(cluster: NodeCluster, resource: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
        if resource.kind == "Deployment":
            raise Unreachable("listing deployments", "https://cluster:6443", "connection refused")
        return plain(cluster, resource, *args, **kwargs)

    monkeypatch.setattr(NodeCluster, "list", away)
    failure = str(judged(clock, deployment(available=0), pod(NO_IMAGE)).failure)
    assert "lost the connection to the cluster" in failure
    assert "nfd-gc" not in failure
