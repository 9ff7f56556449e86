# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects from a fleet and settings: rules for every role."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import (
    INFERENCE,
    TEXTS,
    TRAINING,
    daemon_sets,
    node,
    run,
    takes,
)
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

#: Without monitoring, which has its configuration from data, and rules beside an existing exporter as well (tests/unit/plugin_utils/monitoring).
INSTALLERS = [role for role in stack.ROLES if role != "monitoring"]


# -- all roles


@pytest.mark.parametrize("role", stack.ROLES)
def test_every_object_and_pod_has_the_labels_of_the_collection(role: str) -> None:
    plan = run(role, stack.fleet(stack.node_class()), pools=[TRAINING])
    assert plan["objects"]
    for one in plan["objects"]:
        holders = [
            one["metadata"],
            *([one["spec"]["template"]["metadata"]] if one["kind"] in ("DaemonSet", "Deployment") else []),
        ]
        for holder in holders:
            assert holder["labels"]["app.kubernetes.io/managed-by"] == "hwaccel.gpu"
            assert holder["labels"]["app.kubernetes.io/part-of"] == "hwaccel-gpu"


@pytest.mark.parametrize("role", stack.ROLES)
def test_names_are_unique_and_objects_are_in_the_order_of_application(role: str) -> None:
    plan = run(
        role,
        stack.fleet(stack.node_class(), stack.node_class("inference", "5.15.0-185-generic", os_version="22.04")),
        pools=[TRAINING, INFERENCE],
    )
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in plan["objects"]]
    assert len(keys) == len(set(keys))
    kinds = [kind for kind, _namespace, _name in keys]
    order = [
        kinds.index(kind)
        for kind in ("CustomResourceDefinition", "Namespace", "ServiceAccount", "DaemonSet")
        if kind in kinds
    ]
    assert order == sorted(order)
    assert len(order) >= 3


@pytest.mark.parametrize(
    ("role", "agent"), [("feature_discovery", "NFD's worker"), ("device_plugin", "GPU feature discovery")]
)
@pytest.mark.parametrize(
    ("version", "strict", "lenient"),
    [("v1.29.4", 0, 0), ("v1.30.1", 0, 2), ("v1.31.9", 0, 2), ("v1.32.0", 2, 0), ("v1.36.4", 2, 0)],
)
def test_agents_are_restricted_to_their_own_node_as_far_as_the_version_allows(
    role: str, agent: str, version: str, strict: int, lenient: int
) -> None:
    plan = run(
        role,
        stack.fleet(stack.node_class(), platform={"distribution": "kubernetes", "version": version}),
        pools=[TRAINING],
    )
    rules = [
        rule["expression"]
        for one in plan["objects"]
        if one["kind"] == "ValidatingAdmissionPolicy"
        for rule in one["spec"]["validations"]
    ]
    open_to_all = [rule for rule in rules if rule.startswith('variables.node == ""')]
    assert (len(rules) - len(open_to_all), len(open_to_all)) == (strict, lenient)
    assert len([note for note in plan["notes"] if agent in note]) == (0 if strict else 1)
    kinds = [one["kind"] for one in plan["objects"]]
    if rules:
        assert kinds.index("ValidatingAdmissionPolicyBinding") < kinds.index("DaemonSet")


@pytest.mark.parametrize("role", stack.ROLES)
def test_registry_and_pull_secrets_reach_every_pod(role: str) -> None:
    plan = run(
        role,
        stack.fleet(stack.node_class()),
        image_registry="mirror.example.com:5000/gpu/",
        image_pull_secrets=["pull"],
    )
    specs = [one["spec"]["template"]["spec"] for one in plan["objects"] if one["kind"] in ("DaemonSet", "Deployment")]
    assert specs
    for spec in specs:
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            assert container["image"].startswith("mirror.example.com:5000/gpu/n"), container["image"]


@pytest.mark.parametrize("role", stack.ROLES)
def test_another_cluster_than_in_the_inventory_is_a_fault(role: str) -> None:
    plan = run(role, stack.fleet(), cluster_uid="u-2")
    assert [fault["what"] for fault in plan["faults"]] == ["this is not the cluster in the inventory"]
    assert not run(role, stack.fleet(), cluster_uid="u-1")["faults"]


@pytest.mark.parametrize("role", stack.ROLES)
@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"distribution": "k3s"}, "the cluster is kubernetes, not k3s"),
        ({"distribution": "nomad"}, "distribution 'nomad' is unknown"),
        ({"kubernetes_version": "1.35"}, "the cluster runs Kubernetes 1.36, not 1.35"),
        ({"kubernetes_version": 1.3}, "Kubernetes version '1.3' cannot be read"),
        ({"distribution": "kubernetes", "kubernetes_version": "v1.36.1"}, ""),
        ({"distribution": "", "kubernetes_version": None}, ""),
    ],
)
def test_another_platform_than_declared_is_a_fault(role: str, declared: dict[str, t.Any], message: str) -> None:
    assert [fault["what"] for fault in run(role, stack.fleet(), **declared)["faults"]] == ([message] if message else [])


