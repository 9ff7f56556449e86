# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far bootstrap is, from the answers of a cluster."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.objects import MEMBER_REMOVED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bootstrap
from ansible_collections.hwaccel.gpu.plugins.modules import bootstrap_info as module
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, served

CLUSTER_VERSION = served("config.openshift.io/v1", "ClusterVersion", "clusterversions", namespaced=False)
ETCD = served("operator.openshift.io/v1", "Etcd", "etcds", namespaced=False)
COMPLETE = {"data": {"status": "complete"}}


def cluster(bootstrap: t.Any = None, version: t.Any = None, etcd: t.Any = None) -> Cluster:
    """A cluster with the ConfigMap `bootstrap`, the ClusterVersion and the Etcd. An exception is raised instead of an answer."""
    result = Cluster(kinds=(*KINDS, CLUSTER_VERSION, *([] if etcd is None else [ETCD])))
    if isinstance(bootstrap, Exception):
        result.fail(bootstrap, "get", kind="ConfigMap")
    elif bootstrap is not None:
        metadata = {"name": "bootstrap", "namespace": "kube-system"}
        result.put({"kind": "ConfigMap", "metadata": metadata, **bootstrap})
    if version is not None:
        result.put({"kind": "ClusterVersion", "metadata": {"name": "version"}, **version})
    if isinstance(etcd, Exception):
        result.fail(etcd, "get", kind="Etcd")
    elif etcd is not None:
        result.put({"kind": "Etcd", "metadata": {"name": "cluster"}, "status": {"conditions": etcd}})
    return result


def removed(status: str) -> list[dict[str, str]]:
    return [{"type": MEMBER_REMOVED, "status": status, "reason": "BootstrapMember", "message": "waits"}]


def history(state: str) -> dict[str, t.Any]:
    return {"status": {"history": [{"state": state}]}}


@pytest.mark.parametrize(
    ("answers", "complete", "why"),
    [
        (
            {"bootstrap": {"data": {"status": "complete"}}},
            True,
            "the status in ConfigMap kube-system/bootstrap is complete",
        ),
        ({"bootstrap": {"data": {"status": "progressing"}}}, False, "is progressing"),
        ({"bootstrap": {}}, False, "there is no ConfigMap"),
        ({}, False, "there is no ConfigMap"),
        ({"version": history("Partial")}, False, "there is no ConfigMap"),
        ({"version": history("Completed")}, True, "ClusterVersion has a completed installation"),
        ({"bootstrap": Unreachable("no answer", "https://api:6443")}, None, "no answer (https://api:6443)"),
    ],
)
def test_bootstrap_is_complete_incomplete_or_unknown(
    answers: dict[str, t.Any], complete: bool | None, why: str
) -> None:
    state = bootstrap.state(cluster(**answers))
    assert state["complete"] is complete
    assert why in state["why"]


@pytest.mark.parametrize(
    ("answers", "removable", "why"),
    [
        ({"bootstrap": COMPLETE, "etcd": removed("True")}, True, "EtcdBootstrapMemberRemoved of Etcd cluster is True"),
        ({"bootstrap": COMPLETE, "etcd": removed("False")}, False, "is not True: BootstrapMember: waits"),
        ({"bootstrap": COMPLETE, "etcd": removed("Unknown")}, False, "is not True"),
        ({"bootstrap": COMPLETE, "etcd": []}, True, "as in older releases"),
        ({"bootstrap": COMPLETE}, True, "as in older releases"),
        ({"version": history("Completed"), "etcd": removed("False")}, False, "is not True"),
        ({"version": history("Completed"), "etcd": removed("True")}, True, "is True"),
        ({"bootstrap": {"data": {"status": "progressing"}}, "etcd": removed("True")}, False, "is progressing"),
        ({"bootstrap": COMPLETE, "etcd": Unreachable("no answer", "https://api:6443")}, None, "no answer"),
        ({"bootstrap": COMPLETE, "etcd": Forbidden("reading Etcd cluster")}, None, "reading Etcd cluster"),
        ({"bootstrap": Unreachable("no answer", "https://api:6443")}, None, "no answer (https://api:6443)"),
    ],
)
def test_the_machine_can_go_once_etcd_has_removed_its_member(
    answers: dict[str, t.Any], removable: bool | None, why: str
) -> None:
    state = bootstrap.state(cluster(**answers))
    assert state["removable"] is removable
    assert why in state["removable_why"]


def test_etcd_is_only_read_of_a_complete_bootstrap() -> None:
    """What a load balancer's run asks of a cluster that has none stays the same."""
    without = cluster()
    bootstrap.state(without)
    assert [request.kind for request in without.requests] == ["ConfigMap", "ClusterVersion"]


def test_what_is_returned_is_documented() -> None:
    assert set(bootstrap.state(cluster())) == set(yaml.safe_load(module.RETURN))


def test_a_missing_permission_is_reported() -> None:
    with pytest.raises(Forbidden):
        bootstrap.state(cluster(Forbidden("reading a ConfigMap")))
