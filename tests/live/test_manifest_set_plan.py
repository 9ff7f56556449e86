# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""manifest_set on a real API server: predictions before the first write, about kinds of the same call, immutable fields, webhooks, rights."""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import copy
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import (
    Obj,
    Sets,
    actions,
    config_map,
    crd,
    custom,
    deployment,
    workload,
)

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
POD = Resource("", "v1", "Pod", "pods", True)
RBAC = "rbac.authorization.k8s.io"
SPACE = "plan"


def test_a_missing_namespace_is_noted_in_check_mode_and_fails_the_run(sets: Sets, name: str, sandbox: t.Any) -> None:
    definition = [config_map("a", f"{name}-nowhere")]
    planned = sets.apply(name, definition, check=True)
    assert "the run fails unless it is created before" in next(iter(planned.rows.values())).reason
    audit = AuditLog(sandbox.audit_log)
    report = sets(name, definition)
    assert report.failure is not None
    assert f"{name}-nowhere" in str(report.failure)
    assert audit.our_writes() == []


def test_crd_and_custom_resource_in_one_call_and_plan_equals_run(sets: Sets, name: str, sandbox: t.Any) -> None:
    group = f"{name}.example"
    definition = [
        custom("Widget", "one", f"{name}-ns", 1, group),
        config_map("a", f"{name}-ns"),
        deployment("d", f"{name}-ns", 1),
        crd("widgets", "Widget", group),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-ns"}},
    ]
    audit = AuditLog(sandbox.audit_log)
    planned = sets.apply(name, definition, check=True)
    assert audit.our_writes() == []
    marked = {str(key) for key, row in planned.rows.items() if "planned, not validated" in row.reason}
    assert marked == {f"Widget.{group} {name}-ns/one", f"ConfigMap {name}-ns/a", f"Deployment.apps {name}-ns/d"}
    report = sets.apply(name, definition)
    assert actions(planned) == actions(report)
    assert not sets.apply(name, definition).changed
    wrong = [*definition[1:], custom("Widget", "one", f"{name}-ns", "x", group)]  # type: ignore[arg-type]
    refused = sets(name, wrong)
    assert refused.failure is not None
    assert "spec.size" in str(refused.failure)


def test_custom_resources_are_awaited_by_expression_and_deleted_before_their_controllers(sets: Sets, name: str) -> None:
    group = f"{name}.example"
    body = custom("Thing", "one", SPACE, 1, group)
    body["metadata"]["finalizers"] = ["tests.hwaccel.example/wait"]
    definition = [crd("things", "Thing", group), body, config_map(f"{name}-a", SPACE)]
    client = sets.client()
    late = sets(name, definition, wait=True, wait_timeout=2, ready_when={"Thing": "status.phase == 'Done'"})
    assert late.failure is not None
    assert "status.phase" in str(late.failure)
    things = client.resource(f"{group}/v1", "Thing")
    client.patch(things, "one", SPACE, {"status": {"phase": "Done"}}, subresource="status")
    sets.apply(name, definition, wait=True, ready_when={f"Thing.{group}": "status.phase == 'Done'"})

    def remove_finalizer() -> None:
        try:
            until(
                lambda: "deletionTimestamp" in client.get(things, "one", SPACE)["metadata"],
                "the deletion of the custom resource",
            )
            # Within this time, a removal in the wrong order would delete the ConfigMap.
            time.sleep(1.5)
            assert client.get(CONFIG_MAP, f"{name}-a", SPACE)["data"]
        finally:
            client.patch(things, "one", SPACE, {"metadata": {"finalizers": None}})

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        helper = pool.submit(remove_finalizer)
        report = sets.remove(name)
        helper.result()
    assert set(actions(report).values()) == {"deleted"}


def role_binding(name: str) -> Obj:
    binding = cluster_role_binding(name) | {"kind": "RoleBinding"}
    binding["metadata"]["namespace"] = SPACE
    return binding


