# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed namespaces of GPU components."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet_existing import sets_of

_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
_CONTENTS = {
    "config_maps": Resource("", "v1", "ConfigMap", "configmaps", True),
    "secrets": Resource("", "v1", "Secret", "secrets", True),
}
_ENFORCED = "pod-security.kubernetes.io/enforce"

Row = dict[str, t.Any]


def namespaces(client: Client, names: c.Iterable[str]) -> list[Row]:
    """Rows in the format that `node_info` returns as `namespaces`. Those that do not exist, are terminating, or may not be read are omitted."""
    found = (_metadata(client, name) for name in sorted(set(names)))
    return [
        _row(metadata) | _contents(client, metadata["name"])
        for metadata in found
        if metadata and not metadata.get("deletionTimestamp")
    ]


def _metadata(client: Client, name: str) -> dict[str, t.Any]:
    try:
        return dict(client.get(_NAMESPACE, name, metadata_only=True)["metadata"])
    except (NotFound, Forbidden):
        return {}


def _row(metadata: dict[str, t.Any]) -> Row:
    made_by = next(iter(sets_of({"metadata": metadata})), "")
    return {"name": metadata["name"], "set": made_by, "pod_security": (metadata.get("labels") or {}).get(_ENFORCED, "")}


def _contents(client: Client, namespace: str) -> Row:
    """Names of objects that pods may reference, None if the run may not list them. Metadata only: no value of a Secret is read."""
    found: Row = {}
    for key, resource in _CONTENTS.items():
        try:
            found[key] = sorted(
                item["metadata"]["name"]
                for page in client.pages(resource, namespace, metadata_only=True)
                for item in page.items
            )
        except Forbidden:
            found[key] = None
    return found
