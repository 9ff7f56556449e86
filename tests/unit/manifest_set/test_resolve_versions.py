# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Custom resources in a version that the set's own CRD does not serve yet."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, served
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.test_ensure import actions, call

Obj = dict[str, t.Any]


class Versions(Cluster):
    """A cluster that serves widgets in the versions of their CRD."""

    def __init__(self) -> None:
        super().__init__()
        self.served: list[Resource] = []
        self.on("apply", self._serve, kind="CustomResourceDefinition", after=True)

    def crd(self, *versions: str) -> Obj:
        names = {"kind": "Widget", "plural": "widgets"}
        spec = {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": name, "served": True} for name in versions],
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": spec,
        }

    def widget(self, version: str, name: str) -> Obj:
        return {
            "apiVersion": f"example.com/{version}",
            "kind": "Widget",
            "metadata": {"name": name, "namespace": "n"},
            "spec": {"of": version},
        }

    def _serve(self, request: Request) -> None:
        versions = [entry["name"] for entry in request.body["spec"]["versions"]]
        self.served = [served(f"example.com/{name}", "Widget", "widgets") for name in reversed(versions)]
        self.kinds = [*KINDS, *self.served]
        conditions = [{"type": kind, "status": "True"} for kind in ("Established", "NamesAccepted")]
        self.objects[request.place]["status"] = {"conditions": conditions}


def test_foreign_objects_are_observed_in_an_older_version_of_their_kind() -> None:
    """The set updates its CRD and has objects in a version that is not served yet."""
    cluster = Versions()
    actions(call(cluster, [cluster.crd("v1"), cluster.widget("v1", "mine")]))
    cluster.create(cluster.widget("v1", "foreign"), cluster.served[0], field_manager="kubectl")
    raised = [cluster.crd("v1", "v2"), cluster.widget("v2", "mine")]
    refused = call(cluster, [*raised, cluster.widget("v2", "foreign")])
    assert "Widget n/foreign does not belong to this set" in str(refused.failure)
    report = call(cluster, raised)
    assert actions(report) == {"widgets.example.com": "configured", "mine": "configured"}
    assert report.reclaimed == []
    assert call(cluster, raised).changed is False
    call(cluster, state="absent")
    assert ("widgets", "n", "foreign") in cluster.objects


def test_a_request_is_retried_while_a_server_does_not_serve_the_kind_yet() -> None:
    """One of several API servers has the new CRD, and the one that receives the next request does not."""
    cluster, time = Versions(), Time()
    missing = NotFound("the server could not find the requested resource")
    cluster.fail(missing, "apply", kind="Widget", times=3, dry_run=True)
    began = time.now
    report = call(cluster, [cluster.crd("v1"), cluster.widget("v1", "mine")], clock=time.clock())
    assert actions(report) == {"widgets.example.com": "created", "mine": "created"}
    assert 0 < time.now - began < 30