@pytest.mark.parametrize("role", stack.ROLES)
@pytest.mark.parametrize(
    ("version", "message"),
    [("v1.28.9", ["Kubernetes 1.28 is too old"]), ("v1.29.0+k3s1", []), ("v1.36.4", []), ("", [])],
)
def test_a_cluster_that_is_too_old_is_a_fault(role: str, version: str, message: list[str]) -> None:
    faults = run(role, stack.fleet(platform={"distribution": "kubernetes", "version": version}))["faults"]
    assert [fault["what"] for fault in faults] == message


def test_without_a_cluster_the_declared_platform_is_planned_for() -> None:
    machines = [{"kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS"}]

    def planned(**declared: t.Any) -> tuple[set[str], str]:
        plan = run("driver", None, pools=[TRAINING | {"machines": machines}], **declared)
        assert plan["faults"] == []
        volumes = {
            one["name"]: one
            for one in daemon_sets(plan, "nvidia-container-toolkit")[0]["spec"]["template"]["spec"]["volumes"]
        }
        return {one["kind"] for one in plan["objects"]}, volumes["runtime-socket"]["hostPath"]["path"]

    kinds, socket = planned()
    assert {"RuntimeClass", "ValidatingAdmissionPolicy"} <= kinds
    assert socket == "/run/containerd"
    kinds, socket = planned(distribution="k3s", kubernetes_version="1.29")
    assert not {"RuntimeClass", "ValidatingAdmissionPolicy"} & kinds
    assert socket == "/run/k3s/containerd"


@pytest.mark.parametrize("role", stack.ROLES)
def test_the_input_is_not_modified(role: str) -> None:
    fleet, settings = stack.fleet(stack.node_class()), stack.settings(role, pools=[TRAINING])
    before = repr((fleet, settings))
    stage_objects(TEXTS[role], role, settings, fleet)
    assert repr((fleet, settings)) == before


@pytest.mark.parametrize("role", INSTALLERS)
def test_a_changed_configuration_changes_the_pod_template(role: str) -> None:
    def hashes(plan: dict[str, t.Any]) -> dict[str, str]:
        found = [
            (one["metadata"]["name"], one["spec"]["template"]["metadata"].get("annotations", {}))
            for one in daemon_sets(plan)
        ]
        return {
            name: annotations["hwaccel.gpu/config-hash"]
            for name, annotations in found
            if "hwaccel.gpu/config-hash" in annotations
        }

    before = hashes(run(role, stack.fleet(stack.node_class())))
    changed = [
        text.replace("[pci,", "[ pci,").replace("echo ", "echo  ").replace("sleepInterval: ", "sleepInterval:  ") + ""
        for text in TEXTS[role]
    ]
    changed = [
        text.replace("exec nvidia-device-plugin", "exec  nvidia-device-plugin").replace(
            "ownerRefs: [node]", "ownerRefs: [ node ]"
        )
        for text in changed
    ]
    after = hashes(stage_objects(changed, role, stack.settings(role), stack.fleet(stack.node_class())))
    assert before.keys() == after.keys() != set()
    assert any(before[name] != after[name] for name in before)


@pytest.mark.parametrize("role", stack.ROLES)
def test_an_invalid_manifest_is_reported(role: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"hwaccel\.gpu\.stage_objects cannot read .* not valid YAML"):
        stage_objects(["a: [1"], role, stack.settings(role), None)


# -- providers of components that a cluster has once


@pytest.mark.parametrize(
    ("role", "found_as", "clash"),
    [
        (
            "feature_discovery",
            "nfd",
            "another Node Feature Discovery is in the cluster (DaemonSet theirs/its): two would overwrite each other's labels",
        ),
        (
            "device_plugin",
            "device_plugin",
            "another device plugin is in the cluster (DaemonSet theirs/its): the kubelet accepts only one for a resource",
        ),
        (
            "device_plugin",
            "cluster_policy",
            "another device plugin is in the cluster (DaemonSet theirs/its): the kubelet accepts only one for a resource",
        ),
    ],
)
def test_the_provider_is_declared_or_detected(role: str, found_as: str, clash: str) -> None:
    name, free, taken = (
        role.replace("_", " "),
        stack.fleet(),
        stack.fleet(existing={found_as: [{"kind": "DaemonSet", "namespace": "theirs", "name": "its"}]}),
    )
    assert run(role, free)["notes"][0] == f"{name} by hwaccel (no other was detected)"
    assert run(role, taken)["notes"][0] == f"{name} by existing (detected DaemonSet theirs/its)"
    assert run(role, free, provider="existing")["notes"][0] == f"{name} by existing (declared)"
    refused = run(role, taken, provider="hwaccel")["faults"]
    assert [fault["text"] for fault in refused] == [
        f"{clash}. Next: set {role}_provider: existing, or remove the other one first"
    ]
    unknown = run(role, free, provider="nobody")
    assert [fault["text"] for fault in unknown["faults"]] == [
        f"{role}_provider 'nobody' is unknown. Next: choose one of hwaccel, existing"
    ]
    assert unknown["provider"] == "existing"


