# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of the roles compared with data of the tests: rights, images, tolerations, placement, owner labels."""

from __future__ import annotations

import pathlib
import re
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "roles" / "sandbox" / "files"))

from fleet_agent.programs.nfd_features import rule_output

WORKLOADS = ("DaemonSet", "Deployment", "Job")
TAGGED = re.compile(r"^[a-z0-9.-]+\.[a-z]+/[a-z0-9/._-]+:[A-Za-z0-9_][A-Za-z0-9._-]*$")


def workloads(role: str) -> list[tuple[str, dict[str, t.Any]]]:
    return [
        (one["metadata"]["name"], one["spec"]["template"]["spec"])
        for one in stack.everything(role)
        if one["kind"] in WORKLOADS
    ]


def containers(role: str) -> list[tuple[str, dict[str, t.Any], dict[str, t.Any]]]:
    return [
        (name, spec, one)
        for name, spec in workloads(role)
        for kind in ("initContainers", "containers")
        for one in spec.get(kind, ())
    ]


def rights_of(name: str, spec: dict[str, t.Any], container: dict[str, t.Any]) -> dict[str, t.Any]:
    """Rights of a container in the format of the table in vars/rights.yml."""
    security = container.get("securityContext", {})
    hosts = {volume["name"]: volume["hostPath"]["path"] for volume in spec.get("volumes", ()) if "hostPath" in volume}
    mounts = [mount for mount in container.get("volumeMounts", ()) if mount["name"] in hosts]
    return {
        "workload": name,
        "container": container["name"],
        "privileged": security.get("privileged", False),
        "user": stack.user_of(spec, container),
        "capabilities_dropped": security.get("capabilities", {}).get("drop", []),
        "capabilities_added": security.get("capabilities", {}).get("add", []),
        "host_pid": spec.get("hostPID", False),
        "host_paths": {hosts[mount["name"]]: "ro" if mount.get("readOnly") else "rw" for mount in mounts},
        "selinux": security.get("seLinuxOptions", {}),
        "scc": "privileged" if hosts else "nonroot-v2",
    }


@pytest.mark.parametrize("role", stack.ROLES)
def test_rights_match_the_table(role: str) -> None:
    table = stack.load(stack.TOP / "roles" / role / "vars" / "rights.yml")[f"__{role}_rights"]
    assert all(len(row["why"]) > 20 for row in table)
    expected = [{key: value for key, value in row.items() if key != "why"} for row in table]
    assert [rights_of(*one) for one in containers(role)] == expected


def api_rights_of(role: str) -> list[dict[str, t.Any]]:
    """One row for each rule and account, in the format of the table in vars/rights.yml."""
    found = stack.everything(role)
    rules = {
        (one["kind"], one["metadata"]["name"]): one["rules"] for one in found if one["kind"] in ("Role", "ClusterRole")
    }
    return [
        {
            "account": subject["name"],
            "cluster": one["kind"] == "ClusterRoleBinding",
            "group": group,
            "resources": rule["resources"],
            "verbs": rule["verbs"],
        }
        for one in found
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in one["subjects"]
        for rule in rules[(one["roleRef"]["kind"], one["roleRef"]["name"])]
        for group in rule["apiGroups"]
    ]


@pytest.mark.parametrize("role", stack.ROLES)
def test_api_rights_match_the_table(role: str) -> None:
    table = stack.load(stack.TOP / "roles" / role / "vars" / "rights.yml")[f"__{role}_api_rights"]
    assert all(len(row["why"]) > 20 for row in table)
    expected = [{key: value for key, value in row.items() if key != "why"} for row in table]
    assert sorted(api_rights_of(role), key=str) == sorted(expected, key=str)


def calls_of(role: str) -> list[dict[str, t.Any]]:
    """API calls from the sources of the programs, one row for each program and account."""
    return stack.load(stack.TOP / "roles" / role / "vars" / "rights.yml")[f"__{role}_api_calls"]


