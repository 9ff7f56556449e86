# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every pod of every role, as it is made for OpenShift, before the SecurityContextConstraints that its ServiceAccount is bound to."""

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
#: What makes pods of a role other than by default, by what is told of it.
VARIANTS: dict[str, tuple[str, dict[str, t.Any]]] = {
    **{role: (role, {}) for role in stack.ROLES},
    "monitoring, profiling": ("monitoring", {"profiling": True}),
    "driver, precompiled": (
        "driver",
        {"source": "precompiled", "precompiled_images": ["595-5.14.0-570.el9.x86_64-rhcos4.20"]},
    ),
    "driver, of the host": ("driver", {"provider": "host"}),
}


def made() -> dict[str, list[Manifest]]:
    """What each is applied with on OpenShift, the workload of each pod that the validation runs among it."""
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


MADE = made()
PODS = {
    (name, one["metadata"]["name"]): one
    for name, objects in MADE.items()
    for one in objects
    if one["kind"] in ("DaemonSet", "Deployment", "Job")
}


#: Pods that only say why a node gets no driver; they need nothing, and no user of theirs is lost.
TELLS = {one["metadata"]["name"] for one in PODS.values() if "-other-kernels-" in one["metadata"]["name"]}
#: Not of every OpenShift that this collection may meet: it came to the operator's main branch in 2025.
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
def test_a_pod_is_admitted_as_what_its_account_is_bound_to(key: tuple[str, str]) -> None:
    workload, objects = PODS[key], MADE[key[0]]
    spec, bound = workload["spec"]["template"]["spec"], bound_to(workload, objects)
    assert len(bound) == 1, "no SecurityContextConstraints of its own"
    if key[1] in TELLS:
        assert scc.admitted_by(spec, bound) in scc.EVERYBODYS
        return
    # Under a narrower one, which the admission prefers, its users and SELinux types would become others than the manifest's.
    assert {scc.admitted_by(spec, bound)} == bound, {
        name: scc.refusals(spec, scc.ALL[name]) for name in (*scc.EVERYBODYS, *bound)
    }
    assert {"kind": "ServiceAccount", "name": spec["serviceAccountName"]} in [
        {"kind": one["kind"], "name": one["metadata"]["name"]} for one in objects
    ]


@pytest.mark.parametrize("key", sorted(key for key in PODS if key[1] not in TELLS), ids="/".join)
def test_no_narrower_constraints_that_openshift_brings_admit_it(key: tuple[str, str]) -> None:
    workload = PODS[key]
    (bound,) = bound_to(workload, MADE[key[0]])
    narrower = list(scc.ALL)[: list(scc.ALL).index(bound)]
    assert [
        name
        for name in narrower
        if name not in RECENT and not scc.refusals(workload["spec"]["template"]["spec"], scc.ALL[name])
    ] == []


@pytest.mark.parametrize("key", sorted(PODS), ids="/".join)
def test_who_may_not_be_root_is_not_root_by_its_image(key: tuple[str, str]) -> None:
    spec = PODS[key]["spec"]["template"]["spec"]
    (bound,) = bound_to(PODS[key], MADE[key[0]])
    if scc.ALL[bound]["runAsUser"]["type"] == "MustRunAsNonRoot":
        assert all(stack.user_of(spec, one) for one in [*spec.get("initContainers", ()), *spec["containers"]])


def test_constraints_of_the_table_of_rights_are_those_that_are_bound() -> None:
    for (name, workload), manifest in PODS.items():
        if workload in TELLS:
            continue
        role = name.partition(",")[0]
        rows = stack.load(stack.TOP / "roles" / role / "vars" / "rights.yml")[f"__{role}_rights"]
        told = {row["scc"] for row in rows if workload.startswith(row["workload"])}
        assert bound_to(manifest, MADE[name]) == told, (name, workload)


@pytest.mark.parametrize("platform", ["kubernetes", "k3s", "rke2"])
def test_elsewhere_validation_makes_nothing_and_its_pods_run_under_no_account_of_their_own(platform: str) -> None:
    found = validation({"distribution": platform, "version": "v1.36.0"})
    assert {one["kind"] for one in found} == {"Job"}
    assert all("serviceAccountName" not in one["spec"]["template"]["spec"] for one in found)


def test_an_account_that_somebody_else_brings_is_used_as_it_is() -> None:
    plan = stage_objects(
        stack.texts("gpu_validation"),
        "gpu_validation",
        stack.settings("gpu_validation", provider="existing", pods={"a": {}}),
        {"platform": OPENSHIFT},
    )
    assert (plan["objects"], plan["pods"]["a"]["spec"]["serviceAccountName"]) == ([], "gpu-validation")


@pytest.mark.parametrize(
    ("declared", "asked", "objects", "faults"),
    [
        ("openshift", None, 3, []),
        ("", None, 0, []),
        ("k3s", OPENSHIFT, 3, ["the cluster is openshift, not k3s"]),
        ("openshift", OPENSHIFT, 3, []),
    ],
)
def test_the_platform_is_what_the_cluster_says_and_without_one_what_is_declared(
    declared: str,
    asked: dict[str, str] | None,
    objects: int,
    faults: list[str],
) -> None:
    facts = {"platform": asked} if asked else None
    plan = stage_objects(
        stack.texts("gpu_validation"), "gpu_validation", stack.settings("gpu_validation", distribution=declared), facts
    )
    assert (len(plan["objects"]), [fault["what"] for fault in plan["faults"]]) == (objects, faults)


# -- the judge itself


def test_the_validation_pod_under_the_account_of_its_namespace_is_refused_as_openshift_refuses_it() -> None:
    spec = stack.validation_pod()["spec"]
    assert "serviceAccountName" not in spec and scc.admitted_by(spec, ()) == ""
    assert scc.refusals(spec, scc.ALL["restricted-v2"]) == [
        "cuda: runAsUser 65534 is not in the range 1000000000 to 1000009999"
    ]


#: Field of pod or container, its value, and what is then said under nonroot-v2.
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


@pytest.mark.parametrize(("where", "field", "value", "told"), WRONG, ids=lambda value: str(value)[:40])
def test_a_right_more_is_refused(where: str, field: str, value: t.Any, told: str) -> None:
    spec = copy.deepcopy(
        next(one for key, one in PODS.items() if key == ("feature_discovery", "nfd-master"))["spec"]["template"]["spec"]
    )
    assert scc.refusals(spec, scc.ALL["nonroot-v2"]) == []
    (spec if where == "pod" else spec["containers"][0].setdefault("securityContext", {}))[field] = value
    assert [text for text in scc.refusals(spec, scc.ALL["nonroot-v2"]) if text.endswith(told)]
    assert scc.refusals(spec, scc.ALL["privileged"]) == []


def test_groups_and_host_ports_are_judged_too() -> None:
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
