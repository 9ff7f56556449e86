# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No gate passes a node on which a required pod is missing, and it names the cause. Required pods are those that the roles declare."""

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
#: By gate the role that deploys its DaemonSets.
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
#: Nodes of the fleet, and those without a pod of the tested part.
ALL, MISSING = [f"training-{number}" for number in range(4)], ["training-2", "training-3"]
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
    """A cluster where everything works, except that pods of one part are missing on MISSING."""

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
        found = [pod for name in ALL for pod in pods(name, self.part if name in MISSING else "")]
        cluster = NodeCluster(list(self.nodes.values()), found, on_idle=self.clock.advance)
        for item in (*self.live, *self.events):
            cluster.put(item)
        return cluster


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
    for name in set(ALL) - set(MISSING):
        world.nodes[name]["metadata"]["labels"]["example.com/rack"] = "a"
    return ["spec.template.spec.nodeSelector of DaemonSet", "written by kubectl-patch", "example.com/rack=a"]


def toleration(world: World) -> list[str]:
    for item in world.of_part():
        item["spec"]["template"]["spec"]["tolerations"] = []
        item["metadata"]["managedFields"] = [_managed("kubectl-edit", "tolerations")]
    for name in MISSING:
        world.nodes[name]["spec"]["taints"] = [{"key": "example.com/team", "value": "a", "effect": "NoSchedule"}]
    return [
        "spec.template.spec.tolerations of DaemonSet",
        "written by kubectl-edit",
        "taint example.com/team=a:NoSchedule",
    ]


def affinity(world: World) -> list[str]:
    for item in world.of_part():
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": MISSING}]}]
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
    """Pods were deleted while the DaemonSet controller does not run."""
    for item in world.of_part():
        item["status"]["currentNumberScheduled"] = 2
    return ["selects the node, and 2 of its 4 pods exist"]


@pytest.mark.parametrize("cause", [selector, toleration, affinity, quota, deleted])
@pytest.mark.parametrize("part", PODS)
def test_no_gate_passes_nodes_without_a_required_pod_and_the_cause_is_named(
    clock: Time, part: str, cause: t.Callable[[World], list[str]]
) -> None:
    gate = GATE_OF[part]
    world = World(clock, gate, part)
    expected = cause(world)
    assert world.of_part(), "the role deploys it"
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), world.cluster()
    )
    assert (result.values["failed_nodes"], result.values["nodes"]["passed"], result.failure) == (MISSING, 2, None)
    for row in result.values["faults"]:
        assert all(words in row["reason"] for words in expected), row["reason"]
        assert cause is quota or any(item["metadata"]["name"] in row["reason"] for item in world.of_part()), row[
            "reason"
        ]
        assert row["next_step"]


@pytest.mark.parametrize("gate", ROLES)
def test_with_all_pods_all_nodes_pass(clock: Time, gate: str) -> None:
    world = World(clock, gate)
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=0), world.cluster()
    )
    assert (result.values["nodes"], result.failure, result.values["held"]) == (PASSED, None, [])


@pytest.mark.parametrize("gate", ["driver", "exporters"])
def test_a_gpu_node_whose_label_was_removed_is_counted(clock: Time, gate: str) -> None:
    """Its pool, labels of GPU feature discovery and its allocatable GPUs still identify it."""
    world = World(clock, gate, {"driver": parts.TOOLKIT, "exporters": parts.EXPORTER}[gate])
    for name in MISSING:
        del world.nodes[name]["metadata"]["labels"][s.PCI]
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), world.cluster()
    )
    assert result.values["failed_nodes"] == MISSING
    assert f"it requires {s.PCI} In (true)" in result.values["faults"][0]["reason"]


def test_a_deleted_daemon_set_is_named(clock: Time) -> None:
    world = World(clock, "exporters", parts.EXPORTER)
    world.live.clear()
    result = run(
        settings("exporters", pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2), world.cluster()
    )
    assert "DaemonSet hwaccel-gpu/nvidia-dcgm-exporter-training is missing" in result.values["faults"][0]["reason"]


@pytest.mark.parametrize("gate", ["driver", "devices", "exporters"])
def test_a_disabled_component_is_reported_and_its_node_neither_failed_nor_passed(clock: Time, gate: str) -> None:
    part, component = {
        "driver": (parts.VALIDATOR, "operator-validator"),
        "devices": (parts.PLUGIN, "device-plugin"),
        "exporters": (parts.EXPORTER, "dcgm-exporter"),
    }[gate]
    world = World(clock, gate, part)
    label = f"nvidia.com/gpu.deploy.{component}"
    for name in MISSING:
        world.nodes[name] = node(name, **{label: "false"})
        world.nodes[name]["status"]["allocatable"][s.GPU] = "0"
    result = run(
        settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=0), world.cluster()
    )
    assert (result.values["nodes"], result.failure) == (PASSED | {"passed": 2}, None)
    assert [(row["node"], f"{label}=false disables its" in row["reason"]) for row in result.values["held"]] == [
        (name, True) for name in MISSING
    ]
    assert result.progress[-1] == f"{gate}: 2 of 2 passed, 2 switched off: training-2, training-3"


