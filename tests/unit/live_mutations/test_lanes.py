# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each mutant has for itself."""

from __future__ import annotations

import json
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.live.mutations import lanes, rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Mutant

OBJECTS = rendered.everything()
MUTANTS = {mutant.id: mutant for mutant in rendered.all_mutants(OBJECTS)}
PLUGIN = "device_plugin/DaemonSet/nvidia-device-plugin"


def made(name: str) -> list[dict[str, t.Any]]:
    mutant = MUTANTS[name]
    return lanes.lane_objects(mutant, OBJECTS[mutant.role], "m7")


def source(mutant: Mutant) -> dict[str, t.Any]:
    return OBJECTS[mutant.role][mutant.index]


def test_a_daemon_set_has_a_copy_on_the_node_of_its_lane() -> None:
    (copied,) = made(f"{PLUGIN}/spec/template/spec/containers/0/image changed")
    assert copied["metadata"]["name"] == "nvidia-device-plugin-m7"
    assert copied["metadata"]["namespace"] == rendered.AGENTS
    assert copied["spec"]["template"]["spec"]["nodeSelector"] == {lanes.LANE: "m7"}
    assert copied["spec"]["template"]["spec"]["containers"][0]["image"].endswith("x")


def test_what_the_mutation_has_removed_is_not_added_again() -> None:
    assert made(f"{PLUGIN}/metadata/name emptied")[0]["metadata"]["name"] == ""
    assert "name" not in made(f"{PLUGIN}/metadata/name dropped")[0]["metadata"]
    assert "template" not in made(f"{PLUGIN}/spec/template dropped")[0]["spec"]
    assert "labels" not in made(f"{PLUGIN}/spec/template/metadata/labels dropped")[0]["spec"]["template"]["metadata"]


def test_a_space_has_all_that_is_connected_and_nothing_of_other_lanes() -> None:
    found = made("driver/ClusterRole/hwaccel-gpu-driver/rules/0/verbs/0 dropped")
    kinds = {item["kind"] for item in found}
    assert kinds == {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "DaemonSet",
        "Namespace",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    assert {item["metadata"].get("namespace") for item in found} == {None, f"{rendered.AGENTS}-m7"}
    assert all(item["metadata"]["name"].endswith("-m7") for item in found if "namespace" not in item["metadata"])
    role = next(item for item in found if item["kind"] == "ClusterRole")
    binding = next(item for item in found if item["kind"] == "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"][0]["namespace"] == f"{rendered.AGENTS}-m7"
    policy = next(item for item in found if item["kind"] == "ValidatingAdmissionPolicy")
    assert f"serviceaccount:{rendered.AGENTS}-m7:nvidia-driver" in json.dumps(policy)
    assert f'"{rendered.AGENTS}"' not in json.dumps(found)


def test_a_runtime_class_of_a_lane_is_that_of_its_pods() -> None:
    found = made("driver/RuntimeClass/nvidia/handler changed")
    assert [item["metadata"]["name"] for item in found if item["kind"] == "RuntimeClass"] == ["nvidia-m7"]
    (validator,) = [
        item for item in found if item["metadata"]["name"] == "nvidia-validator" and "template" in item.get("spec", {})
    ]
    assert validator["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia-m7"


def test_a_changed_reference_stays_changed() -> None:
    found = made("driver/ClusterRoleBinding/hwaccel-gpu-driver/roleRef/name changed")
    assert (
        next(item for item in found if item["kind"] == "ClusterRoleBinding")["roleRef"]["name"]
        == "hwaccel-gpu-driverx-m7"
    )
    found = made("driver/ClusterRoleBinding/hwaccel-gpu-driver/subjects/0/namespace changed")
    binding = next(item for item in found if item["kind"] == "ClusterRoleBinding")
    assert binding["subjects"][0]["namespace"] == f"{rendered.AGENTS}x"


def test_every_mutant_has_a_way_that_keeps_it_from_the_others() -> None:
    ways = {mutant: lanes.isolation(mutant) for mutant in MUTANTS.values()}
    assert {mutant.name for mutant, way in ways.items() if way == lanes.ALONE} == {
        "hwaccel-gpu",
        "hwaccel-gpu-nfd-master",
        "nfd-master",
        "nfd-master-conf",
        "nodefeaturegroups.nfd.k8s-sigs.io",
        "nodefeaturerules.nfd.k8s-sigs.io",
        "nodefeatures.nfd.k8s-sigs.io",
    }
    for mutant, way in ways.items():
        if way in (lanes.COPY, lanes.SPACE):
            assert lanes.own_components(lanes.sources(mutant, OBJECTS[mutant.role])) or "nfd-gc" in str(
                lanes.sources(mutant, OBJECTS[mutant.role])
            ), mutant.id


def test_shared_workloads_leave_a_component_to_its_lane() -> None:
    components = ("nvidia-driver", "nvidia-device-plugin")
    labels = lanes.node_labels("m7", components, {"nvidia-driver"}, rendered.POOL)
    selectors = [
        item["spec"]["template"]["spec"]["nodeSelector"]
        for role in ("driver", "device_plugin")
        for item in lanes.shared(OBJECTS[role])
        if item["kind"] == "DaemonSet" and rendered.component(item) in components
    ]
    assert [one.items() <= labels.items() for one in selectors] == [False, False, True]


def test_the_shared_master_takes_what_lanes_find() -> None:
    (config,) = [
        item for item in lanes.shared(OBJECTS["feature_discovery"]) if item["metadata"]["name"] == "nfd-master-conf"
    ]
    read = yaml.safe_load(config["data"]["nfd-master.conf"])
    (one,) = read["restrictions"]["nodeFeatureNamespaceSelector"]["matchExpressions"]
    assert (one["operator"], one["values"]) == ("NotIn", ["kube-system"])


def test_what_only_an_integrated_gpu_shows_runs_on_a_board() -> None:
    terms = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
    assert lanes.on_board(MUTANTS[f"{PLUGIN}{terms}/1/matchExpressions/0/values/0 changed"])
    assert lanes.on_board(MUTANTS["feature_discovery/NodeFeatureRule/hwaccel-gpu/spec/rules/0 dropped"])
    assert not lanes.on_board(MUTANTS[f"{PLUGIN}{terms}/0/matchExpressions/1/values/0 changed"])


def test_beside_a_mutant_that_is_alone_nfd_master_starts_again_and_the_rule_is_written_again() -> None:
    objects = OBJECTS["feature_discovery"]
    renewed = [lanes.renewed(item, "m7") for item in objects]
    changed = [lanes.key_of(item) for item, made in zip(objects, renewed, strict=True) if made != item]
    assert changed == [("Deployment", "nfd-master"), ("NodeFeatureRule", "hwaccel-gpu")]