@pytest.mark.parametrize("role", stack.ROLES)
def test_each_right_has_a_call_in_the_program_and_each_call_a_right(role: str) -> None:
    """The source of a right is the real program, not the simulated one."""
    granted = {
        (row["account"], row["cluster"], row["group"], resource, verb)
        for row in api_rights_of(role)
        for resource in row["resources"]
        for verb in row["verbs"]
        if row["group"] != "security.openshift.io"
    }
    rows = calls_of(role)
    assert {
        (row["account"], call["cluster"], call["group"], call["resource"], call["verb"])
        for row in rows
        for call in row["calls"]
    } == granted
    places = [place for row in rows for entry in (*row["calls"], *row["not_made"]) for place in entry["at"]]
    assert [place for place in places if not re.fullmatch(r"[\w./-]+\.go:\d+", place)] == []
    assert all(entry["at"] for row in rows for entry in (*row["calls"], *row["not_made"]))


@pytest.mark.parametrize("role", stack.ROLES)
def test_calls_were_read_from_the_version_of_the_role(role: str) -> None:
    """Another image can have other calls: read them again, then set its version in the table."""
    for row in calls_of(role):
        name, _colon, tag = stack.defaults(role)[row["image"]].rpartition("/")[2].partition(":")
        assert tag == row["version"], row["account"]
        assert row["program"].endswith(name), row["account"]
    accounts = {one["metadata"]["name"] for one in stack.everything(role) if one["kind"] == "ServiceAccount"}
    assert {row["account"] for row in calls_of(role)} == accounts


@pytest.mark.parametrize("role", stack.ROLES)
def test_settings_that_prevent_a_call_are_in_the_manifest(role: str) -> None:
    for row in calls_of(role):
        for entry in row["not_made"]:
            if isinstance(entry["because"], str):
                assert len(entry["because"]) > 20
                continue
            env = [
                {one["name"]: one.get("value") for one in container["env"]}
                for _name, spec, container in containers(role)
                if spec["serviceAccountName"] == row["account"]
                and container["image"] == stack.defaults(role)[row["image"]]
            ]
            assert env
            assert [one for one in env if {name: one.get(name) for name in entry["because"]} != entry["because"]] == []


@pytest.mark.parametrize("role", stack.ROLES)
def test_every_image_has_a_registry_and_a_tag(role: str) -> None:
    images = [one["image"] for _name, _spec, one in containers(role)]
    assert images
    assert [image for image in images if not TAGGED.match(image) or image.endswith(":latest")] == []


