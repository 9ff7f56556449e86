# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From manifests to members: the resource of each, and which kinds and namespaces the set itself creates."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import PART_OF
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, UnknownKind
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import Manifest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource


@dataclasses.dataclass(frozen=True)
class Member:
    """One object of the definition. body has the set's label. planned_kind: its CRD is only in the set, the server does not have it yet."""

    key: ObjectKey
    resource: Resource
    body: dict[str, t.Any]
    ask: str
    origin: str
    planned_kind: bool = False


def members_of(
    client: Client, manifests: c.Sequence[Manifest], set_id: str, record_namespace: str
) -> tuple[list[Member], list[Fault]]:
    """Members in the order of their manifests, and all errors in their kinds and namespaces."""
    planned = _planned_kinds(manifests)
    members: list[Member] = []
    faults: list[Fault] = []
    for manifest in manifests:
        resource, unknown = _resource(client, manifest, planned)
        if resource is None:
            why = "the cluster has no such kind, and no CustomResourceDefinition of the set defines it"
            faults.append(
                Fault(
                    f"{manifest.api_version} {manifest.key.kind} is unknown",
                    manifest.origin,
                    why,
                    "correct it, or install its operator first",
                )
            )
            continue
        wrong = _namespace_fault(manifest, resource, record_namespace)
        if wrong:
            faults.append(wrong)
            continue
        body = labeled(manifest.body, set_id)
        members.append(Member(manifest.key, resource, body, digest(body), manifest.origin, unknown))
    return members, faults


def with_namespace(client: Client, manifests: c.Sequence[Manifest], namespace: str) -> list[Manifest]:
    """Sets the default namespace in namespaced objects without one."""
    planned = _planned_kinds(manifests)
    result = []
    for manifest in manifests:
        resource = None if manifest.key.namespace else _resource(client, manifest, planned)[0]
        if resource is not None and resource.namespaced:
            body = manifest.body | {"metadata": manifest.body["metadata"] | {"namespace": namespace}}
            manifest = Manifest(ObjectKey.of(body), body, manifest.origin)
        result.append(manifest)
    return result


def labeled(body: dict[str, t.Any], set_id: str) -> dict[str, t.Any]:
    """A copy with the set's label and without fields that only the server may write."""
    metadata = {
        key: value
        for key, value in body["metadata"].items()
        if key not in ("managedFields", "resourceVersion", "uid", "creationTimestamp")
    }
    metadata["labels"] = {**(metadata.get("labels") or {}), PART_OF: set_id}
    return {key: value for key, value in body.items() if key != "status"} | {"metadata": metadata}


def _planned_kinds(manifests: c.Iterable[Manifest]) -> dict[tuple[str, str], Resource]:
    """Resources that the set's own CRDs will serve, by (apiVersion, kind)."""
    planned: dict[tuple[str, str], Resource] = {}
    for manifest in manifests:
        if (manifest.key.group, manifest.key.kind) != waves.CRD:
            continue
        spec = manifest.body.get("spec")
        names = spec.get("names") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(names, dict):
            continue
        for version in spec["versions"] if isinstance(spec.get("versions"), list) else ():
            if isinstance(version, dict) and version.get("served", True):
                resource = Resource(
                    str(spec.get("group")),
                    str(version.get("name")),
                    str(names.get("kind")),
                    str(names.get("plural")),
                    spec.get("scope") == "Namespaced",
                )
                planned[resource.api_version, resource.kind] = resource
    return planned


def _resource(
    client: Client, manifest: Manifest, planned: c.Mapping[tuple[str, str], Resource]
) -> tuple[Resource | None, bool]:
    """The resource, and whether the server does not have it yet."""
    try:
        return client.resource(manifest.api_version, manifest.key.kind), False
    except UnknownKind:
        return planned.get((manifest.api_version, manifest.key.kind)), True


def _namespace_fault(manifest: Manifest, resource: Resource, record_namespace: str) -> Fault | None:
    key = manifest.key
    if resource.namespaced and not key.namespace:
        return Fault(
            f"{key.short} has no namespace",
            manifest.origin,
            "its kind is namespaced",
            "set metadata.namespace, or the option namespace",
        )
    if not resource.namespaced and key.namespace:
        return Fault(
            f"{key.short} has a namespace", manifest.origin, "its kind is cluster-scoped", "remove metadata.namespace"
        )
    if key.namespace == record_namespace or ((key.group, key.kind) == waves.NAMESPACE and key.name == record_namespace):
        why = f"{record_namespace} contains the records of sets and cannot be part of a set"
        return Fault(
            f"{key.short} cannot be in a set",
            manifest.origin,
            why,
            "use another namespace, or another record_namespace",
        )
    return None
