# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""manifest_set on a real API server: runs without changes, budgets, drift, conflicts, fields of others."""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Invalid, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.manifest_sets import (
    Sets,
    actions,
    bench_objects,
    config_map,
    deployment,
    workload,
)

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
SECRET = Resource("", "v1", "Secret", "secrets", True)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments", True)
WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
SPACE = "drift"
HPA = "kube-controller-manager"


def objects(prefix: str) -> list[dict[str, t.Any]]:
    return [
        config_map(f"{prefix}-a", SPACE, {"a": "1", "b": "2"}),
        config_map(f"{prefix}-b", SPACE),
        deployment(f"{prefix}-d", SPACE, 2),
    ]


def test_first_run_second_run_and_change_stay_within_their_budgets(sets: Sets, name: str, sandbox: t.Any) -> None:
    definition = bench_objects(SPACE)
    audit = AuditLog(sandbox.audit_log)
    first = sets.apply(name, definition)
    assert first.changed
    assert len(first.rows) == len(definition) == 40
    assert set(actions(first).values()) == {"created"}
    assert len(audit.ours()) <= 2 * 40 + 15
    assert len(audit.our_writes()) <= 40 + 2

    audit.mark()
    second = sets.apply(name, definition)
    assert not second.changed
    assert set(actions(second).values()) == {"unchanged"}
    assert audit.our_writes() == []
    assert len(audit.ours()) <= 12

    definition[-11]["data"]["a"] = "changed" if definition[-11]["kind"] == "ConfigMap" else None
    audit.mark()
    third = sets.apply(name, definition)
    assert sorted(actions(third).values()).count("configured") == 1
    assert len(audit.our_writes()) <= 1 + 2


def drift_value(client: t.Any, prefix: str) -> None:
    obj = client.get(CONFIG_MAP, f"{prefix}-a", SPACE)
    obj["data"]["a"] = "edited"
    client.replace(obj, CONFIG_MAP, field_manager="kubectl-edit")


def drift_merge(client: t.Any, prefix: str) -> None:
    client.patch(CONFIG_MAP, f"{prefix}-a", SPACE, {"data": {"b": None}}, field_manager="kubectl-patch")


def drift_scale(client: t.Any, prefix: str) -> None:
    client.patch(
        DEPLOYMENT, f"{prefix}-d", SPACE, {"spec": {"replicas": 1}}, subresource="scale", field_manager="kubectl"
    )


def drift_list_element(client: t.Any, prefix: str) -> None:
    patch = [{"op": "remove", "path": "/spec/template/spec/containers/0/env/1"}]
    client.patch(
        DEPLOYMENT, f"{prefix}-d", SPACE, patch, patch_type="application/json-patch+json", field_manager="kubectl-patch"
    )


def drift_label(client: t.Any, prefix: str) -> None:
    client.patch(
        CONFIG_MAP,
        f"{prefix}-a",
        SPACE,
        {"metadata": {"labels": {"applyset.kubernetes.io/part-of": None}}},
        field_manager="kubectl-label",
    )


def drift_delete(client: t.Any, prefix: str) -> None:
    client.delete(CONFIG_MAP, f"{prefix}-a", SPACE)


@pytest.mark.parametrize(
    ("drift", "manager", "path"),
    [
        (drift_value, "kubectl-edit", "data.a"),
        (drift_merge, "", "data.b"),
        (drift_scale, "kubectl", "spec.replicas"),
        (drift_list_element, "", 'spec.template.spec.containers[name="main"].env[name="B"]'),
        (drift_label, "", "metadata.labels.applyset.kubernetes.io/part-of"),
        (drift_delete, "", ""),
    ],
)
def test_drift_is_corrected_and_reported_once(
    sets: Sets, name: str, sandbox: t.Any, drift: c.Callable[[t.Any, str], None], manager: str, path: str
) -> None:
    sets.apply(name, objects(name))
    drift(sets.client(), name)
    planned = sets.apply(name, objects(name), check=True)
    audit = AuditLog(sandbox.audit_log)
    corrected = sets.apply(name, objects(name))
    assert actions(planned) == actions(corrected)
    assert corrected.changed
    assert [(item["path"], item["manager"]) for item in corrected.reclaimed] == [(path, manager)]
    assert sorted(actions(corrected).values()) == ["reclaimed", "unchanged", "unchanged"]
    assert len(audit.our_writes()) == 3

    audit.mark()
    assert not sets.apply(name, objects(name)).changed
    assert audit.our_writes() == []


