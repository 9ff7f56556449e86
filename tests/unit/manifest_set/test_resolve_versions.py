# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Custom resources in a version that the set's own CRD is only about to serve."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set import cluster as in_memory
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.test_ensure import Time, actions, call

Obj = dict[str, t.Any]


class Versions(in_memory.Cluster):
    """Serves widgets in the versions that their CRD names."""

    def __init__(self) -> None:
        super().__init__()
        self.served: list[Resource] = []

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

    def resource(self, api_version: str, kind: str) -> Resource:
        return next(
            (one for one in self.served if (one.api_version, one.kind) == (api_version, kind)), None
        ) or super().resource(api_version, kind)

    def resource_by_group(self, group: str, kind: str) -> Resource:
        return self.served[0] if kind == "Widget" and self.served else super().resource_by_group(group, kind)

    def apply(
        self, obj: Obj, resource: Resource, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> Answer:
        answer = super().apply(obj, resource, field_manager=field_manager, force=force, dry_run=dry_run)
        if resource.kind == "CustomResourceDefinition" and not dry_run:
            versions = [entry["name"] for entry in obj["spec"]["versions"]]
            self.served = [
                Resource("example.com", name, "Widget", "widgets", True, frozenset(("list",)))
                for name in reversed(versions)
            ]
            self.objects["customresourcedefinitions", "", obj["metadata"]["name"]]["status"] = {
                "conditions": [{"type": kind, "status": "True"} for kind in ("Established", "NamesAccepted")],
            }
        return answer


def test_objects_of_others_are_seen_in_an_older_version_of_their_kind() -> None:
    """The set raises its CRD and asks for objects in a version that is not served yet."""
    cluster = Versions()
    actions(call(cluster, [cluster.crd("v1"), cluster.widget("v1", "mine")]))
    cluster.create(cluster.widget("v1", "foreign"), cluster.served[0], field_manager="kubectl")
    raised = [cluster.crd("v1", "v2"), cluster.widget("v2", "mine")]
    refused = call(cluster, [*raised, cluster.widget("v2", "foreign")])
    assert "Widget n/foreign is not ours" in str(refused.failure)
    report = call(cluster, raised)
    assert actions(report) == {"widgets.example.com": "configured", "mine": "configured"}
    assert report.reclaimed == []
    assert call(cluster, raised).changed is False
    call(cluster, state="absent")
    assert ("widgets", "n", "foreign") in cluster.objects


def test_a_server_that_learns_of_a_kind_later_than_it_says_is_asked_again() -> None:
    """One of several API servers has the new CRD, and the one that is asked next has not."""
    cluster, time = Versions(), Time()
    original, refusals = cluster.apply, []

    def apply(obj: Obj, resource: Resource, **options: t.Any) -> Answer:
        if resource.kind == "Widget" and len(refusals) < 3:
            refusals.append(obj)
            raise NotFound("the server could not find the requested resource")
        return original(obj, resource, **options)

    cluster.apply = apply  # type: ignore[method-assign]
    began = time.at
    report = call(cluster, [cluster.crd("v1"), cluster.widget("v1", "mine")], clock=time.clock())
    assert actions(report) == {"widgets.example.com": "created", "mine": "created"}
    assert 0 < time.at - began < 30
