# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a cluster as plain data, so that the states before and after a teardown can be compared.

Not contained are Events (they expire), the contents of Leases (they are renewed continuously, so only their names count), of every object the
fields that the server sets (resourceVersion, managedFields, generation, uid, timestamps, status), except the names of a Node's resources, and
of a Node's taints those of the node lifecycle controller.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until

SKIPPED_KINDS = frozenset({"Event", "ComponentStatus", "Binding"})
#: The node lifecycle controller sets and removes these, depending on the health of the kubelet.
LIFECYCLE_TAINTS = "node.kubernetes.io/"
#: Kinds that Kubernetes' controllers create for our workloads, with generated names.
CREATED_BY_CONTROLLERS = ("Pod.", "ReplicaSet.", "ControllerRevision.", "Endpoints.", "EndpointSlice.", "PodTemplate.")
OWNER = "app.kubernetes.io/managed-by"
#: Records contain the uids of their members, which change when an object is recreated.
RECORDS = " hwaccel-gpu-records/"
#: Labels and annotations of Nodes that contain the time of their writing.
TIMES = ("nvidia.com/gfd.timestamp", names.PROOF)
#: Fields of a Service that the API server assigns.
ADDRESSES = ("clusterIP", "clusterIPs")
#: Objects that controllers create in each namespace, a moment after its creation.
_FILLING = (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
SERVER_FIELDS = ("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink")


def _plain(obj: dict[str, t.Any]) -> dict[str, t.Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in SERVER_FIELDS}
    if obj["kind"] == "Node":
        status = obj.get("status", {})
        return {
            "metadata": {key: metadata.get(key) for key in ("labels", "annotations")},
            "taints": [
                taint
                for taint in obj.get("spec", {}).get("taints") or []
                if not taint["key"].startswith(LIFECYCLE_TAINTS)
            ],
            "unschedulable": obj.get("spec", {}).get("unschedulable", False),
            "resources": {kind: sorted(status.get(kind, {})) for kind in ("capacity", "allocatable")},
        }
    if obj["kind"] == "Lease":
        return {"metadata": {"name": metadata["name"]}}
    return {
        key: value
        for key, value in {**obj, "metadata": metadata}.items()
        if key not in ("status", "apiVersion", "kind")
    }


def snapshot(client: Client) -> dict[str, dict[str, t.Any]]:
    """Every stored object by "Kind.group namespace/name"."""
    world: dict[str, dict[str, t.Any]] = {}
    for resource in client.all_resources():
        if resource.kind in SKIPPED_KINDS or "list" not in resource.verbs:
            continue
        for item in client.list(resource).items:
            obj = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
            name = obj["metadata"]["name"]
            world[f"{resource.kind}.{resource.group} {obj['metadata'].get('namespace', '')}/{name}"] = _plain(obj)
    return world


def await_filled(client: Client, *namespaces: str) -> None:
    """Waits for the objects that controllers create in these namespaces; without names in all of them, and for the Lease of each node.

    A comparison with an earlier snapshot would report these objects as left behind.
    """

    def lacking() -> list[str]:
        def existing(kind: str, api_version: str = "v1") -> set[tuple[str, str]]:
            items = client.list(client.resource(api_version, kind)).items
            return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items}

        spaces = namespaces or [name for _none, name in existing("Namespace")]
        expected = {(kind, space, name) for kind, name in _FILLING for space in spaces}
        observed = {(kind, *place) for kind, _name in _FILLING for place in existing(kind)}
        if not namespaces:
            expected |= {("Lease", "kube-node-lease", name) for _none, name in existing("Node")}
            observed |= {("Lease", *place) for place in existing("Lease", "coordination.k8s.io/v1")}
        return sorted(map(str, expected - observed))

    until(lambda: not lacking(), "the controllers to fill the namespaces", seen=lacking)


def ours(client: Client) -> dict[str, dict[str, t.Any]]:
    """Nodes and all objects of this collection, without what differs between two runs with the same result."""
    client.forget_discovery()
    objects = {}
    for key, obj in snapshot(client).items():
        labels = (obj.get("metadata") or {}).get("labels") or {}
        if key.startswith("Node. "):
            objects[key] = obj | {"metadata": {field: _timeless(values) for field, values in obj["metadata"].items()}}
        elif key.startswith("Service. ") and OWNER in labels:
            objects[key] = obj | {"spec": {name: value for name, value in obj["spec"].items() if name not in ADDRESSES}}
        elif OWNER in labels and RECORDS not in key and not key.startswith(CREATED_BY_CONTROLLERS):
            objects[key] = obj
    return objects


def _timeless(values: dict[str, str] | None) -> dict[str, str]:
    """All names, and the values that do not differ between two runs with the same result."""
    return {name: "" if name in TIMES else value for name, value in (values or {}).items()}


def differences(before: dict[str, dict[str, t.Any]], after: dict[str, dict[str, t.Any]]) -> list[str]:
    """Readable lines, [] if the two are equal."""
    lines = [f"left behind: {key}" for key in sorted(after.keys() - before.keys())]
    lines += [f"gone: {key}" for key in sorted(before.keys() - after.keys())]
    for key in sorted(before.keys() & after.keys()):
        if before[key] != after[key]:
            fields = sorted(
                name for name in before[key].keys() | after[key].keys() if before[key].get(name) != after[key].get(name)
            )
            lines += [
                f"changed: {key} {field}: {before[key].get(field)!r} -> {after[key].get(field)!r}" for field in fields
            ]
    return lines


def await_alike(before: dict[str, dict[str, t.Any]], now: t.Callable[[], dict[str, dict[str, t.Any]]]) -> None:
    """Waits until there are no differences, because programs on nodes and controllers also write after the end of a run."""

    def unlike() -> str:
        return "\n".join(differences(before, now()))

    until(lambda: not unlike(), "the cluster to reach the expected state", seen=unlike)