def test_a_recurring_conflict_is_reported_the_second_time(sets: Sets, name: str) -> None:
    definition = [config_map(f"{name}-a", SPACE, {"a": "1"})]
    sets.apply(name, definition)
    for expected in (False, True):
        sets.client().patch(CONFIG_MAP, f"{name}-a", SPACE, {"data": {"a": "theirs"}}, field_manager="other-tool")
        report = sets.apply(name, definition)
        assert any("other-tool takes over fields of the set" in text for text in report.warnings) is expected


def test_a_conflict_is_reported_with_field_and_manager_and_can_be_forced(sets: Sets, name: str, sandbox: t.Any) -> None:
    definition = [config_map(f"{name}-a", SPACE, {"a": "1"})]
    sets.apply(name, definition)
    sets.client().patch(CONFIG_MAP, f"{name}-a", SPACE, {"data": {"mine": "theirs"}}, field_manager="other-tool")
    definition[0]["data"]["mine"] = "ours"
    audit = AuditLog(sandbox.audit_log)
    refused = sets(name, definition)
    assert refused.failure is not None
    assert "data.mine" in str(refused.failure)
    assert "other-tool" in str(refused.failure)
    assert [(item["path"], item["manager"]) for item in refused.conflicts] == [("data.mine", "other-tool")]
    assert audit.our_writes() == []
    forced = sets.apply(name, definition, force_conflicts=True)
    assert forced.changed
    assert sets.client().get(CONFIG_MAP, f"{name}-a", SPACE)["data"]["mine"] == "ours"
    assert not sets.apply(name, definition).changed


def test_fields_added_by_others_are_reported_also_in_check_mode_and_fail_with_strict(sets: Sets, name: str) -> None:
    definition = [workload("DaemonSet", f"{name}-ds", SPACE), config_map(f"{name}-a", SPACE)]
    sets.apply(name, definition)
    client = sets.client()
    client.patch(CONFIG_MAP, f"{name}-a", SPACE, {"data": {"extra": "1"}}, field_manager="other-tool")
    daemon_sets = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
    sidecar = [
        {
            "op": "add",
            "path": "/spec/template/spec/containers/-",
            "value": {"name": "sidecar", "image": "registry.k8s.io/pause:3.9"},
        }
    ]
    client.patch(
        daemon_sets, f"{name}-ds", SPACE, sidecar, patch_type="application/json-patch+json", field_manager="injector"
    )
    for check in (True, False):
        report = sets.apply(name, definition, check=check)
        assert not report.changed
        fields = {(item["kind"], item["path"], item["manager"]) for item in report.foreign_fields}
        assert fields == {
            ("ConfigMap", "data.extra", "other-tool"),
            ("DaemonSet", 'spec.template.spec.containers[name="sidecar"]', "injector"),
        }
    strict = sets(name, definition, strict=True)
    assert strict.failure is not None
    assert "sidecar" in str(strict.failure)


