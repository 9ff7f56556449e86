# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No gate passes a node from which a pod of ours is kept, whatever excludes the node, and the cause is named. What the roles declare is what counts."""

from __future__ import annotations

import copy
import functools
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import PARTS_OF_GATE
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import declared
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import (
    device_plugin,
    driver,
    feature_discovery,
    monitoring,
)
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import warning
from ansible_collections.hwaccel.gpu.tests.unit.clusters.nodes import NodeCluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.ownership import Obj
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_gate.gate_fleets import settings
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

POOL = {"name": "training", "selector": "pool=training", "gpu": {"count": 8}}
#: By gate the role that brings its DaemonSets.
ROLES: dict[str, tuple[str, t.Any]] = {
    "features": ("feature_discovery", feature_discovery),
    "driver": ("driver", driver),
    "devices": ("device_plugin", device_plugin),
    "exporters": ("monitoring", monitoring),
}
PODS = {
    parts.NFD_WORKER: s.worker,
    parts.DRIVER: s.driver,
    parts.TOOLKIT: s.toolkit,
    parts.VALIDATOR: s.validator,
    parts.PLUGIN: s.plugin,
    parts.DISCOVERY: s.discovery,
    parts.EXPORTER: s.exporter,
}
GATE_OF = {part: gate for gate, needed in PARTS_OF_GATE.items() for part in needed}
#: Nodes of the fleet, and those of them that are kept without a pod.
ALL, KEPT = [f"training-{number}" for number in range(4)], ["training-2", "training-3"]
PASSED = {"passed": 4, "waiting": 0, "failed": 0, "unknown": 0}


@functools.cache
def _planned(gate: str, pools: str) -> tuple[Obj, ...]:
    role, module = ROLES[gate]
    facts = stack.fleet(stack.node_class(kernel=s.KERNEL))
    objects = module.plan(stack.manifests(role), stack.settings(role, pools=stack.yaml.safe_load(pools)), facts)[
        "objects"
    ]
    return tuple(one for one in objects if one["kind"] == "DaemonSet")


def planned(gate: str, **pool: t.Any) -> list[Obj]:
    """DaemonSets that the role applies for this pool."""
    return copy.deepcopy(list(_planned(gate, stack.yaml.safe_dump([POOL | pool]))))


def node(name: str, **labels: str) -> Obj:
    known = {
        "pool": "training",
        "kubernetes.io/arch": "amd64",
        s.NFD + "system-os_release.VERSION_ID": "24.04",
        names.GPU_PRODUCT_LABEL: "NVIDIA-H100-80GB-HBM3",
    }
    return s.node(name, allocatable=8, labels=known | {key.replace("__", "/"): value for key, value in labels.items()})


def pods(name: str, without: str = "") -> list[Obj]:
    return [make(name) for part, make in PODS.items() if part != without]


class World:
    """A cluster in which all works, but that one part's pods are kept from KEPT."""

    def __init__(self, clock: Time, gate: str, part: str = "") -> None:
        self.sets = planned(gate)
        self.nodes = {name: node(name) for name in ALL}
        self.live = copy.deepcopy(self.sets)
        self.part = part
        self.clock = clock
        self.events: list[Obj] = []
        for item in self.live:
            ours = [_managed("hwaccel.gpu/set", "tolerations", "affinity")]
            item["metadata"] |= {"uid": f"uid-{item['metadata']['name']}", "generation": 1, "managedFields": ours}
            counts = dict.fromkeys(("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"), 4)
            item["status"] = counts | {"observedGeneration": 1}

    def of_part(self) -> list[Obj]:
        return [item for item in self.live if parts.role_of(item["spec"]["template"]) == self.part]

    def cluster(self) -> NodeCluster:
        found = [pod for name in ALL for pod in pods(name, self.part if name in KEPT else "")]
        made = NodeCluster(list(self.nodes.values()), found, on_idle=self.clock.advance)
        for item in (*self.live, *self.events):
            made.put(item)
        return made


