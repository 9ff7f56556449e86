# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that come with an installation, and people who log in.

OAuth and ClusterOperator have OpenShift's own definitions. Users and Groups are a stand-in: OpenShift serves them by an API server of its own, so that they
have none. Here they have the names, scope and fields of user/v1 of its API, and nothing else is taken from them. Who may do what is decided by
the real API server.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import put

Obj = dict[str, t.Any]
#: As the password's hash, which nobody has to see.
HASH = "pl4nted-hash-of-kubeadmin"
_CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_SECRET = Resource("", "v1", "Secret", "secrets", True)
_TEXTS = {"type": "array", "items": {"type": "string"}}


def _definition(kind: str, field: str) -> Obj:
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    schema = {"type": "object", "properties": {field: _TEXTS}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "user.openshift.io", "scope": "Cluster", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.user.openshift.io"},
        "spec": spec,
    }


def serve(admin: Client) -> None:
    for definition in (_definition("User", "identities"), _definition("Group", "users")):
        admin.apply(definition, _CRD, field_manager="tests")

    def served() -> bool:
        admin.forget_discovery()
        try:
            return all(admin.resource("user.openshift.io/v1", kind) for kind in ("User", "Group"))
        except NotFound:
            return False

    until(served, "users and groups to be served")


def kubeadmin(admin: Client) -> None:
    """As a manifest of the bootstrap machine makes it (99_kubeadmin-password-secret)."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kubeadmin", "namespace": "kube-system"},
        "type": "Opaque",
        "stringData": {"kubeadmin": HASH},
    }
    put(admin, secret)


def has_kubeadmin(admin: Client) -> bool:
    try:
        admin.get(_SECRET, "kubeadmin", "kube-system", metadata_only=True)
    except NotFound:
        return False
    return True


def router(admin: Client, pem: str) -> None:
    """As the ingress operator writes it."""
    metadata = {"name": "default-ingress-cert", "namespace": "openshift-config-managed"}
    put(admin, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca-bundle.crt": pem}})


def provider(admin: Client, name: str) -> None:
    secret = {"name": "htpasswd"}
    one = {"name": name, "mappingMethod": "claim", "type": "HTPasswd", "htpasswd": {"fileData": secret}}
    spec = {"identityProviders": [one]}
    put(admin, {"apiVersion": "config.openshift.io/v1", "kind": "OAuth", "metadata": {"name": "cluster"}, "spec": spec})


def bind(admin: Client, group: str, *users: str) -> None:
    """A Group of users, bound to cluster-admin."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": group},
        "roleRef": role,
        "subjects": [subject],
    }
    members = {"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": group}, "users": list(users)}
    put(admin, members)
    put(admin, binding)


def log_in(admin: Client, name: str, by: str) -> None:
    """What OpenShift's OAuth server makes at somebody's first login."""
    user = {"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": name}}
    put(admin, {**user, "identities": [f"{by}:{name}"]})
