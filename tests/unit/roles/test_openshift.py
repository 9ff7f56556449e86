# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every pod of every role on OpenShift is admitted by the SecurityContextConstraints that its ServiceAccount is bound to."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.tests.unit.plugin_utils.objects.scheduling import TRAINING, run
from ansible_collections.hwaccel.gpu.tests.unit.roles import scc, stack

Manifest = dict[str, t.Any]
OPENSHIFT = {"distribution": "openshift", "version": "v1.35.0"}
RHCOS = stack.node_class(kernel="5.14.0-570.el9.x86_64", os_id="rhcos", os_version="4.20", runtime="cri-o")
#: Settings with other pods than the defaults of a role, by a description.
VARIANTS: dict[str, tuple[str, dict[str, t.Any]]] = {
    **{role: (role, {}) for role in stack.ROLES},
    "monitoring, profiling": ("monitoring", {"profiling": True}),
    "driver, precompiled": (
        "driver",
        {"source": "precompiled", "precompiled_images": ["595-5.14.0-570.el9.x86_64-rhcos4.20"]},
    ),
    "driver, of the host": ("driver", {"provider": "host"}),
}


def objects_on_openshift() -> dict[str, list[Manifest]]:
    """Objects of each variant on OpenShift, including a workload for each pod of the validation."""
    fleet = stack.fleet(RHCOS, platform=OPENSHIFT)
    found = {name: run(role, fleet, pools=[TRAINING], **more)["objects"] for name, (role, more) in VARIANTS.items()}
    apart = stack.texts("feature_discovery", apart=True)
    found["feature_discovery, at teardown"] = stage_objects(
        apart, "feature_discovery", stack.settings("feature_discovery"), fleet
    )["objects"]
    return found | {"gpu_validation": validation(OPENSHIFT)}


def validation(platform: dict[str, str]) -> list[Manifest]:
    texts = stack.texts("gpu_validation")
    bandwidth = {"image": stack.defaults("gpu_validation")["gpu_validation_bandwidth_image"]}
    pods = {"gpu-validation": {}, "gpu-validation-bandwidth": bandwidth}
    plan = stage_objects(texts, "gpu_validation", stack.settings("gpu_validation", pods=pods), {"platform": platform})
    namespace = stack.defaults("gpu_validation")["gpu_validation_namespace"]
    return plan["objects"] + [
        {"kind": "Job", "metadata": one["metadata"] | {"namespace": namespace}, "spec": {"template": one}}
        for one in plan["pods"].values()
    ]


OBJECTS = objects_on_openshift()
PODS = {
    (name, one["metadata"]["name"]): one
    for name, objects in OBJECTS.items()
    for one in objects
    if one["kind"] in ("DaemonSet", "Deployment", "Job")
}


#: Pods that only report why a node has no driver. They need no permissions, and any user is sufficient.
REPORTING = {one["metadata"]["name"] for one in PODS.values() if "-other-kernels-" in one["metadata"]["name"]}
#: Constraints that not every supported OpenShift has: they were added in 2025.
RECENT = {"hostmount-anyuid-v2"}


def bound_to(workload: Manifest, objects: list[Manifest]) -> set[str]:
    """SecurityContextConstraints that its ServiceAccount may use in its namespace."""
    namespace = workload["metadata"]["namespace"]
    account = workload["spec"]["template"]["spec"].get("serviceAccountName", "default")
    roles = {
        one["roleRef"]["name"]
        for one in objects
        if one["kind"] == "RoleBinding" and one["metadata"]["namespace"] == namespace
        for subject in one["subjects"]
        if (subject["kind"], subject["name"], subject["namespace"]) == ("ServiceAccount", account, namespace)
    }
    return {
        name
        for one in objects
        if one["kind"] == "Role" and one["metadata"]["namespace"] == namespace and one["metadata"]["name"] in roles
        for rule in one["rules"]
        if rule["resources"] == ["securitycontextconstraints"] and "use" in rule["verbs"]
        for name in rule["resourceNames"]
    }


