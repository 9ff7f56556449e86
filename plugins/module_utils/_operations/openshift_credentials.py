# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that come with an installed cluster of OpenShift: what its router's certificates are signed by, and the user kubeadmin."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import administrators, objects
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.administrators import (
    Administrators,
    Connected,
    Person,
    Proof,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import comparison, fleet

Obj = dict[str, t.Any]
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
SECRET = Resource("", "v1", "Secret", "secrets", True)
INFRASTRUCTURE = Resource("config.openshift.io", "v1", "Infrastructure", "infrastructures", False)
OPERATOR = Resource("config.openshift.io", "v1", "ClusterOperator", "clusteroperators", False)
OAUTH = Resource("config.openshift.io", "v1", "OAuth", "oauths", False)
USER = Resource("user.openshift.io", "v1", "User", "users", False)
GROUP = Resource("user.openshift.io", "v1", "Group", "groups", False)
BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False)
REVIEW = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False)
#: Since Kubernetes 1.28.
SELF = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)
#: Where openshift-install wait-for install-complete reads what it adds to auth/kubeconfig (addRouterCAToClusterCA in cmd/openshift-install).
_ROUTER = ("default-ingress-cert", "openshift-config-managed", "ca-bundle.crt")
_KUBEADMIN = ("kubeadmin", "kube-system")
_ADMIN = "cluster-admin"
_EVERYTHING = Resource("*", "*", "", "*", False)
#: Groups of everyone who has logged in by OpenShift's OAuth server.
_OF_EVERYONE = ("system:authenticated", "system:authenticated:oauth")


@dataclasses.dataclass(frozen=True)
class Settings:
    """name: of the cluster, for messages. infrastructure: infraID of the installation, "" if it is not known.

    remove_kubeadmin: whether the user is not wanted any more.
    """

    name: str
    infrastructure: str
    remove_kubeadmin: bool = False


def run(client: Client, settings: Settings, own: Client | None = None, *, check_mode: bool = False) -> Outcome:
    """own: a connection of somebody else, None without one. Raises HwaccelError if it is another cluster.

    If kubeadmin would leave it without an administrator, the outcome is a failure with everything else that was found out.
    """
    _same(client, settings)
    values: Obj = {"router_ca": _router_ca(client), "administrator": "", "why": ""}
    secret = _read(client, SECRET, *_KUBEADMIN, metadata_only=True)
    values["kubeadmin"] = bool(secret)
    if not (settings.remove_kubeadmin and secret):
        return Outcome(values=values)
    found = administrators.proof(_administrators(client, own))
    if not found.name:
        return Outcome(values=values, failure=_refused(settings, found))
    if not check_mode:
        # Another uid is that of a Secret that somebody has made since.
        client.delete(SECRET, *_KUBEADMIN, uid=secret["metadata"]["uid"])
    return Outcome(True, {**values, "kubeadmin": False, "administrator": found.name, "why": found.why})


def _refused(settings: Settings, found: Proof) -> HwaccelError:
    what = "kubeadmin is kept, because no other administrator is known"
    return HwaccelError(what, settings.name, found.why, f"{found.next_step}; or set remove_kubeadmin to false")


def _same(client: Client, settings: Settings) -> None:
    if not settings.infrastructure:
        return
    status = _read(client, INFRASTRUCTURE, "cluster").get("status") or {}
    theirs = str(status.get("infrastructureName") or "")
    if theirs == settings.infrastructure:
        return
    why = (
        f"its infrastructureName is {theirs or 'unknown'}, and infraID of the installation is {settings.infrastructure}"
    )
    next_step = "correct the records of api in DNS and the load balancer, or the folder"
    raise HwaccelError(f"what answers is not {settings.name}, and nothing was changed", client.where, why, next_step)


def _router_ca(client: Client) -> str:
    """ "" as long as the ingress operator has not written it."""
    name, namespace, key = _ROUTER
    found = str((_read(client, CONFIG_MAP, name, namespace).get("data") or {}).get(key) or "")
    if found and not comparison.fingerprints(found):
        where = f"ConfigMap {namespace}/{name}, {key}"
        raise HwaccelError(
            "the router's certificates cannot be read", where, "it has none in PEM", "read ClusterOperator ingress"
        )
    return found


def _administrators(client: Client, own: Client | None) -> Administrators:
    connected = _connected(client, own) if own is not None else None
    providers = (_read(client, OAUTH, "cluster").get("spec") or {}).get("identityProviders") or ()
    operator = _read(client, OPERATOR, "authentication")
    login = "there is no ClusterOperator authentication"
    if operator:
        state = objects.operator(operator)
        login = "" if state.available and not state.degraded else state.reason
    return Administrators(
        tuple(str(one["name"]) for one in providers),
        login,
        tuple(_person(client, name, groups) for name, groups in sorted(_bound(client).items())) if providers else (),
        connected,
    )


def _connected(client: Client, own: Client) -> Connected | None:
    """None if it is a connection to another cluster, or whose it is cannot be found out."""
    try:
        if not (uid := fleet.cluster_uid(own)) or uid != fleet.cluster_uid(client):
            return None
        # The server stores no review, and check mode refuses what is no dry run.
        user = own.create(_review(SELF), SELF, dry_run=True).object["status"]["userInfo"]
        return Connected(str(user["username"]), tuple(user.get("groups") or ()), own.allowed("*", _EVERYTHING))
    except ApiError:
        return None


def _bound(client: Client) -> dict[str, set[str]]:
    """Users who are bound to cluster-admin, with the Groups by which they are."""
    found: dict[str, set[str]] = {}
    for binding in client.list(BINDING).items:
        role = binding["roleRef"]
        if (role["kind"], role["name"]) != ("ClusterRole", _ADMIN):
            continue
        for subject in binding.get("subjects") or ():
            name = str(subject["name"])
            if subject["kind"] == "User" and not name.startswith("system:"):
                found.setdefault(name, set())
            elif subject["kind"] == "Group":
                for user in _read(client, GROUP, name).get("users") or ():
                    found.setdefault(str(user), set()).add(name)
    return found


def _person(client: Client, name: str, groups: set[str]) -> Person:
    """A User is there once somebody has logged in, with identities as PROVIDER:NAME."""
    user = _read(client, USER, name)
    providers = tuple(str(one).partition(":")[0] for one in user.get("identities") or ())
    spec = {
        "user": name,
        "groups": [*sorted(groups), *_OF_EVERYONE],
        "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"},
    }
    status = client.create({**_review(REVIEW), "spec": spec}, REVIEW, dry_run=True).object.get("status") or {}
    return Person(name, providers, bool(status.get("allowed")))


def _review(resource: Resource) -> Obj:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}


def _read(client: Client, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False) -> Obj:
    """{} if it does not exist, or its kind is unknown."""
    try:
        return client.get(resource, name, namespace, metadata_only=metadata_only)
    except NotFound:
        return {}
