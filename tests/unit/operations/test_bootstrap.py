# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether bootstrap is complete, from the answers of a cluster."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import bootstrap
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, served

CLUSTER_VERSION = served("config.openshift.io/v1", "ClusterVersion", "clusterversions", namespaced=False)


def cluster(bootstrap: t.Any = None, version: t.Any = None) -> Cluster:
    """A cluster with the ConfigMap `bootstrap` and the ClusterVersion. An exception is raised instead of an answer."""
    result = Cluster(kinds=(*KINDS, CLUSTER_VERSION))
    if isinstance(bootstrap, Exception):
        result.fail(bootstrap, "get", kind="ConfigMap")
    elif bootstrap is not None:
        metadata = {"name": "bootstrap", "namespace": "kube-system"}
        result.put({"kind": "ConfigMap", "metadata": metadata, **bootstrap})
    if version is not None:
        result.put({"kind": "ClusterVersion", "metadata": {"name": "version"}, **version})
    return result


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


def test_a_missing_permission_is_reported() -> None:
    with pytest.raises(Forbidden):
        bootstrap.state(cluster(Forbidden("reading a ConfigMap")))
