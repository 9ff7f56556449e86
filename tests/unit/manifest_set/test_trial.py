# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions from a dry run: fields that are left to known controllers, forced fields, and permissions to recreate an object."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import needed_rights, steps
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Entry
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import Member
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.trial import Trial, attempt
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Conflict, Invalid
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster

Obj = dict[str, t.Any]
WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
ROLE_BINDING = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", True)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)

HOOK = ("f:webhooks", 'k:{"name":"v.example.com"}')
CA_BUNDLE = (*HOOK, "f:clientConfig", "f:caBundle")
POLICY = (*HOOK, "f:failurePolicy")
INJECTOR, EDITOR = "cert-manager-cainjector", "kubectl-edit"


class Contested:
    """A server where other managers own fields: an apply with one of them is a conflict, unless it is forced."""

    def __init__(self, owned: dict[fieldsets.Path, tuple[str, ...]]) -> None:
        self.owned = owned
        self.forced: list[Obj] = []

    def apply(
        self, obj: Obj, resource: Resource, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> Answer:
        causes = [
            {
                "reason": "FieldManagerConflict",
                "field": f".{fieldsets.text(path)}",
                "message": f'conflict with "{manager}" using v1',
            }
            for path, managers in self.owned.items()
            for manager in managers
            if fieldsets.value_at(obj, path) is not None
        ]
        if causes and not force:
            raise Conflict("applying", body={"details": {"causes": causes}})
        self.forced += [obj] if force else []
        return Answer(obj)

    def live(self) -> Obj:
        fields = [(manager, path) for path, managers in self.owned.items() for manager in managers]
        entries = [
            {"manager": manager, "operation": "Update", "fieldsV1": fieldsets.unparse(frozenset({path}))}
            for manager, path in fields
        ]
        return {"metadata": {"managedFields": entries}}


def member(resource: Resource, **body: t.Any) -> Member:
    namespace = "n" if resource.namespaced else ""
    head = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "x", "namespace": namespace},
    }
    return Member(ObjectKey(resource.group, resource.kind, namespace, "x"), resource, head | body, "ask", "x.yml")


def webhooks() -> Member:
    hook = {
        "name": "v.example.com",
        "failurePolicy": "Ignore",
        "clientConfig": {"caBundle": "Cg==", "service": {"name": "s", "namespace": "n"}},
    }
    return member(WEBHOOKS, webhooks=[{"name": "other.example.com", "clientConfig": {"caBundle": "Cg=="}}, hook])


def trial_of(
    server: Contested,
    desired: Member,
    live: Obj | None = None,
    ours: frozenset[fieldsets.Path] = frozenset(),
    **options: t.Any,
) -> Trial:
    entry = Entry(desired.key, "uid", "ask", ours)
    return attempt(
        t.cast("t.Any", server),
        SetOptions("s", **options),
        desired,
        desired.body,
        entry,
        frozenset(),
        live=server.live() if live is None else live,
    )


def test_a_field_below_a_list_element_is_left_to_its_controller() -> None:
    server, desired = Contested({CA_BUNDLE: (INJECTOR,)}), webhooks()
    trial = trial_of(server, desired, ours=frozenset({CA_BUNDLE}))
    assert trial.faults == ()
    assert not trial.force
    assert [hook["clientConfig"].get("caBundle") for hook in trial.body["webhooks"]] == ["Cg==", None]
    assert f'webhooks[name="v.example.com"].clientConfig.caBundle is left to {INJECTOR}' in trial.reason
    assert fieldsets.value_at(desired.body, CA_BUNDLE) == "Cg=="


def test_drift_is_corrected_by_force_without_fields_of_controllers() -> None:
    server = Contested({CA_BUNDLE: (INJECTOR,), POLICY: (EDITOR,)})
    trial = trial_of(server, webhooks(), ours=frozenset({CA_BUNDLE, POLICY}))
    assert trial.force
    assert server.forced == [trial.body]
    assert fieldsets.value_at(trial.body, CA_BUNDLE) is None
    assert fieldsets.value_at(trial.body, POLICY) == "Ignore"


def test_a_name_with_dots_is_one_field() -> None:
    path = ("f:data", "f:service-ca.crt")
    trial = trial_of(
        Contested({path: ("service-ca-operator",)}), member(CONFIG_MAP, data={"service-ca.crt": "", "a": "1"})
    )
    assert trial.faults == ()
    assert trial.body["data"] == {"a": "1"}


def test_a_field_of_two_controllers_is_omitted_once_and_needs_no_force() -> None:
    server = Contested({CA_BUNDLE: (INJECTOR, "another-injector")})
    trial = trial_of(server, webhooks())
    assert trial.faults == ()
    assert not trial.force
    assert fieldsets.value_at(trial.body, CA_BUNDLE) is None


@pytest.mark.parametrize("force_conflicts", [False, True])
def test_nothing_is_forced_if_a_controllers_field_cannot_be_omitted(force_conflicts: bool) -> None:
    server = Contested({CA_BUNDLE: (INJECTOR,), POLICY: (EDITOR,)})
    trial = trial_of(
        server, webhooks(), {"metadata": {}}, frozenset({CA_BUNDLE, POLICY}), force_conflicts=force_conflicts
    )
    assert server.forced == []
    assert [fault.where for fault in trial.faults] == ["x.yml"]
    assert INJECTOR in trial.faults[0].what
    assert "clientConfig.caBundle" in trial.faults[0].what


class Unchangeable(Cluster):
    """A server that rejects changes to an object, and allows only what is in `granted`."""

    def __init__(self, granted: set[tuple[str, str, str, str]]) -> None:
        super().__init__()
        self.granted = granted
        why = "cannot change roleRef"
        causes = [{"field": "roleRef", "message": why}]
        self.fail(Invalid("applying", why=why, body={"details": {"causes": causes}}), "apply", dry_run=True)

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        return (verb, resource.plural, namespace, name) in self.granted


@pytest.mark.parametrize("held", [(), ("create",), ("delete",), ("create", "delete")])
def test_permissions_to_recreate_are_reviewed_by_the_name_of_the_object(held: tuple[str, ...]) -> None:
    desired = member(ROLE_BINDING)
    server = Unchangeable({(verb, "rolebindings", "n", "x") for verb in held})
    trial = attempt(server, SetOptions("s"), desired, desired.body, None, frozenset())
    assert trial.propagation == "Background"
    step = steps.Step(
        desired.key, ROLE_BINDING, steps.RECREATED, member=desired, write=True, propagation=trial.propagation
    )
    missing = needed_rights.missing(server, [step], 1)
    assert missing == [
        (verb, "rolebindings", "rbac.authorization.k8s.io", "n") for verb in ("create", "delete") if verb not in held
    ]