def test_there_is_a_pod_of_every_role() -> None:
    assert {name.partition(",")[0] for name, _workload in PODS} == {*stack.ROLES, "gpu_validation"} and len(PODS) >= 15
    assert {"nfd-prune", "nvidia-validator", "gpu-validation-bandwidth"} <= {workload for _name, workload in PODS}


@pytest.mark.parametrize("key", sorted(PODS), ids="/".join)
def test_a_pod_is_admitted_by_the_constraints_of_its_account(key: tuple[str, str]) -> None:
    workload, objects = PODS[key], OBJECTS[key[0]]
    spec, bound = workload["spec"]["template"]["spec"], bound_to(workload, objects)
    assert len(bound) == 1, "it has no SecurityContextConstraints"
    if key[1] in REPORTING:
        assert scc.admitted_by(spec, bound) in scc.FOR_ALL_USERS
        return
    # Admission prefers more restrictive constraints, which would replace users and SELinux types of the manifest.
    assert {scc.admitted_by(spec, bound)} == bound, {
        name: scc.refusals(spec, scc.ALL[name]) for name in (*scc.FOR_ALL_USERS, *bound)
    }
    assert {"kind": "ServiceAccount", "name": spec["serviceAccountName"]} in [
        {"kind": one["kind"], "name": one["metadata"]["name"]} for one in objects
    ]


@pytest.mark.parametrize("key", sorted(key for key in PODS if key[1] not in REPORTING), ids="/".join)
def test_no_more_restrictive_constraints_of_openshift_admit_it(key: tuple[str, str]) -> None:
    workload = PODS[key]
    (bound,) = bound_to(workload, OBJECTS[key[0]])
    narrower = list(scc.ALL)[: list(scc.ALL).index(bound)]
    assert [
        name
        for name in narrower
        if name not in RECENT and not scc.refusals(workload["spec"]["template"]["spec"], scc.ALL[name])
    ] == []


@pytest.mark.parametrize("key", sorted(PODS), ids="/".join)
def test_images_of_pods_without_root_have_another_user(key: tuple[str, str]) -> None:
    spec = PODS[key]["spec"]["template"]["spec"]
    (bound,) = bound_to(PODS[key], OBJECTS[key[0]])
    if scc.ALL[bound]["runAsUser"]["type"] == "MustRunAsNonRoot":
        assert all(stack.user_of(spec, one) for one in [*spec.get("initContainers", ()), *spec["containers"]])


def test_constraints_in_the_table_of_rights_match_the_bindings() -> None:
    for (name, workload), manifest in PODS.items():
        if workload in REPORTING:
            continue
        role = name.partition(",")[0]
        rows = stack.load(stack.TOP / "roles" / role / "vars" / "rights.yml")[f"__{role}_rights"]
        expected = {row["scc"] for row in rows if workload.startswith(row["workload"])}
        assert bound_to(manifest, OBJECTS[name]) == expected, (name, workload)


@pytest.mark.parametrize("platform", ["kubernetes", "k3s", "rke2"])
def test_on_other_platforms_validation_has_no_objects_and_no_account(platform: str) -> None:
    found = validation({"distribution": platform, "version": "v1.36.0"})
    assert {one["kind"] for one in found} == {"Job"}
    assert all("serviceAccountName" not in one["spec"]["template"]["spec"] for one in found)


def test_an_existing_account_is_used() -> None:
    plan = stage_objects(
        stack.texts("gpu_validation"),
        "gpu_validation",
        stack.settings("gpu_validation", provider="existing", pods={"a": {}}),
        {"platform": OPENSHIFT},
    )
    assert (plan["objects"], plan["pods"]["a"]["spec"]["serviceAccountName"]) == ([], "gpu-validation")


