# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of others in a Namespace or of a CRD."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource

#: Kinds that are created and deleted automatically, or that controllers write in every namespace.
_PASSING = frozenset(
    (
        ("", "Event"),
        ("events.k8s.io", "Event"),
        ("", "Endpoints"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("apps", "ControllerRevision"),
        ("metrics.k8s.io", "PodMetrics"),
    )
)
#: Objects that every namespace has.
_EVERYWHERE = frozenset(
    (
        ("ConfigMap", "kube-root-ca.crt"),
        ("ConfigMap", "openshift-service-ca.crt"),
        ("ServiceAccount", "default"),
        ("ServiceAccount", "builder"),
        ("ServiceAccount", "deployer"),
    )
)


def foreign_contents(
    client: Client, container: Step, members: c.Collection[ObjectKey], *, lasting: bool = False
) -> list[str]:
    """Objects in a Namespace, or of a CRD, that are not in the set. lasting: only those that will not be garbage collected."""
    if (container.key.group, container.key.kind) == waves.NAMESPACE:
        return _in_namespace(client, container.key.name, members, lasting)
    return _of_crd(client, container, members, lasting)


def _in_namespace(client: Client, namespace: str, members: c.Collection[ObjectKey], lasting: bool) -> list[str]:
    found: list[str] = []
    for resource in client.all_resources():
        if not resource.namespaced or resource.group_kind in _PASSING or "list" not in resource.verbs:
            continue
        found += _foreign(client, resource, namespace, members, lasting)
    return found


def _of_crd(client: Client, container: Step, members: c.Collection[ObjectKey], lasting: bool) -> list[str]:
    try:
        spec = client.get(container.resource, container.key.name)["spec"]
    except NotFound:
        return []
    version = next((entry["name"] for entry in spec["versions"] if entry.get("served")), "")
    if not version:
        return []
    resource = Resource(
        spec["group"], version, spec["names"]["kind"], spec["names"]["plural"], spec["scope"] == "Namespaced"
    )
    return _foreign(client, resource, "", members, lasting)


def _foreign(
    client: Client, resource: Resource, namespace: str, members: c.Collection[ObjectKey], lasting: bool
) -> list[str]:
    try:
        items = client.list(resource, namespace, metadata_only=True).items
    except NotFound:
        return []
    except Forbidden:
        # If a kind cannot be listed, it must be assumed that there are objects of it.
        return [f"{resource.plural} that the run may not list"]
    found = []
    for item in items:
        metadata = item["metadata"]
        key = ObjectKey(resource.group, resource.kind, metadata.get("namespace") or "", metadata["name"])
        if key in members or (resource.kind, key.name) in _EVERYWHERE or _leaving(metadata, lasting):
            continue
        found.append(str(key))
    return found


def _leaving(metadata: dict[str, t.Any], lasting: bool) -> bool:
    """Whether an object is going away: it is being deleted, or has an owner whose deletion may still delete it."""
    return bool(metadata.get("deletionTimestamp")) or (lasting and bool(metadata.get("ownerReferences")))