def test_optional_components_can_be_disabled(clock: Time) -> None:
    """Toolkit and driver can be on the host, and GPU feature discovery is optional: the gate validates the rest."""
    for gate, part, component in (
        ("driver", parts.TOOLKIT, "container-toolkit"),
        ("driver", parts.DRIVER, "driver"),
        ("devices", parts.DISCOVERY, "gpu-feature-discovery"),
    ):
        world = World(clock, gate, part)
        for name in MISSING:
            world.nodes[name] = node(name, **{f"nvidia.com/gpu.deploy.{component}": "false"})
        result = run(
            settings(gate, pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=0), world.cluster()
        )
        assert (result.values["nodes"], result.failure) == (PASSED, None), component


def test_a_paused_component_is_waited_for(clock: Time) -> None:
    label = {"nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-driver-upgrade"}

    def resumes(cluster: NodeCluster) -> None:
        for name in MISSING:
            cluster.put(node(name))
            cluster.put(s.exporter(name))

    for script, passed in (([lambda cluster: None, resumes], 4), ([], 2)):
        world = World(clock, "exporters", parts.EXPORTER)
        world.nodes |= {name: node(name, **label) for name in MISSING}
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
@pytest.mark.parametrize("cause", ["tegra", "no driver", "opted out", "excluded", "not ready"])
def test_nodes_without_a_desired_exporter_are_not_evaluated(clock: Time, cause: str, given: str) -> None:
    pool = {"driver": {"provider": "none"}} if cause == "no driver" else {}
    world = World(clock, "exporters", parts.EXPORTER)
    sets, exclude = planned("exporters", **pool), frozenset(MISSING if cause == "excluded" else ())
    labels = {"opted out": {names.OPERANDS_LABEL: "false"}, "tegra": {names.INTEGRATED_LABEL: "true"}}.get(cause, {})
    for name in MISSING:
        world.nodes[name] = node(name, **labels)
        if cause == "tegra":
            del world.nodes[name]["metadata"]["labels"][s.PCI]
        if cause == "not ready":
            world.nodes[name]["status"]["conditions"][1] |= {"status": "False", "reason": "KubeletNotReady"}
    options = settings(
        "exporters",
        pools=parse_pools([POOL | pool]),
        daemon_sets=tuple(sets) if given == "declared" else None,
        exclude=exclude,
        max_failed=0,
    )
    result = run(options, world.cluster())
    assert (result.values["nodes"]["failed"], result.failure) == (0, None)
    assert [row["node"] for row in result.values["held"]] == (MISSING if cause == "not ready" else [])


def test_the_gate_without_declared_sets_reports_gpus_without_an_exporter(clock: Time) -> None:
    """A patched selector had removed half of the pods of a DaemonSet, and the gate had reported "8 of 8 passed"."""
    world = World(clock, "exporters", parts.EXPORTER)
    expected = selector(world)
    result = run(settings("exporters", pools=(), max_failed=0), world.cluster())
    assert result.values["failed_nodes"] == MISSING
    assert all(words in result.values["faults"][0]["reason"] for words in expected)


def test_pods_of_an_existing_deployment_are_not_required(clock: Time) -> None:
    """With provider `existing` the set is empty: allocatable GPUs are enough, also if no pod of this namespace provides them."""
    cluster = NodeCluster([node(name) for name in ALL], [], on_idle=clock.advance)
    result = run(settings("devices", pools=parse_pools([POOL]), daemon_sets=(), max_failed=0), cluster)
    assert (result.values["nodes"], result.failure) == (PASSED, None)


def test_patches_of_the_role_are_part_of_the_declared_sets(clock: Time) -> None:
    """A patch in the inventory may exclude nodes from a DaemonSet. Patches of other objects and kinds have no effect here."""
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


def test_required_pods_are_kept_over_slices(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state between slices does not include labels."""
    world = World(clock, "exporters", parts.EXPORTER)
    selector(world)
    options, cluster = (
        settings("exporters", pools=parse_pools([POOL]), daemon_sets=tuple(world.sets), max_failed=2),
        world.cluster(),
    )
    first = run(options, cluster, deadline=time.monotonic())
    assert first.pending is not None
    assert run(options, cluster, resume=first.pending).values["failed_nodes"] == MISSING


def test_another_cause_on_the_node_has_precedence(clock: Time) -> None:
    """The image of the driver is missing, and so is the pod of the toolkit: the image is the root cause."""
    world = World(clock, "driver", parts.TOOLKIT)
    cluster = world.cluster()
    denied = s.waiting("ErrImagePull", "pull access denied")
    for name in MISSING:
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
    assert result.values["failed_nodes"] == MISSING
    assert all("pull access denied" in row["reason"] for row in result.values["faults"])