def _managed(manager: str, *fields: str) -> Obj:
    below = {
        f"f:{field}": {"f:nodeAffinity": {"f:requiredDuringSchedulingIgnoredDuringExecution": {}}}
        if field == "affinity"
        else {}
        for field in fields
    }
    return {
        "manager": manager,
        "operation": "Update",
        "time": "2026-11-20T10:00:00Z",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": below}}},
    }


def selector(world: World) -> list[str]:
    for item in world.of_part():
        item["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/rack": "a"}
        item["metadata"]["managedFields"].append(_managed("kubectl-patch", "nodeSelector"))
    for name in set(ALL) - set(KEPT):
        world.nodes[name]["metadata"]["labels"]["example.com/rack"] = "a"
    return ["spec.template.spec.nodeSelector of DaemonSet", "written by kubectl-patch", "example.com/rack=a"]


def toleration(world: World) -> list[str]:
    for item in world.of_part():
        item["spec"]["template"]["spec"]["tolerations"] = []
        item["metadata"]["managedFields"] = [_managed("kubectl-edit", "tolerations")]
    for name in KEPT:
        world.nodes[name]["spec"]["taints"] = [{"key": "example.com/team", "value": "a", "effect": "NoSchedule"}]
    return [
        "spec.template.spec.tolerations of DaemonSet",
        "written by kubectl-edit",
        "taint example.com/team=a:NoSchedule",
    ]


def affinity(world: World) -> list[str]:
    for item in world.of_part():
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": KEPT}]}]
        item["spec"]["template"]["spec"]["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
        item["metadata"]["managedFields"] = [_managed("node-tuner", "affinity")]
    for name in ALL:
        world.nodes[name]["metadata"]["labels"]["kubernetes.io/hostname"] = name
    return [
        "spec.template.spec.affinity.nodeAffinity.",
        "written by node-tuner",
        "kubernetes.io/hostname NotIn (training-2, training-3)",
    ]


def quota(world: World) -> list[str]:
    message = 'pods "x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=20, limited: pods=20'
    for item in world.of_part():
        item["status"]["currentNumberScheduled"] = 2
        involved = {"kind": "DaemonSet", "name": item["metadata"]["name"], "uid": item["metadata"]["uid"]}
        event = f"{item['metadata']['name']}.1"
        world.events.append(warning(item["metadata"]["namespace"], event, involved, "FailedCreate", message))
    return ["FailedCreate", "exceeded quota: team"]


def deleted(world: World) -> list[str]:
    """By whoever, with a DaemonSet controller that does not run."""
    for item in world.of_part():
        item["status"]["currentNumberScheduled"] = 2
    return ["selects the node, and 2 of its 4 pods exist"]


@pytest.mark.parametrize("way", [selector, toleration, affinity, quota, deleted])
@pytest.mark.parametrize("part", PODS)
def test_no_gate_passes_nodes_from_which_a_pod_of_ours_is_kept_and_the_cause_is_named(
    clock: Time, part: str, way: t.Callable[[World], list[str]]
) -> None:
    gate = GATE_OF[part]
    world = World(clock, gate, part)
    told = way(world)
    assert world.of_part(), "the role brings it"
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), world.cluster()
    )
    assert (result.values["failed_nodes"], result.values["nodes"]["passed"], result.failure) == (KEPT, 2, None)
    for row in result.values["faults"]:
        assert all(words in row["reason"] for words in told), row["reason"]
        assert way is quota or any(item["metadata"]["name"] in row["reason"] for item in world.of_part()), row["reason"]
        assert row["next_step"]


@pytest.mark.parametrize("gate", ROLES)
def test_where_nothing_is_kept_away_all_pass(clock: Time, gate: str) -> None:
    world = World(clock, gate)
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=0), world.cluster()
    )
    assert (result.values["nodes"], result.failure, result.values["held"]) == (PASSED, None, [])


@pytest.mark.parametrize("gate", ["driver", "exporters"])
def test_a_gpu_whose_label_somebody_takes_away_is_counted_all_the_same(clock: Time, gate: str) -> None:
    """Its pool, GPU feature discovery's labels and its allocatable GPUs still tell of it."""
    world = World(clock, gate, {"driver": parts.TOOLKIT, "exporters": parts.EXPORTER}[gate])
    for name in KEPT:
        del world.nodes[name]["metadata"]["labels"][s.PCI]
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), world.cluster()
    )
    assert result.values["failed_nodes"] == KEPT
    assert f"it requires {s.PCI} In (true)" in result.values["faults"][0]["reason"]


