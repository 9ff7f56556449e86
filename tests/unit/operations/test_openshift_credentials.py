# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The router's CA, and the removal of kubeadmin, on a cluster in memory."""

from __future__ import annotations

import ssl
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, Unauthorized
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_credentials as credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_credentials import Settings, run
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS

Obj = dict[str, t.Any]
CONFIG = (credentials.INFRASTRUCTURE, credentials.OPERATOR, credentials.OAUTH)
WANTED = Settings("ocp.example.com", "ocp-x7k2p", remove_kubeadmin=True)
#: A SEQUENCE, which is all that is looked at.
PEM = ssl.DER_cert_to_PEM_cert(b"\x30\x03\x02\x01\x01")


class OpenShift(Cluster):
    """Answers reviews as the API server does, without storing them. powerful: users who may do everything; me: whose requests these are."""

    def __init__(self, *objects: Obj, powerful: t.Iterable[str] = (), me: str = "system:admin") -> None:
        users = (credentials.USER, credentials.GROUP, credentials.BINDING, credentials.REVIEW, credentials.SELF)
        super().__init__(*objects, kinds=(*KINDS, *CONFIG, *users))
        self.powerful, self.me = set(powerful), me

    def create(self, obj: Obj, resource: Resource, *, field_manager: str = "", dry_run: bool = False) -> Answer:
        if resource in (credentials.REVIEW, credentials.SELF):
            # The client of the product reads them from there, as those of all objects.
            assert obj["metadata"] == {}
        if resource == credentials.REVIEW:
            assert dry_run and obj["spec"]["resourceAttributes"] == {"verb": "*", "group": "*", "resource": "*"}
            names = {obj["spec"]["user"], *obj["spec"]["groups"]}
            return Answer({**obj, "status": {"allowed": bool(names & self.powerful)}})
        if resource == credentials.SELF:
            assert dry_run
            return Answer({**obj, "status": {"userInfo": {"username": self.me, "groups": ["system:authenticated"]}}})
        return super().create(obj, resource, field_manager=field_manager, dry_run=dry_run)


def named(kind: str, name: str, **fields: t.Any) -> Obj:
    namespace = fields.pop("namespace", None)
    return {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **fields}


def bound(name: str, kind: str = "User", role: str = "cluster-admin") -> Obj:
    subjects = [{"kind": kind, "name": name}]
    return named(
        "ClusterRoleBinding", f"{role}-{name}", roleRef={"kind": "ClusterRole", "name": role}, subjects=subjects
    )


INSTALLED = (
    named("Infrastructure", "cluster", status={"infrastructureName": "ocp-x7k2p"}),
    named("Namespace", "kube-system"),
    named("Namespace", "openshift-config-managed"),
    named("Secret", "kubeadmin", namespace="kube-system", data={"kubeadmin": "aGFzaA=="}),
    bound("system:admin"),
)
SSO = named("OAuth", "cluster", spec={"identityProviders": [{"name": "sso"}]})
WORKS = named("ClusterOperator", "authentication", status={"conditions": [{"type": "Available", "status": "True"}]})
ALICE = named("User", "alice", identities=["sso:1234"])


def has_kubeadmin(cluster: Cluster) -> bool:
    return "kubeadmin" in [one["metadata"]["name"] for one in cluster.list(credentials.SECRET, "kube-system").items]


def test_kubeadmin_is_removed_once_by_its_uid_and_its_password_is_never_read() -> None:
    cluster = OpenShift(*INSTALLED, SSO, WORKS, ALICE, bound("alice"), powerful=["alice"])
    predicted = run(cluster, WANTED, check_mode=True)
    assert predicted.changed and predicted.values["administrator"] == "alice" and has_kubeadmin(cluster)
    outcome = run(cluster, WANTED)
    assert outcome.changed and outcome.values["kubeadmin"] is False and not has_kubeadmin(cluster)
    assert cluster.writes == ["delete Secret kubeadmin"]
    reads = cluster.sent("get", "Secret")
    assert reads and all(one.metadata_only for one in reads)
    again = run(cluster, WANTED)
    assert not again.changed and again.values["kubeadmin"] is False and len(cluster.writes) == 1


