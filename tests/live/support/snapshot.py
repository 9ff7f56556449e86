# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster holds, as plain data, so that before and after a teardown can be compared by program.

Left out, by name: Events (they expire by themselves), Pods of other owners' controllers are kept, kube-node-lease and
kube-system's component Leases (renewed all the time: only their names count), and of every object the fields that the
server writes by itself (resourceVersion, managedFields, generation, uid, timestamps, status), except a Node's resource keys; and
of a Node's taints those that the node lifecycle controller writes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until

LEFT_OUT_KINDS = frozenset({"Event", "ComponentStatus", "Binding"})
#: Written and taken away by the node lifecycle controller, as the kubelet's health comes and goes.
LIFECYCLE_TAINTS = "node.kubernetes.io/"
#: Of our workloads, made by Kubernetes' controllers with names of their own.
MADE_BY_CONTROLLERS = ("Pod.", "ReplicaSet.", "ControllerRevision.", "Endpoints.", "EndpointSlice.", "PodTemplate.")
OWNER = "app.kubernetes.io/managed-by"
#: Records name their members by uid, which is another in each life of an object.
RECORDS = " hwaccel-gpu-records/"
#: Labels and annotations of Nodes that say when they were written.
TIMES = ("nvidia.com/gfd.timestamp", names.PROOF)
#: Of a Service, what the API server hands out.
ADDRESSES = ("clusterIP", "clusterIPs")
#: What controllers put into each namespace, a moment after it was made.
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
        if resource.kind in LEFT_OUT_KINDS or "list" not in resource.verbs:
            continue
        for item in client.list(resource).items:
            obj = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
            name = obj["metadata"]["name"]
            world[f"{resource.kind}.{resource.group} {obj['metadata'].get('namespace', '')}/{name}"] = _plain(obj)
    return world


def await_filled(client: Client, *namespaces: str) -> None:
    """Until these have what controllers put into each; without names until all have, and each node its Lease: all that comes to a new cluster by itself.

    What is compared with a snapshot from before that would show it as left behind.
    """

    def lacking() -> list[str]:
        def there(kind: str, api_version: str = "v1") -> set[tuple[str, str]]:
            items = client.list(client.resource(api_version, kind)).items
            return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items}

        spaces = namespaces or [name for _none, name in there("Namespace")]
        wanted = {(kind, space, name) for kind, name in _FILLING for space in spaces}
        found = {(kind, *place) for kind, _name in _FILLING for place in there(kind)}
        if not namespaces:
            wanted |= {("Lease", "kube-node-lease", name) for _none, name in there("Node")}
            found |= {("Lease", *place) for place in there("Lease", "coordination.k8s.io/v1")}
        return sorted(map(str, wanted - found))

    until(lambda: not lacking(), "the controllers to fill the namespaces", seen=lacking)


def ours(client: Client) -> dict[str, dict[str, t.Any]]:
    """Nodes, and all that this collection has made, as two runs that ended alike have them alike."""
    client.forget_discovery()
    found = {}
    for key, obj in snapshot(client).items():
        labels = (obj.get("metadata") or {}).get("labels") or {}
        if key.startswith("Node. "):
            found[key] = obj | {"metadata": {field: _timeless(values) for field, values in obj["metadata"].items()}}
        elif key.startswith("Service. ") and OWNER in labels:
            found[key] = obj | {"spec": {name: value for name, value in obj["spec"].items() if name not in ADDRESSES}}
        elif OWNER in labels and RECORDS not in key and not key.startswith(MADE_BY_CONTROLLERS):
            found[key] = obj
    return found


def _timeless(values: dict[str, str] | None) -> dict[str, str]:
    """The names of all, and the contents of those that two runs give alike."""
    return {name: "" if name in TIMES else value for name, value in (values or {}).items()}


def differences(before: dict[str, dict[str, t.Any]], after: dict[str, dict[str, t.Any]]) -> list[str]:
    """Readable lines, [] where the two are equal."""
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
    """Until there are no differences: what programs on nodes and controllers still write comes after the run that is looked at."""

    def unlike() -> str:
        return "\n".join(differences(before, now()))

    until(lambda: not unlike(), "the cluster to be as it is to be", seen=unlike)
