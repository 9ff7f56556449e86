# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate whose nodes have all passed does not read their pods, and in any other case its verdicts are those of the pods."""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Gone
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import resting
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import begin, run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import (
    daemon_set,
    healthy,
    settings,
    training,
)

NODES = 4
Change = c.Callable[["World"], object]


class World:
    """Nodes whose pods are all ready, and the DaemonSets of these pods."""

    def __init__(self) -> None:
        self.nodes = [training(number, allocatable=8) for number in range(NODES)]
        self.pods = [pod for number in range(NODES) for pod in healthy(f"training-{number}")]
        first = {pod["metadata"]["ownerReferences"][0]["name"]: pod for pod in reversed(self.pods)}
        self.sets = {name: self._set(name, pod) for name, pod in first.items()}

    @staticmethod
    def _set(name: str, pod: Obj) -> Obj:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        made: Obj = daemon_set(name, {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": spec}, NODES)
        made["status"]["numberReady"] = NODES
        return made

    def cluster(self, clock: Time) -> NodeCluster:
        cluster = NodeCluster([*self.nodes, *self.sets.values()], self.pods, on_idle=clock.advance)
        cluster.time = clock
        return cluster

    def pod(self, role: str) -> Obj:
        return next(pod for pod in self.pods if pod["metadata"]["ownerReferences"][0]["name"] == role)


def pods_read(cluster: NodeCluster) -> list[bool]:
    """For each list of pods, whether only their lines were read."""
    return [request.printed for request in cluster.sent("list", "Pod")]


@pytest.mark.parametrize("gate", ["driver", "devices"])
def test_pods_of_a_fleet_that_has_passed_are_not_read(clock: Time, gate: str) -> None:
    cluster = World().cluster(clock)
    assert run(settings(gate), cluster).values["nodes"] == {"passed": NODES, "waiting": 0, "failed": 0, "unknown": 0}
    assert pods_read(cluster) == [True]
    assert not cluster.sent("watch")


def test_pods_at_rest_are_those_that_a_list_returns(clock: Time) -> None:
    world = World()
    groups = resting.pods(world.cluster(clock), s.NAMESPACE, lambda _template: True)
    assert groups is not None
    facts = {
        (place, reduce_pod(group.pod).role, reduce_pod(group.pod).ready, reduce_pod(group.pod).image)
        for group in groups
        for place in group.places
    }
    listed = map(reduce_pod, world.pods)
    assert facts == {((pod.name, pod.node), pod.role, pod.ready, pod.image) for pod in listed}
    for pod in (reduce_pod(group.pod) for group in groups):
        assert all(one.succeeded for one in pod.inits) and all(one.ready and one.started for one in pod.containers)


def crashing(world: World) -> None:
    pod = world.pod("device-plugin")
    pod["status"]["containerStatuses"][0] |= s.crash_loop("device-plugin", 3)
    pod["status"]["conditions"][2]["status"] = "False"


def not_ready(world: World) -> None:
    pod = world.pod("validator")
    pod["status"]["containerStatuses"][0] |= s.running(ready=False)


def terminating(world: World) -> None:
    world.pod("driver")["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"


def unscheduled(world: World) -> None:
    del world.pod("driver")["spec"]["nodeName"]


def one_less(world: World) -> None:
    world.pods.remove(world.pod("toolkit"))


def a_namesake(world: World) -> None:
    """A pod of somebody else, with a name as if the DaemonSet had created it."""
    other = s.plugin("training-0")
    other["metadata"] |= {"name": "driver-other", "ownerReferences": []}
    world.pods.append(other)


def status(**changes: int) -> Change:
    return lambda world: world.sets["driver"]["status"].update(changes)


def metadata(**changes: t.Any) -> Change:
    return lambda world: world.sets["driver"]["metadata"].update(changes)


def no_sets(world: World) -> None:
    world.sets.clear()


def names_that_are_cut(world: World) -> None:
    """Generated names keep 58 characters of the DaemonSet's name."""
    for end in ("a", "b"):
        name = "n" * 58 + end
        world.sets[name] = world.sets["driver"] | {"metadata": world.sets["driver"]["metadata"] | {"name": name}}


def fewer_gpus(world: World) -> None:
    world.nodes[0] = training(0, allocatable=7)


UNREST: dict[str, Change] = {
    "a container crashes": crashing,
    "a pod is not ready": not_ready,
    "a pod is being deleted": terminating,
    "a pod has no node": unscheduled,
    "a pod is missing": one_less,
    "a pod of somebody else": a_namesake,
    "a version that is not observed": metadata(generation=2),
    "a DaemonSet that is being deleted": metadata(deletionTimestamp="2026-11-20T10:00:00Z"),
    "a pod of an earlier template": status(updatedNumberScheduled=NODES - 1),
    "a pod that the controller does not count as ready": status(numberReady=NODES - 1),
    "a pod on a node that is not selected": status(numberMisscheduled=1),
    "a pod to come": status(desiredNumberScheduled=NODES + 1),
    "no DaemonSet": no_sets,
    "names that cannot be told apart": names_that_are_cut,
    "a node that does not pass": fewer_gpus,
}


@pytest.mark.parametrize("gate", ["driver", "devices"])
@pytest.mark.parametrize("name", UNREST)
def test_a_fleet_that_is_not_at_rest_is_judged_by_its_pods(
    name: str, gate: str, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    UNREST[name](world)
    cluster, begun = world.cluster(clock), clock.now
    found = run(settings(gate), cluster)
    if name != "a node that does not pass" or gate == "devices":
        assert False in pods_read(cluster), "the pods are not read"
    monkeypatch.setattr(resting, "pods_of_all", lambda *_given: None)
    clock.now = begun
    by_pods = run(settings(gate), world.cluster(clock))
    assert found.values == by_pods.values
    assert found.warnings == by_pods.warnings
    assert str(found.failure) == str(by_pods.failure)


def test_pods_of_a_fleet_at_rest_are_read_before_they_are_watched(clock: Time) -> None:
    cluster = World().cluster(clock)
    fleet = begin(settings(), cluster, {}).fleet
    known = {(pod.name, pod.role, pod.ready) for node in fleet.nodes for pod in fleet.pods_of(node).values()}
    assert fleet.resting and len(known) == 4 * NODES
    fleet.watch(cluster, 1.0, lambda: False)
    assert pods_read(cluster) == [True, False] and cluster.sent("watch") and not fleet.resting
    read = {(pod.name, pod.role, pod.ready) for node in fleet.nodes for pod in fleet.pods_of(node).values()}
    assert read == known


def test_pods_are_read_where_lines_are_not_to_be_had(clock: Time) -> None:
    reader, late = World().cluster(clock), World().cluster(clock)
    reader.forbidden.add(("list", "daemonsets"))
    late.fail(Gone("listing pods"), "list", kind="Pod")
    for cluster in (reader, late):
        assert resting.pods_of_all(cluster, [s.NAMESPACE], lambda _template: True) is None
    assert resting.pods_of_all(World().cluster(clock), [""], lambda _template: True) is None