def cluster_role_binding(name: str) -> Obj:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": SPACE}],
    }


def job(name: str) -> Obj:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"template": {"spec": pod}},
    }


def another_role(body: Obj) -> None:
    body["roleRef"]["name"] = "edit"


def another_image(body: Obj) -> None:
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"


@pytest.mark.parametrize(
    ("create", "change", "field"),
    [
        (role_binding, another_role, "roleRef"),
        (cluster_role_binding, another_role, "roleRef"),
        (job, another_image, "spec.template"),
    ],
    ids=["RoleBinding", "ClusterRoleBinding", "Job"],
)
def test_objects_without_state_are_recreated_when_an_immutable_field_changes(
    sets: Sets, name: str, create: c.Callable[[str], Obj], change: c.Callable[[Obj], None], field: str
) -> None:
    body = create(name)
    sets.apply(name, [body])
    client = sets.client()
    resource = client.resource(body["apiVersion"], body["kind"])
    place = (resource, name, body["metadata"].get("namespace", ""))
    before = client.get(*place)
    change(body)
    planned = sets.apply(name, [body], check=True)
    assert client.get(*place)["metadata"]["uid"] == before["metadata"]["uid"]
    report = sets.apply(name, [body])
    assert list(actions(planned).values()) == list(actions(report).values()) == ["recreated"]
    assert all(f"{field} of the live object is immutable" in row.reason for row in planned.rows.values())
    after = client.get(*place)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    settled = copy.deepcopy(after)
    change(settled)
    assert settled == after, "the new object has the desired value"
    assert not sets.apply(name, [body]).changed
    sets.remove(name)


def test_an_immutable_field_of_a_workload_fails_unless_its_pods_may_be_orphaned(
    sets: Sets, name: str, sandbox: t.Any
) -> None:
    daemon_set = workload("DaemonSet", f"{name}-ds", SPACE)
    definition = [daemon_set]
    sets.apply(name, definition, wait=True)
    client = sets.client()
    pods = {pod["metadata"]["uid"] for pod in client.list(POD, SPACE, label_selector=f"app={name}-ds").items}
    assert pods
    daemon_set["spec"]["selector"]["matchLabels"]["tier"] = "x"
    daemon_set["spec"]["template"]["metadata"]["labels"]["tier"] = "x"
    audit = AuditLog(sandbox.audit_log)
    refused = sets(name, definition)
    assert refused.failure is not None
    assert "spec.selector" in str(refused.failure)
    assert audit.our_writes() == []
    report = sets.apply(name, definition, on_immutable={"DaemonSet": "orphan"})
    assert actions(report)[f"DaemonSet.apps {SPACE}/{name}-ds"] == "recreated"
    remaining = {
        pod["metadata"]["uid"]
        for pod in client.list(POD, SPACE, label_selector=f"app={name}-ds").items
        if not pod["metadata"].get("deletionTimestamp")
    }
    assert pods <= remaining
    assert not sets.apply(name, definition).changed
    for pod in client.list(POD, SPACE, label_selector=f"app={name}-ds").items:
        client.delete(POD, pod["metadata"]["name"], SPACE)


def test_with_a_webhook_without_dry_run_an_object_is_planned_but_not_validated(sets: Sets, name: str) -> None:
    hooks = Resource(
        "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
    )
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "effects.tests.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 1,
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "objectSelector": {"matchLabels": {"hooked": name}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
            }
        ],
    }
    # Only admissionregistration v1beta1 could store sideEffects "Some", so a client of the test returns the refusal of such a webhook.
    client = sets.client()
    client.create(hook, hooks)
    definition = [config_map(f"{name}-a", SPACE)]
    definition[0]["metadata"]["labels"] = {"hooked": name}
    try:
        planned = sets.apply(
            name,
            definition,
            check=True,
            client=_RefusesDryRun(connect({"kubeconfig": sets.kubeconfig}, check_mode=True)),
        )
        report = sets.apply(name, definition, client=_RefusesDryRun(sets.client()))
    finally:
        client.delete(hooks, name)
    assert all(
        "planned, not validated: a webhook does not support dry runs" in row.reason for row in planned.rows.values()
    )
    assert actions(planned) == actions(report)
    assert client.get(CONFIG_MAP, f"{name}-a", SPACE)["data"] == {"a": "1"}


