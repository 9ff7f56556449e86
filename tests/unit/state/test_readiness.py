# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness of every kind: objects that are ready, pending, or failed."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._state import expressions, objects, placement, readiness
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import Verdict


def judge(group: str, kind: str, spec: t.Any = None, status: t.Any = None, **more: t.Any) -> Verdict:
    obj = {
        "metadata": {"name": "x", "generation": 2},
        "spec": spec or {},
        "status": {"observedGeneration": 2} | (status or {}),
    }
    return readiness.judge(obj, group, kind, more.pop("ready_when", {}), **more)


def cond(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


DEPLOYED = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
ROLLED = {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3, "numberReady": 3}


@pytest.mark.parametrize(
    ("group", "kind", "spec", "status"),
    [
        ("apps", "Deployment", {"replicas": 2}, DEPLOYED),
        ("apps", "Deployment", {"replicas": 0}, {}),
        ("apps", "ReplicaSet", {"replicas": 1}, {"availableReplicas": 1}),
        (
            "apps",
            "StatefulSet",
            {"replicas": 2},
            {"readyReplicas": 2, "updatedReplicas": 2, "currentRevision": "b", "updateRevision": "b"},
        ),
        # The controller sets the new revision as the current one in a later write.
        (
            "apps",
            "StatefulSet",
            {"replicas": 2},
            {"readyReplicas": 2, "updatedReplicas": 2, "currentRevision": "a", "updateRevision": "b"},
        ),
        (
            "apps",
            "StatefulSet",
            {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
            {"readyReplicas": 2, "currentRevision": "a", "updateRevision": "b"},
        ),
        (
            "apps",
            "StatefulSet",
            {"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            {"readyReplicas": 2, "updatedReplicas": 1},
        ),
        ("apps", "DaemonSet", {}, ROLLED),
        ("apps", "DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, ROLLED | {"updatedNumberScheduled": 0}),
        ("apps", "DaemonSet", {}, {"desiredNumberScheduled": 0}),
        ("", "Pod", {}, {"phase": "Succeeded"}),
        ("", "Pod", {}, {"phase": "Running", "conditions": [cond("Ready")]}),
        ("batch", "Job", {}, {"conditions": [cond("Complete")]}),
        ("", "PersistentVolumeClaim", {}, {"phase": "Bound"}),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            {},
            {"conditions": [cond("NamesAccepted"), cond("Established")]},
        ),
        ("apiregistration.k8s.io", "APIService", {}, {"conditions": [cond("Available")]}),
        ("", "Node", {}, {"conditions": [cond("Ready")]}),
        ("", "Namespace", {}, {"phase": "Active"}),
        ("", "Service", {}, {}),
        ("", "Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
        ("", "ConfigMap", {}, {}),
        ("example.com", "Thing", {}, {}),
    ],
)
def test_ready(group: str, kind: str, spec: t.Any, status: t.Any) -> None:
    assert judge(group, kind, spec, status) == Verdict(True)


@pytest.mark.parametrize(
    ("group", "kind", "spec", "status", "reason"),
    [
        ("apps", "Deployment", {"replicas": 2}, DEPLOYED | {"observedGeneration": 1}, "has not observed this version"),
        (
            "apps",
            "Deployment",
            {"replicas": 2},
            DEPLOYED | {"updatedReplicas": 1},
            "1 of 2 pods are of the new version",
        ),
        ("apps", "Deployment", {"replicas": 2}, DEPLOYED | {"replicas": 3}, "1 old pods still exist"),
        ("apps", "Deployment", {"replicas": 2}, DEPLOYED | {"availableReplicas": 1}, "1 of 2 pods"),
        (
            "apps",
            "Deployment",
            {},
            {"conditions": [cond("ReplicaFailure", reason="FailedCreate", message="quota")]},
            "FailedCreate: quota",
        ),
        ("apps", "StatefulSet", {"replicas": 2}, {"readyReplicas": 1}, "1 of 2 pods"),
        (
            "apps",
            "StatefulSet",
            {},
            {"readyReplicas": 1, "updatedReplicas": 0, "currentRevision": "a", "updateRevision": "b"},
            "new version",
        ),
        ("apps", "DaemonSet", {}, ROLLED | {"updatedNumberScheduled": 1}, "1 of 3 pods are of the new version"),
        ("apps", "DaemonSet", {}, ROLLED | {"numberAvailable": 2}, "2 of 3 pods"),
        (
            "apps",
            "DaemonSet",
            {"updateStrategy": {"type": "OnDelete"}},
            ROLLED | {"numberAvailable": 0, "numberReady": 0},
            "0 of 3 pods",
        ),
        (
            "",
            "Pod",
            {},
            {
                "phase": "Pending",
                "conditions": [cond("PodScheduled", "False", reason="Unschedulable", message="0/3 nodes")],
            },
            "0/3 nodes",
        ),
        (
            "",
            "Pod",
            {},
            {
                "phase": "Pending",
                "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}],
            },
            "container c: ErrImagePull",
        ),
        ("batch", "Job", {"completions": 3}, {"succeeded": 1}, "1 of 3"),
        ("batch", "Job", {"suspend": True}, {}, "suspended"),
        ("", "PersistentVolumeClaim", {}, {"phase": "Pending"}, "Pending"),
        ("apiextensions.k8s.io", "CustomResourceDefinition", {}, {}, "not established"),
        (
            "apiregistration.k8s.io",
            "APIService",
            {},
            {"conditions": [cond("Available", "False", reason="MissingEndpoints")]},
            "MissingEndpoints",
        ),
        ("", "Node", {}, {"conditions": [cond("Ready", "Unknown", reason="NodeStatusUnknown")]}, "NodeStatusUnknown"),
        ("", "Namespace", {}, {"phase": "Terminating"}, "being deleted"),
        ("", "Service", {"type": "LoadBalancer"}, {}, "no address"),
    ],
)
def test_waited_for(group: str, kind: str, spec: t.Any, status: t.Any, reason: str) -> None:
    verdict = judge(group, kind, spec, status)
    assert (verdict.ready, verdict.failed) == (False, False)
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("group", "kind", "status", "reason"),
    [
        (
            "apps",
            "Deployment",
            {"conditions": [cond("Progressing", "False", reason="ProgressDeadlineExceeded")]},
            "ProgressDeadlineExceeded",
        ),
        ("", "Pod", {"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ("batch", "Job", {"conditions": [cond("Failed", reason="BackoffLimitExceeded")]}, "BackoffLimitExceeded"),
        ("", "PersistentVolumeClaim", {"phase": "Lost"}, "lost"),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            {"conditions": [cond("NamesAccepted", "False", reason="ListKindConflict")]},
            "ListKindConflict",
        ),
    ],
)
def test_broken(group: str, kind: str, status: t.Any, reason: str) -> None:
    verdict = judge(group, kind, {}, status)
    assert (verdict.ready, verdict.failed) == (False, True)
    assert reason in verdict.reason


def test_zero_of_zero_is_not_ready_where_a_node_matches() -> None:
    asked = []

    def nodes(obj: t.Any) -> tuple[int, int]:
        asked.append(obj)
        return 1, 0

    assert not judge("apps", "DaemonSet", {}, {"desiredNumberScheduled": 0}, nodes=nodes).ready
    assert judge("apps", "DaemonSet", {}, ROLLED, nodes=nodes).ready
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("strategy", "updated", "available", "away", "ready"),
    [
        ("RollingUpdate", 2, 2, 1, True),
        ("RollingUpdate", 3, 2, 1, True),
        ("RollingUpdate", 2, 3, 1, True),
        ("RollingUpdate", 2, 2, 0, False),
        ("RollingUpdate", 1, 3, 1, False),
        ("RollingUpdate", 3, 1, 1, False),
        ("OnDelete", 0, 2, 1, True),
        ("OnDelete", 0, 1, 1, False),
    ],
)
def test_pods_on_nodes_that_are_not_ready_are_not_waited_for(
    strategy: str, updated: int, available: int, away: int, ready: bool
) -> None:
    counts = {
        "desiredNumberScheduled": 3,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberReady": available,
    }
    verdict = judge("apps", "DaemonSet", {"updateStrategy": {"type": strategy}}, counts, nodes=lambda _obj: (3, away))
    assert verdict.ready is ready
    assert ("nodes that are not ready: 1" in verdict.reason) is ready


def test_custom_resources_by_expression() -> None:
    when = {"Thing": "status.state == 'ready'", "Other.example.com": "status.conditions[?type=='Ready'].status | [0]"}
    assert judge("example.com", "Thing", {}, {"state": "ready"}, ready_when=when).ready
    assert "status.state" in judge("example.com", "Thing", {}, {"state": "no"}, ready_when=when).reason
    assert judge("example.com", "Other", {}, {"conditions": [cond("Ready")]}, ready_when=when).ready
    assert not judge("example.com", "Other", {}, {"conditions": [cond("Ready", "False")]}, ready_when=when).ready
    assert not judge("example.com", "Other", {}, {}, ready_when=when).ready


def test_a_custom_resource_that_its_expression_cannot_judge_is_waited_for_with_the_reason() -> None:
    verdict = judge("example.com", "Thing", {}, {"state": 1}, ready_when={"Thing": "contains(status.state, 'x')"})
    assert (verdict.ready, verdict.failed) == (False, False)
    assert "contains" in verdict.reason


@pytest.mark.parametrize(
    ("endpoints", "ready"),
    [
        ([], False),
        ([{"conditions": {"ready": False}}], False),
        ([{"conditions": {"ready": False}}, {"conditions": {"ready": True}}], True),
        ([{}], True),
        ([{"conditions": {"serving": False}}], True),
        ([{"conditions": {"ready": None}}], True),
    ],
)
def test_a_service_is_ready_with_one_endpoint_of_which_nobody_says_that_it_is_not(
    endpoints: list[dict[str, t.Any]], ready: bool
) -> None:
    """https://kubernetes.io/docs/reference/kubernetes-api/service-resources/endpoint-slice-v1/, conditions.ready."""
    assert objects.endpoints_ready([{"endpoints": None}, {"endpoints": endpoints}]) is ready


def test_an_expression_that_can_be_used_has_no_fault() -> None:
    assert expressions.fault_of("status.state == 'ready'") == ""
    assert expressions.fault_of("status.[") and expressions.fault_of("") and expressions.fault_of(3)


def test_what_is_being_deleted_is_not_ready() -> None:
    obj = {"metadata": {"deletionTimestamp": "now"}, "status": {}}
    assert not readiness.judge(obj, "", "ConfigMap", {}).ready


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.sampled_from(["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"]),
    st.dictionaries(
        st.sampled_from(
            ["replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "observedGeneration", "numberReady"]
        ),
        junk,
    ),
)
# The time to generate examples depends on the machine.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_odd_status_never_raises(kind: str, status: t.Any) -> None:
    assert isinstance(judge("apps", kind, {}, status), Verdict)


NODE = {
    "metadata": {"name": "n1", "labels": {"gpu": "yes", "count": "8"}},
    "spec": {"taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]},
}
TOLERATES = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, False),
        (TOLERATES, True),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "gpu", "value": "y"}]}, False),
        ({"tolerations": [{"key": "gpu", "value": "x", "effect": "NoExecute"}]}, False),
        (TOLERATES | {"nodeSelector": {"gpu": "yes"}}, True),
        (TOLERATES | {"nodeSelector": {"gpu": "no"}}, False),
    ],
)
def test_taints_and_selectors(spec: t.Any, fits: bool) -> None:
    assert placement.fits(NODE, {"spec": spec}) is fits


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "gpu", "operator": "In", "values": ["yes"]}, True),
        ({"key": "gpu", "operator": "NotIn", "values": ["yes"]}, False),
        ({"key": "none", "operator": "NotIn", "values": ["yes"]}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "none", "operator": "DoesNotExist"}, True),
        ({"key": "count", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "count", "operator": "Lt", "values": ["4"]}, False),
        ({"key": "gpu", "operator": "Gt", "values": ["4"]}, False),
    ],
)
def test_node_affinity(expression: t.Any, fits: bool) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = TOLERATES | {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert placement.fits(NODE, {"spec": spec}) is fits