# -- feature discovery


NFD_FOUND = {"nfd": [{"kind": "DaemonSet", "namespace": "nfd", "name": "nfd-worker", "image": "x"}]}


@pytest.mark.parametrize("role", INSTALLERS)
def test_an_existing_deployment_needs_no_objects(role: str) -> None:
    plan = run(role, stack.fleet(stack.node_class()), provider="existing")
    assert (plan["provider"], plan["objects"], plan["namespaces"]) == ("existing", [], [])


def test_beside_an_existing_nfd_there_are_no_objects() -> None:
    plan = run("feature_discovery", stack.fleet(existing=NFD_FOUND))
    assert (plan["provider"], plan["objects"]) == ("existing", [])


@pytest.mark.parametrize("existing", [(), ("feature_discovery",), ("driver",), ("feature_discovery", "driver")])
def test_the_first_stage_that_needs_a_namespace_creates_it(existing: tuple[str, ...]) -> None:
    before: list[str] = []
    created: dict[str, list[tuple[str, str]]] = {}
    for role in stack.ROLES:
        more = {"provider": "existing"} if role in existing else {}
        plan = run(role, stack.fleet(stack.node_class()), namespaces_before=before, **more)
        found = [one["metadata"] for one in plan["objects"] if one["kind"] == "Namespace"]
        created[role] = [(one["name"], one["labels"]["pod-security.kubernetes.io/enforce"]) for one in found]
        assert plan["namespaces"] == [one["name"] for one in found]
        before += plan["namespaces"]
    agents, first = ("hwaccel-gpu", "privileged"), next(role for role in stack.ROLES if role not in existing)
    own = [("hwaccel-gpu-system", "restricted")] if first == "feature_discovery" else []
    assert created == {role: [] for role in stack.ROLES} | {first: [agents, *own]}


@pytest.mark.parametrize(
    ("owner_set", "level", "created", "message"),
    [
        ("", "privileged", False, ""),
        ("", "", False, "its label pod-security.kubernetes.io/enforce is missing"),
        ("", "baseline", False, "its label pod-security.kubernetes.io/enforce is baseline"),
        ("driver", "privileged", False, ""),
        # A changed label of our own namespace is corrected.
        ("feature-discovery", "restricted", True, ""),
    ],
)
def test_an_existing_namespace_is_used_and_never_a_member_of_the_set(
    owner_set: str, level: str, created: bool, message: str
) -> None:
    there = [
        {"name": "hwaccel-gpu", "set": owner_set, "pod_security": level},
        {"name": "hwaccel-gpu-system", "set": owner_set, "pod_security": ""},
    ]
    plan = run("feature_discovery", stack.fleet(namespaces=there))
    assert plan["namespaces"] == (["hwaccel-gpu", "hwaccel-gpu-system"] if created else [])
    assert [fault["where"] for fault in plan["faults"]] == ([message] if message else [])
    for fault in plan["faults"]:
        assert (
            fault["next_step"]
            == "kubectl label --overwrite namespace hwaccel-gpu pod-security.kubernetes.io/enforce=privileged"
        )


# -- device plugin


def test_each_requested_configuration_has_a_device_plugin() -> None:
    pools = [TRAINING, INFERENCE | {"plugin_config": "shared"}]
    configs = {"shared": {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}}
    plan = run(
        "device_plugin", stack.fleet(stack.node_class(), stack.node_class("inference")), pools=pools, configs=configs
    )
    found = {one["metadata"]["name"]: one for one in daemon_sets(plan, "nvidia-device-plugin")}
    assert set(found) == {"nvidia-device-plugin", "nvidia-device-plugin-shared"}
    for labels, expected in (
        (node("inference"), "nvidia-device-plugin-shared"),
        (node("training"), "nvidia-device-plugin"),
        (node(), "nvidia-device-plugin"),
    ):
        assert [name for name, one in found.items() if takes(one, labels)] == [expected]
    unknown = run("device_plugin", stack.fleet(), pools=[TRAINING | {"plugin_config": "nowhere"}])
    assert "nowhere" in unknown["faults"][0]["text"]


@pytest.mark.parametrize("name", ["default", "shared"])
def test_mps_sharing_of_a_pool_is_a_fault(name: str) -> None:
    mps = {"sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
    pools = [TRAINING | {"plugin_config": "" if name == "default" else name}]
    plan = run("device_plugin", stack.fleet(stack.node_class()), pools=pools, configs={name: mps})
    (fault,) = plan["faults"]
    assert (fault["what"], fault["where"]) == (
        "pool training: GPUs cannot be shared by MPS yet",
        f"device_plugin_configs {name}",
    )
    assert (
        run("device_plugin", stack.fleet(stack.node_class()), pools=[TRAINING], configs={"unused": mps})["faults"] == []
    )
    assert run("device_plugin", stack.fleet(), provider="existing", pools=pools, configs={name: mps})["faults"] == []