@pytest.mark.parametrize(
    ("objects", "powerful", "why"),
    [
        ([WORKS, ALICE, bound("alice")], ["alice"], "OAuth cluster has no identity provider"),
        ([SSO, ALICE, bound("alice")], ["alice"], "there is no ClusterOperator authentication"),
        ([SSO, WORKS, ALICE], ["alice"], "no user is bound to the ClusterRole cluster-admin"),
        ([SSO, WORKS, ALICE, bound("alice", role="view")], ["alice"], "no user is bound"),
        ([SSO, WORKS, bound("alice")], ["alice"], "have not logged in"),
        ([SSO, WORKS, ALICE, bound("alice")], [], "alice may not do everything"),
        # Everyone being an administrator names nobody.
        ([SSO, WORKS, ALICE, bound("system:authenticated", "Group")], ["system:authenticated"], "no user is bound"),
    ],
)
def test_kubeadmin_is_kept_without_another_administrator(objects: list[Obj], powerful: list[str], why: str) -> None:
    cluster = OpenShift(*INSTALLED, *objects, powerful=powerful)
    for check_mode in (True, False):
        outcome = run(cluster, WANTED, check_mode=check_mode)
        told = str(outcome.failure)
        assert not outcome.changed and why in told and "kubeadmin is kept" in told and "Next: " in told
        assert outcome.values["kubeadmin"] is True and outcome.values["router_ca"] == ""
    assert has_kubeadmin(cluster) and not cluster.writes


def test_a_group_makes_its_members_administrators() -> None:
    admins = named("Group", "admins", users=["alice"])
    cluster = OpenShift(*INSTALLED, SSO, WORKS, ALICE, admins, bound("admins", "Group"), powerful=["admins"])
    assert run(cluster, WANTED).values["administrator"] == "alice"


@pytest.mark.parametrize(
    ("me", "uid", "removed"),
    [("oidc:carol", "same", True), ("oidc:carol", "other", False), ("system:admin", "same", False)],
)
def test_the_connection_of_somebody_else_is_proof_if_it_is_to_this_cluster(me: str, uid: str, removed: bool) -> None:
    cluster = OpenShift(*INSTALLED)
    theirs = OpenShift(me=me)
    mine = cluster.get(credentials.fleet.NAMESPACE, "kube-system")["metadata"]["uid"]
    theirs.put({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": mine if uid == "same" else "another"}})
    if removed:
        assert run(cluster, WANTED, theirs).values["administrator"] == me
    else:
        assert "no identity provider" in str(run(cluster, WANTED, theirs).failure)
    assert has_kubeadmin(cluster) != removed


def test_a_connection_that_does_not_work_is_no_proof_and_no_error_of_its_own() -> None:
    cluster, theirs = OpenShift(*INSTALLED), OpenShift()
    theirs.fail(Unauthorized("the credentials are refused", "https://api:6443"))
    assert "no identity provider" in str(run(cluster, WANTED, theirs).failure)


@pytest.mark.parametrize("theirs", ["other-a1b2c", ""])
def test_another_cluster_is_refused_before_anything_is_read_or_changed(theirs: str) -> None:
    cluster = OpenShift(*INSTALLED, SSO, WORKS, ALICE, bound("alice"), powerful=["alice"])
    cluster.put(named("Infrastructure", "cluster", status={"infrastructureName": theirs}))
    with pytest.raises(HwaccelError, match="infraID of the installation is ocp-x7k2p"):
        run(cluster, WANTED)
    assert has_kubeadmin(cluster) and [one.kind for one in cluster.requests][:1] == ["Infrastructure"]


def test_the_router_ca_is_returned_once_it_is_there() -> None:
    cluster = OpenShift(*INSTALLED)
    settings = Settings("ocp.example.com", "ocp-x7k2p")
    assert run(cluster, settings).values == {"router_ca": "", "kubeadmin": True, "administrator": "", "why": ""}
    assert not [one for one in cluster.requests if one.kind == "ClusterRoleBinding"]
    cluster.put(
        named("ConfigMap", "default-ingress-cert", namespace="openshift-config-managed", data={"ca-bundle.crt": PEM})
    )
    assert run(cluster, settings).values["router_ca"] == PEM
    cluster.put(
        named("ConfigMap", "default-ingress-cert", namespace="openshift-config-managed", data={"ca-bundle.crt": "x"})
    )
    with pytest.raises(HwaccelError, match="it has none in PEM"):
        run(cluster, settings)