@pytest.mark.parametrize(
    ("declared", "observed", "objects", "faults"),
    [
        ("openshift", None, 3, []),
        ("", None, 0, []),
        ("k3s", OPENSHIFT, 3, ["the cluster is openshift, not k3s"]),
        ("openshift", OPENSHIFT, 3, []),
    ],
)
def test_the_platform_is_observed_or_else_declared(
    declared: str,
    observed: dict[str, str] | None,
    objects: int,
    faults: list[str],
) -> None:
    facts = {"platform": observed} if observed else None
    plan = stage_objects(
        stack.texts("gpu_validation"), "gpu_validation", stack.settings("gpu_validation", distribution=declared), facts
    )
    assert (len(plan["objects"]), [fault["what"] for fault in plan["faults"]]) == (objects, faults)


# -- the simulated admission itself


def test_the_validation_pod_without_an_account_is_denied_like_on_openshift() -> None:
    spec = stack.validation_pod()["spec"]
    assert "serviceAccountName" not in spec and scc.admitted_by(spec, ()) == ""
    assert scc.refusals(spec, scc.ALL["restricted-v2"]) == [
        "cuda: runAsUser 65534 is not in the range 1000000000 to 1000009999"
    ]


#: Field of pod or container, its value, and the expected message of nonroot-v2.
WRONG: tuple[tuple[str, str, t.Any, str], ...] = (
    ("pod", "hostNetwork", True, "hostNetwork is not allowed"),
    ("pod", "hostPID", True, "hostPID is not allowed"),
    ("pod", "hostIPC", True, "hostIPC is not allowed"),
    ("pod", "volumes", [{"name": "x", "hostPath": {"path": "/"}}], "hostPath volumes are not allowed"),
    ("pod", "volumes", [{"name": "x", "nfs": {"server": "s", "path": "/"}}], "nfs volumes are not allowed"),
    (
        "pod",
        "securityContext",
        {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
        "sysctl kernel.msgmax is not allowed",
    ),
    ("container", "runAsUser", 0, "must not run as root"),
    ("container", "runAsNonRoot", False, "must not run as root"),
    ("container", "privileged", True, "privileged is not allowed"),
    ("container", "allowPrivilegeEscalation", True, "allowPrivilegeEscalation is not allowed"),
    ("container", "capabilities", {"add": ["SYS_ADMIN"]}, "capability SYS_ADMIN may not be added"),
    ("container", "seLinuxOptions", {"type": "spc_t"}, "seLinuxOptions {'type': 'spc_t'} are not the namespace's"),
    ("container", "seccompProfile", {"type": "Unconfined"}, "seccomp profile unconfined is not allowed"),
    (
        "container",
        "seccompProfile",
        {"type": "Localhost", "localhostProfile": "x"},
        "seccomp profile localhost/x is not allowed",
    ),
)


@pytest.mark.parametrize(("where", "field", "value", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_each_additional_right_is_denied(where: str, field: str, value: t.Any, message: str) -> None:
    spec = copy.deepcopy(
        next(one for key, one in PODS.items() if key == ("feature_discovery", "nfd-master"))["spec"]["template"]["spec"]
    )
    assert scc.refusals(spec, scc.ALL["nonroot-v2"]) == []
    (spec if where == "pod" else spec["containers"][0].setdefault("securityContext", {}))[field] = value
    assert [text for text in scc.refusals(spec, scc.ALL["nonroot-v2"]) if text.endswith(message)]
    assert scc.refusals(spec, scc.ALL["privileged"]) == []


def test_groups_and_host_ports_are_checked_too() -> None:
    spec: Manifest = {
        "securityContext": {"fsGroup": 0, "supplementalGroups": [0]},
        "containers": [{"name": "a", "ports": [{"hostPort": 80}]}],
    }
    assert scc.refusals(spec, scc.ALL["restricted-v2"]) == ["fsGroup 0 is not allowed", "a: host ports are not allowed"]
    assert scc.refusals(spec | {"hostUsers": False}, scc.ALL["restricted-v3"])[:2] == [
        "fsGroup 0 is not allowed",
        "supplementalGroups 0 is not allowed",
    ]
    assert scc.refusals({"containers": [{"name": "a"}]}, scc.ALL["restricted-v3"]) == ["hostUsers must be false"]
    assert scc.refusals(spec, scc.ALL["privileged"]) == []