def test_a_daemon_set_that_somebody_has_deleted_is_named(clock: Time) -> None:
    world = World(clock, "exporters", parts.EXPORTER)
    world.live.clear()
    result = run(
        settings("exporters", pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), world.cluster()
    )
    assert "DaemonSet hwaccel-gpu/nvidia-dcgm-exporter-training is missing" in result.values["faults"][0]["reason"]


@pytest.mark.parametrize("gate", ["driver", "devices", "exporters"])
def test_what_somebody_has_switched_off_is_told_and_neither_failed_nor_passed(clock: Time, gate: str) -> None:
    part, component = {
        "driver": (parts.VALIDATOR, "operator-validator"),
        "devices": (parts.PLUGIN, "device-plugin"),
        "exporters": (parts.EXPORTER, "dcgm-exporter"),
    }[gate]
    world = World(clock, gate, part)
    label = f"nvidia.com/gpu.deploy.{component}"
    for name in KEPT:
        world.nodes[name] = node(name, **{label: "false"})
        world.nodes[name]["status"]["allocatable"][s.GPU] = "0"
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=0), world.cluster()
    )
    assert (result.values["nodes"], result.failure) == (PASSED | {"passed": 2}, None)
    assert [(row["node"], f"{label}=false disables its" in row["reason"]) for row in result.values["held"]] == [
        (name, True) for name in KEPT
    ]
    assert result.progress[-1] == f"{gate}: 2 of 2 passed, 2 switched off: training-2, training-3"


def test_what_only_helps_may_be_switched_off(clock: Time) -> None:
    """A toolkit or a driver on the host, and GPU feature discovery: the gate proves the rest."""
    for gate, part, component in (
        ("driver", parts.TOOLKIT, "container-toolkit"),
        ("driver", parts.DRIVER, "driver"),
        ("devices", parts.DISCOVERY, "gpu-feature-discovery"),
    ):
        world = World(clock, gate, part)
        for name in KEPT:
            world.nodes[name] = node(name, **{f"nvidia.com/gpu.deploy.{component}": "false"})
        result = run(
            settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=0), world.cluster()
        )
        assert (result.values["nodes"], result.failure) == (PASSED, None), component


def test_what_is_paused_is_waited_for(clock: Time) -> None:
    label = {"nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-driver-upgrade"}

    def goes_on(cluster: NodeCluster) -> None:
        for name in KEPT:
            cluster.put(node(name))
            cluster.put(s.exporter(name))

    for script, passed in (([lambda cluster: None, goes_on], 4), ([], 2)):
        world = World(clock, "exporters", parts.EXPORTER)
        world.nodes |= {name: node(name, **label) for name in KEPT}
        cluster = world.cluster()
        cluster.script = list(script)
        result = run(
            settings("exporters", pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), cluster
        )
        assert result.values["nodes"]["passed"] == passed
    assert (
        "nvidia.com/gpu.deploy.dcgm-exporter=paused-for-driver-upgrade pauses its exporter"
        in result.values["faults"][0]["reason"]
    )


@pytest.mark.parametrize("given", ["declared", "alone"])
@pytest.mark.parametrize("way", ["tegra", "no driver wanted", "opted out", "excluded", "not ready"])
def test_nodes_that_are_to_have_no_exporter_are_not_judged(clock: Time, way: str, given: str) -> None:
    pool = {"driver": {"provider": "none"}} if way == "no driver wanted" else {}
    world = World(clock, "exporters", parts.EXPORTER)
    sets, exclude = planned("exporters", **pool), frozenset(KEPT if way == "excluded" else ())
    labels = {"opted out": {names.OPERANDS_LABEL: "false"}, "tegra": {names.INTEGRATED_LABEL: "true"}}.get(way, {})
    for name in KEPT:
        world.nodes[name] = node(name, **labels)
        if way == "tegra":
            del world.nodes[name]["metadata"]["labels"][s.PCI]
        if way == "not ready":
            world.nodes[name]["status"]["conditions"][1] |= {"status": "False", "reason": "KubeletNotReady"}
    asked = settings(
        "exporters",
        pools=parse_pools([POOL | pool]),
        daemon_sets=tuple(sets) if given == "declared" else None,
        exclude=exclude,
        max_failed=0,
    )
    result = run(asked, world.cluster())
    assert (result.values["nodes"]["failed"], result.failure) == (0, None)
    assert [row["node"] for row in result.values["held"]] == (KEPT if way == "not ready" else [])