def test_replicas_are_left_to_an_autoscaler(sets: Sets, name: str) -> None:
    definition = [deployment(f"{name}-d", SPACE, 1)]
    sets.apply(name, definition)
    client = sets.client()
    client.patch(DEPLOYMENT, f"{name}-d", SPACE, {"spec": {"replicas": 3}}, subresource="scale", field_manager=HPA)
    report = sets.apply(name, definition)
    assert not report.changed
    assert report.reclaimed == []
    assert client.get(DEPLOYMENT, f"{name}-d", SPACE)["spec"]["replicas"] == 3
    definition[0]["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    assert sets.apply(name, definition).changed
    assert client.get(DEPLOYMENT, f"{name}-d", SPACE)["spec"]["replicas"] == 3


def test_a_ca_bundle_is_left_to_its_injector_also_when_drift_is_corrected(
    sets: Sets, name: str, sandbox: t.Any
) -> None:
    # The placeholder of many charts. The API server never calls this webhook.
    hook = {
        "name": "v.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": "Cg=="},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"hwaccel.gpu/test": "matches-nothing"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
    }
    meta = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"{name}-w"},
    }
    definition = [meta | {"webhooks": [hook]}]
    sets.apply(name, definition)
    client = sets.client()

    def edit(path: str, value: t.Any, manager: str) -> None:
        patch = [{"op": "replace", "path": f"/webhooks/0/{path}", "value": value}]
        client.patch(WEBHOOKS, f"{name}-w", "", patch, patch_type="application/json-patch+json", field_manager=manager)

    edit("clientConfig/caBundle", "aW5qZWN0ZWQ=", "cert-manager-cainjector")
    injected = client.get(WEBHOOKS, f"{name}-w")
    report = sets.apply(name, definition)
    assert not report.changed
    assert report.reclaimed == report.foreign_fields == report.conflicts == []
    assert client.get(WEBHOOKS, f"{name}-w") == injected
    audit = AuditLog(sandbox.audit_log)
    assert not sets.apply(name, definition).changed
    assert audit.our_writes() == []

    edit("timeoutSeconds", 3, "kubectl-edit")
    edit("failurePolicy", "Fail", "kubectl-edit")
    corrected = sets.apply(name, definition)
    assert [(item["path"], item["manager"]) for item in corrected.reclaimed] == [
        ('webhooks[name="v.example.com"].failurePolicy', "kubectl-edit")
    ]
    live = client.get(WEBHOOKS, f"{name}-w")["webhooks"][0]
    assert live["failurePolicy"] == "Ignore"
    assert live["clientConfig"]["caBundle"] == "aW5qZWN0ZWQ="
    audit.mark()
    assert not sets.apply(name, definition).changed
    assert audit.our_writes() == []


def test_warnings_of_the_server_are_returned(sets: Sets, name: str) -> None:
    client = sets.client()
    label = "pod-security.kubernetes.io/warn"
    client.patch(NAMESPACE, SPACE, "", {"metadata": {"labels": {label: "restricted"}}})
    try:
        for check in (True, False):
            report = sets.apply(name, [deployment(f"{name}-d", SPACE, 1)], check=check)
            assert any(
                text.startswith(f"Deployment drift/{name}-d: ") and "PodSecurity" in text for text in report.warnings
            ), report.warnings
    finally:
        client.patch(NAMESPACE, SPACE, "", {"metadata": {"labels": {label: None}}})


def test_status_written_by_others_is_not_our_change(sets: Sets, name: str) -> None:
    definition = [deployment(f"{name}-d", SPACE, 1)]
    sets.apply(name, definition)
    sets.client().patch(
        DEPLOYMENT,
        f"{name}-d",
        SPACE,
        {"status": {"replicas": 1}},
        subresource="status",
        field_manager="another-controller",
    )
    report = sets.apply(name, definition, diff=True)
    assert not report.changed
    assert report.diff == []
    assert report.foreign_fields == []


def test_secrets_are_redacted_and_their_set_is_recorded_in_a_secret(sets: Sets, name: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-s", "namespace": SPACE},
        "stringData": {"password": "planted-1"},
    }
    moved = sets.apply(name, [config_map(f"{name}-a", SPACE)])
    assert moved.record["kind"] == "ConfigMap"
    report = sets.apply(name, [config_map(f"{name}-a", SPACE), body], diff=True)
    assert report.record["kind"] == "Secret"
    client = sets.client()
    with pytest.raises(NotFound):
        client.get(CONFIG_MAP, name, "hwaccel-gpu-records")
    body["stringData"]["password"] = "planted-2"
    report = sets.apply(name, [config_map(f"{name}-a", SPACE), body], diff=True)
    assert report.diff
    assert "planted" not in repr(report.diff)
    assert "cGxhbnRlZ" not in repr(report.diff)
    assert not sets.apply(name, [config_map(f"{name}-a", SPACE), body]).changed


def test_messages_of_the_server_about_a_secret_do_not_show_its_values(sets: Sets, name: str) -> None:
    metadata = {"name": f"{name}-s", "namespace": SPACE}
    client = sets.client()
    for values in (
        {"stringData": {"pin": 48151623}},
        {"data": {"pin": 48151623}},
        {"stringData": {"pin": {"a": "48151623"}}},
        {"stringData": "48151623"},
    ):
        with pytest.raises(Invalid) as caught:
            client.apply(
                {"apiVersion": "v1", "kind": "Secret", "metadata": metadata} | values,
                SECRET,
                field_manager="test",
                dry_run=True,
            )
        assert "expected" in str(caught.value)
        assert "48151623" not in str(caught.value)