class _ReadsRecords:
    """A client of a user who has no rights except to read records."""

    def __init__(self, client: t.Any, other: t.Any) -> None:
        self._client, self._other = client, other

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._client, name)

    def get(self, resource: Resource, name: str, namespace: str = "", **options: t.Any) -> t.Any:
        return (self._other if namespace == "hwaccel-gpu-records" else self._client).get(
            resource, name, namespace, **options
        )


class _RefusesDryRun:
    """A client of an API server whose webhook has side effects (k8s.io/apiserver, NewDryRunUnsupportedErr)."""

    def __init__(self, client: t.Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._client, name)

    def apply(self, obj: t.Any, resource: Resource, *, dry_run: bool = False, **options: t.Any) -> t.Any:
        from ansible_collections.hwaccel.gpu.plugins.module_utils._api.errors import from_status

        if dry_run:
            message = 'admission webhook "effects.tests.example" does not support dry run'
            raise from_status(400, {"message": message, "reason": "BadRequest", "code": 400}, "", "applying", "here")
        return self._client.apply(obj, resource, **options)


def test_missing_rights_are_reported_before_the_first_write(sets: Sets, name: str, sandbox: t.Any) -> None:
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]},
    ]
    subject = {"kind": "User", "name": f"{name}-user", "apiGroup": RBAC}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": f"{name}-role"}, "rules": rules}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{name}-role"},
        "subjects": [subject],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": f"{name}-role"},
    }
    sets.apply(f"{name}-rbac", [role, binding])
    limited = connect({"kubeconfig": sandbox.kubeconfig, "impersonate_user": f"{name}-user"})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-ns"}}
    definition = [
        namespace,
        config_map(f"{name}-a", f"{name}-ns"),
        deployment(f"{name}-d", SPACE),
        deployment(f"{name}-e", f"{name}-ns"),
    ]
    await_right(limited, "list", limited.resource("apps/v1", "Deployment"))
    audit = AuditLog(sandbox.audit_log)
    report = sets(name, definition, client=limited)
    assert report.failure is not None
    missing = {(item["verb"], item["resource"], item["namespace"]) for item in report.missing_rights}
    assert ("patch", "deployments", SPACE) in missing
    assert {("patch", "deployments", f"{name}-ns"), ("create", "deployments", f"{name}-ns")} <= missing
    assert not any(resource == "configmaps" for _verb, resource, _namespace in missing)
    reader = connect({"kubeconfig": sandbox.kubeconfig, "impersonate_user": "nobody-at-all"})
    with pytest.raises(ManyFaults) as caught:
        sets(
            name,
            [config_map(f"{name}-a", SPACE), deployment(f"{name}-d", SPACE)],
            client=_ReadsRecords(reader, sets.client()),
        )
    assert {fault.next_step.split(" get ")[1].split(",", maxsplit=1)[0] for fault in caught.value.faults} == {
        f"configmaps in namespace {SPACE}",
        f"deployments.apps in namespace {SPACE}",
    }
    assert audit.our_writes() == []
    sets.remove(f"{name}-rbac")


def test_all_errors_in_definitions_are_reported_at_once(sets: Sets, name: str) -> None:
    unknown = {"apiVersion": "nowhere.example/v1", "kind": "Nothing", "metadata": {"name": "x"}}
    no_namespace = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    clustered = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "x", "namespace": SPACE},
        "handler": "x",
    }
    report = sets(name, [unknown, no_namespace, clustered])
    assert report.failure is not None
    assert len(report.failure.faults) == 3