def test_whoever_uses_the_gate_alone_is_told_of_gpus_without_an_exporter(clock: Time) -> None:
    """Selector patched into the DaemonSet of 16 nodes: "8 of 8 passed" was no answer."""
    world = World(clock, "exporters", parts.EXPORTER)
    told = selector(world)
    result = run(settings("exporters", pools=(), max_failed=0), world.cluster())
    assert result.values["failed_nodes"] == KEPT
    assert all(words in result.values["faults"][0]["reason"] for words in told)


def test_another_deployments_pods_are_not_expected(clock: Time) -> None:
    """Of provider `existing` the set is empty: GPUs that are offered are enough, also where no pod of this namespace offers them."""
    cluster = NodeCluster([node(name) for name in ALL], [], on_idle=clock.advance)
    result = run(settings("devices", pools=parse_pools([POOL]), daemon_sets=(), max_failed=0), cluster)
    assert (result.values["nodes"], result.failure) == (PASSED, None)


def test_patches_of_the_role_are_part_of_what_is_declared(clock: Time) -> None:
    """Whoever keeps a DaemonSet from nodes by a patch in the inventory means it. Patches of other objects, and of the set's other kinds, say nothing."""
    patches = [
        {
            "target": {"kind": "DaemonSet", "name": "nvidia-dcgm-*"},
            "patch": {"spec": {"template": {"spec": {"nodeSelector": {"example.com/rack": "a"}}}}},
        },
        {"target": {"kind": "ConfigMap"}, "patch": {"data": {"a": "b"}}},
    ]
    world = World(clock, "exporters", parts.EXPORTER)
    selector(world)
    sets = declared(world.sets, patches)
    result = run(settings("exporters", pools=parse_pools([POOL]), daemon_sets=sets, max_failed=0), world.cluster())
    assert (result.values["nodes"]["passed"], result.values["nodes"]["failed"], result.failure) == (2, 0, None)


def test_what_is_expected_lasts_over_slices(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are not kept from one slice to the next."""
    world = World(clock, "exporters", parts.EXPORTER)
    selector(world)
    asked, cluster = (
        settings("exporters", pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2),
        world.cluster(),
    )
    first = run(asked, cluster, deadline=time.monotonic())
    assert first.pending is not None
    assert run(asked, cluster, resume=first.pending).values["failed_nodes"] == KEPT


def test_a_node_that_has_a_cause_of_its_own_keeps_it(clock: Time) -> None:
    """The driver's image is missing, and so is the toolkit's pod: the first is what there is to mend."""
    world = World(clock, "driver", parts.TOOLKIT)
    cluster = world.cluster()
    denied = s.waiting("ErrImagePull", "pull access denied")
    for name in KEPT:
        for pod in [
            pod
            for pod in cluster.all_of("Pod")
            if pod["spec"]["nodeName"] == name and parts.role_of(pod) == parts.DRIVER
        ]:
            cluster.remove("Pod", pod["metadata"]["name"])
        cluster.remove(
            "Pod",
            next(
                pod["metadata"]["name"]
                for pod in cluster.all_of("Pod")
                if pod["spec"]["nodeName"] == name and parts.role_of(pod) == parts.VALIDATOR
            ),
        )
        cluster.put(s.driver(name, denied))
        cluster.put(s.validator(name, s.running(ready=False)))
    result = run(settings("driver", pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), cluster)
    assert result.values["failed_nodes"] == KEPT
    assert all("pull access denied" in row["reason"] for row in result.values["faults"])