@pytest.mark.parametrize("role", stack.ROLES)
def test_node_agents_tolerate_taints_of_pools_and_our_quarantine(role: str) -> None:
    agents = [one["spec"]["template"]["spec"] for one in stack.manifests(role) if one["kind"] == "DaemonSet"]
    assert agents
    for spec in agents:
        assert {"operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]


@pytest.mark.parametrize("role", ["driver", "device_plugin"])
def test_validation_pods_tolerate_the_same_taints_as_agents(role: str) -> None:
    agents = [one["spec"]["template"]["spec"] for one in stack.manifests(role) if one["kind"] == "DaemonSet"]
    validation_tolerations = stack.defaults("gpu_validation")["gpu_validation_tolerations"]
    assert agents and all(toleration in validation_tolerations for spec in agents for toleration in spec["tolerations"])


def test_controllers_pass_the_restricted_profile() -> None:
    namespace = stack.defaults("feature_discovery")["feature_discovery_system_namespace"]
    found = [one for one in stack.manifests("feature_discovery") if one["kind"] == "Deployment"]
    assert {one["metadata"]["namespace"] for one in found} == {namespace}
    for one in found:
        spec = one["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any("hostPath" in volume for volume in spec.get("volumes", ()))
        for container in spec["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_only_the_restricted_driver_manager_writes_nodes() -> None:
    writers = {}
    for role in stack.ROLES:
        for one in stack.everything(role):
            for rule in one.get("rules", ()) if one["kind"] == "ClusterRole" else ():
                if any(resource.startswith("nodes") for resource in rule["resources"]) and set(rule["verbs"]) & {
                    "patch",
                    "update",
                    "delete",
                }:
                    writers[one["metadata"]["name"]] = sorted(rule["verbs"])
    assert writers == {
        "hwaccel-gpu-nfd-master": ["get", "list", "patch"],
        "hwaccel-gpu-driver": ["get", "patch"],
        "hwaccel-gpu-nfd-prune": ["get", "list", "patch", "update"],
    }
    guards = [one for one in stack.manifests("driver") if one["kind"] == "ValidatingAdmissionPolicy"]
    assert guards[0]["spec"]["matchConditions"][0]["expression"].endswith(
        '"system:serviceaccount:hwaccel-gpu:nvidia-driver"'
    )
    assert guards[0]["spec"]["failurePolicy"] == "Fail"


WRITES = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE", "deletecollection": "DELETE"}


def restricted_by(policy: dict[str, t.Any]) -> set[tuple[str, ...]]:
    """Account, API group, resource and operation of each write that an admission policy restricts to the node of the token."""
    assert policy["failurePolicy"] == "Fail"
    assert any('variables.node != ""' in rule["expression"] for rule in policy["validations"])
    (condition,) = policy["matchConditions"]
    account = re.fullmatch(r'request\.userInfo\.username == "system:serviceaccount:([^"]+)"', condition["expression"])
    assert account, "a policy that also applies to other accounts would deny their writes if it fails"
    return {
        (account[1], group, resource, do)
        for rule in policy["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for do in rule["operations"]
    }


def test_all_writes_of_a_node_agent_are_restricted_to_its_own_node() -> None:
    """An admission policy for its account checks the node of the token, and its binding denies."""
    found = [one for role in stack.ROLES for one in stack.everything(role)]
    agents = {
        f"{one['metadata']['namespace']}:{one['spec']['template']['spec']['serviceAccountName']}"
        for one in found
        if one["kind"] == "DaemonSet"
    }
    rules = {
        (one["kind"], one["metadata"]["name"]): one["rules"] for one in found if one["kind"] in ("Role", "ClusterRole")
    }
    allowed = {
        (f"{subject['namespace']}:{subject['name']}", group, resource, WRITES[verb])
        for one in found
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in one["subjects"]
        for rule in rules[(one["roleRef"]["kind"], one["roleRef"]["name"])]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in WRITES
    }
    denying = {
        one["spec"]["policyName"]
        for one in found
        if one["kind"].endswith("PolicyBinding") and one["spec"]["validationActions"] == ["Deny"]
    }
    restricted = {
        write
        for one in found
        if one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] in denying
        for write in restricted_by(one["spec"])
    }
    written = {one for one in allowed if one[0] in agents}
    assert {account for account, *_what in written} == {
        "hwaccel-gpu:nfd-worker",
        "hwaccel-gpu:gpu-feature-discovery",
        "hwaccel-gpu:nvidia-driver",
    }
    assert written - restricted == set()


def test_the_driver_container_has_the_settings_of_a_real_driver() -> None:
    daemon_set = next(
        one
        for one in stack.manifests("driver")
        if one["metadata"]["name"] == "nvidia-driver" and one["kind"] == "DaemonSet"
    )
    assert daemon_set["spec"]["updateStrategy"] == {"type": "OnDelete"}
    spec = daemon_set["spec"]["template"]["spec"]
    main = spec["containers"][0]
    mounts = {mount["mountPath"]: mount for mount in main["volumeMounts"]}
    assert spec["hostPID"] is True
    assert [one["name"] for one in spec["initContainers"]] == ["k8s-driver-manager"]
    assert mounts["/run/nvidia"]["mountPropagation"] == "Bidirectional"
    assert mounts["/sys/module/firmware_class/parameters/path"]
    assert mounts["/lib/firmware"]["name"] == "nv-firmware"
    assert main["startupProbe"]["initialDelaySeconds"] == 60
    assert main["startupProbe"]["failureThreshold"] * main["startupProbe"]["periodSeconds"] == 1200
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in main["env"]
    assert spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]


def test_the_validator_runs_its_steps_in_order_without_allocating_a_gpu() -> None:
    spec = next(spec for name, spec in workloads("driver") if name == "nvidia-validator")
    assert [one["name"] for one in spec["initContainers"]] == [
        "driver-validation",
        "toolkit-validation",
        "cuda-validation",
    ]
    assert spec["runtimeClassName"] == "nvidia"
    assert not any(one.get("resources") for one in [*spec["initContainers"], *spec["containers"]])
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in spec["initContainers"][2]["env"]
    assert spec["containers"][0]["readinessProbe"]["exec"]["command"] == ["sh", "/opt/hwaccel/probe.sh"]


def test_pods_that_close_a_gate_when_they_end_have_a_grace_period() -> None:
    leaving = {name: spec for name, spec in workloads("driver") if name in ("nvidia-driver", "nvidia-validator")}
    assert len(leaving) == 2
    assert all(spec.get("terminationGracePeriodSeconds", 30) >= 30 for spec in leaving.values())


def test_the_plugin_waits_for_the_validation_of_this_boot() -> None:
    for name, spec in workloads("device_plugin"):
        wait = spec["initContainers"][0]
        assert "cuda-ready" in wait["args"][0], name
        assert "boot_id" in wait["args"][0], name
        assert spec["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize("name", ["nvidia", "gpu"])
def test_the_toolkit_configures_the_handler_of_the_runtime_class(name: str) -> None:
    found = stack.manifests("driver", driver_runtime_class=name)
    runtime_class = next(one for one in found if one["kind"] == "RuntimeClass")
    toolkit = next(
        one for one in found if one["kind"] == "DaemonSet" and one["metadata"]["name"] == "nvidia-container-toolkit"
    )
    env = {one["name"]: one.get("value") for one in toolkit["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert runtime_class["metadata"]["name"] == name
    assert env["CONTAINERD_RUNTIME_CLASS"] == runtime_class["handler"]


def test_consumers_of_the_driver_see_later_mounts() -> None:
    for role in ("driver", "device_plugin"):
        for name, _spec, container in containers(role):
            for mount in container.get("volumeMounts", ()):
                if mount["name"] == "driver-install-dir":
                    assert mount["mountPropagation"] == "HostToContainer", f"{name} {container['name']}"


def test_feature_discovery_publishes_vendor_labels_with_the_node_as_owner() -> None:
    config = next(one for one in stack.manifests("feature_discovery") if one["metadata"]["name"] == "nfd-worker-conf")[
        "data"
    ]["nfd-worker.conf"]
    worker = stack.yaml.safe_load(config)
    assert worker["sources"]["pci"]["deviceLabelFields"] == ["vendor"]
    assert worker["core"]["ownerRefs"] == ["node"]
    allowed = re.compile(worker["core"]["labelWhiteList"])
    for feature in (
        "pci-10de.present",
        "kernel-version.full",
        "system-os_release.ID",
        "system-os_release.VERSION_ID",
        "cpu-model.vendor_id",
    ):
        assert allowed.search(feature), feature
    assert not allowed.search("cpu-cpuid.AVX512F")


@pytest.mark.parametrize(
    ("more", "namespaces"),
    [
        ({}, ["hwaccel-gpu"]),
        ({"device_plugin_namespace": "gpu-plugin"}, ["hwaccel-gpu", "gpu-plugin"]),
        (
            {"feature_discovery_finding_namespaces": ["network-operator", "hwaccel-gpu"]},
            ["hwaccel-gpu", "network-operator"],
        ),
    ],
)
def test_only_features_in_namespaces_of_our_agents_become_labels(more: dict[str, t.Any], namespaces: list[str]) -> None:
    found = next(
        one for one in stack.manifests("feature_discovery", **more) if one["metadata"]["name"] == "nfd-master-conf"
    )["data"]["nfd-master.conf"]
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}]}
    assert stack.yaml.safe_load(found)["restrictions"] == {
        "nodeFeatureNamespaceSelector": selector,
        "disableExtendedResources": True,
    }


@pytest.mark.parametrize(
    ("vendor", "kernel", "integrated"),
    [
        ("NVIDIA", "4.9.337-tegra", True),
        ("ARM", "5.15.148-tegra", True),
        ("ARM", "6.8.0-1013-nvidia-64k", False),
        ("Intel", "6.8.0-45-generic", False),
    ],
)
def test_boards_with_an_integrated_gpu_are_labeled(vendor: str, kernel: str, integrated: bool) -> None:
    (rule,) = next(one for one in stack.manifests("feature_discovery") if one["kind"] == "NodeFeatureRule")["spec"][
        "rules"
    ]
    features = {
        "attributes": {
            "cpu.model": {"elements": {"vendor_id": vendor}},
            "kernel.version": {"elements": {"full": kernel}},
        }
    }
    assert (rule_output(rule, features) is not None) is integrated
    assert rule["labels"] == {names.INTEGRATED_LABEL: "true"}
