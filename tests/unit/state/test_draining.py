# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that must be evicted from a node."""

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._state import draining

REPLICA_SET: t.Mapping[str, t.Any] = types.MappingProxyType({"kind": "ReplicaSet", "name": "web", "controller": True})
DAEMONS = {"kind": "DaemonSet", "name": "agents", "controller": True}
NODE: dict[str, t.Any] = {"metadata": {"name": "n1"}, "spec": {}}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-20T10:00:00Z"}


def pod(
    name: str = "p",
    owner: t.Mapping[str, t.Any] = REPLICA_SET,
    phase: str = "Running",
    *,
    volumes: t.Any = None,
    tolerations: t.Any = None,
    **metadata: t.Any,
) -> dict[str, t.Any]:
    owners = {"ownerReferences": [dict(owner)]} if owner else {}
    metadata_of_pod = {
        "name": name,
        "namespace": "team-a",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-11-20T09:00:00Z",
        **owners,
        **metadata,
    }
    return {
        "metadata": metadata_of_pod,
        "spec": {"volumes": volumes, "tolerations": tolerations},
        "status": {"phase": phase},
    }


def sort(*pods: dict[str, t.Any], node: dict[str, t.Any] | None = None, **options: bool) -> draining.Pods:
    return draining.sort(node or NODE, pods, lambda option: f"my_{option}", **options)


def leaving(found: draining.Pods) -> list[str]:
    return [one.name for one in found.leaving]


@pytest.mark.parametrize(
    ("one", "leaves", "why"),
    [
        (pod(), True, ""),
        (pod(phase="Pending"), True, ""),
        (pod(owner={**DAEMONS, "controller": False, "kind": "Job"}), True, "no controller"),
        (pod(owner=None), True, "no controller"),
        (pod(volumes=[{"name": "tmp", "emptyDir": {}}]), True, "emptyDir"),
        (pod(volumes=[{"name": "c", "configMap": {"name": "c"}}]), True, ""),
        (pod(owner=DAEMONS), False, ""),
        (pod(owner=DAEMONS, volumes=[{"name": "tmp", "emptyDir": {}}]), False, ""),
        (
            pod(
                owner={"kind": "Node", "name": "n1", "controller": True},
                annotations={"kubernetes.io/config.mirror": "x"},
            ),
            False,
            "",
        ),
        (pod(owner=None, phase="Succeeded"), False, ""),
        (pod(owner=None, phase="Failed", volumes=[{"name": "tmp", "emptyDir": {}}]), False, ""),
    ],
)
def test_pods_to_evict_and_problems_that_prevent_it(one: dict[str, t.Any], leaves: bool, why: str) -> None:
    found = sort(one)
    assert bool(found.leaving) == leaves
    messages = [str(fault) for fault in found.faults]
    assert (why in messages[0] and "team-a/p" in messages[0] and "n1" in messages[0]) if why else messages == []


def test_all_problems_are_reported_at_once_with_the_option_to_set() -> None:
    alone, both = pod("alone", None), pod("both", None, volumes=[{"name": "tmp", "emptyDir": {}}])
    found = sort(alone, both)
    assert [fault.next_step.rpartition("set ")[2].split(",")[0] for fault in found.faults] == [
        "my_force",
        "my_delete_emptydir_data",
    ]
    assert "team-a/alone, team-a/both" in found.faults[0].why
    assert sort(alone, both, force=True).faults == found.faults[1:]
    agreed = sort(alone, both, force=True, delete_emptydir_data=True)
    assert (agreed.faults, leaving(agreed)) == ((), ["alone", "both"])


def test_remaining_pods_are_reported_and_completed_ones_are_not() -> None:
    found = sort(pod("agent", DAEMONS), pod("done", phase="Succeeded"))
    assert found.staying == {"team-a/agent": "it belongs to DaemonSet agents"}


def test_a_terminating_pod_is_waited_for_without_problems() -> None:
    found = sort(pod(owner=None, volumes=[{"name": "tmp", "emptyDir": {}}], deletionTimestamp="2026-11-20T10:00:00Z"))
    assert ([one.where for one in found.ending], found.leaving, found.faults) == (["team-a/p"], (), ())


@pytest.mark.parametrize(
    ("created", "tolerations", "taints", "leaves"),
    [
        ("2026-11-20T10:00:01Z", [{"operator": "Exists"}], [CORDONED], False),
        (
            "2026-11-20T10:00:01Z",
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}],
            [CORDONED],
            False,
        ),
        # The pod existed before, or was bound before the scheduler observed the cordon.
        ("2026-11-20T10:00:00Z", [{"operator": "Exists"}], [CORDONED], True),
        ("2026-11-20T10:00:01Z", [{"key": "nvidia.com/gpu", "operator": "Exists"}], [CORDONED], True),
        ("2026-11-20T10:00:01Z", [{"operator": "Exists"}], [], True),
        ("2026-11-20T10:00:01Z", [{"operator": "Exists"}], [{**CORDONED, "timeAdded": None}], True),
    ],
)
def test_a_pod_that_tolerates_the_cordon_and_would_return_is_not_evicted(
    created: str, tolerations: t.Any, taints: t.Any, leaves: bool
) -> None:
    found = sort(
        pod(tolerations=tolerations, creationTimestamp=created),
        node={"metadata": {"name": "n1"}, "spec": {"taints": taints}},
    )
    assert bool(found.leaving) == leaves
    assert bool(found.staying) != leaves
