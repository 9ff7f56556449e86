# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node has no pod of a DaemonSet: the field that excludes the node, and its field manager, as far as known."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import has_gpus
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet_existing import OURS
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import evidence

Obj = dict[str, t.Any]

#: Path of the pod spec in a DaemonSet.
_TEMPLATE = ("spec", "template", "spec")


class Absences:
    """Finds the causes of missing pods. It lists DaemonSets and their events once, and reads each reported node."""

    def __init__(self, client: Client, fleet: Fleet, namespace: str) -> None:
        self._client, self._fleet, self._namespace = client, fleet, namespace

    def cause(self, node: str, part: str) -> tuple[str, str]:
        """(why no pod of this part is on the node, what to do next). "" if unknown. Raises ApiError."""
        found = self._client.list(self._client.resource("v1", "Node"), field_selector=f"metadata.name={node}").items
        live = next((item for item in found if item["metadata"]["name"] == node), None)
        if live is None:
            return "", ""
        fleet, expected = self._fleet, self._fleet.expecting
        takers = expected.takers(
            part, live["metadata"].get("labels") or {}, gpus=has_gpus(fleet.nodes[node], fleet.pool(node))
        )
        there = {
            item["metadata"]["name"]: item
            for item in self._daemon_sets
            if not takers and expected.part_of(item["spec"]["template"]) == part
        }
        there |= {item["metadata"]["name"]: item for item in self._daemon_sets if item["metadata"]["name"] in takers}
        if not there:
            why = (
                f"DaemonSet {self._namespace}/{takers[0]} is missing"
                if takers
                else f"namespace {self._namespace} has no DaemonSet that creates one"
            )
            return why, "find out who deleted it, and run the playbook or role that deploys it"
        causes_found = [self._of(item, live) for item in there.values()]
        return next((one for one in causes_found if one[0]), ("", ""))

    def _of(self, daemon_set: Obj, node: Obj) -> tuple[str, str]:
        name, status = daemon_set["metadata"]["name"], daemon_set.get("status") or {}
        found = placement.obstacle(node, daemon_set["spec"]["template"])
        if found is not None:
            field, writers = ".".join((*_TEMPLATE, *found.path)), _writers(daemon_set, found.path)
            written = f", written by {' and '.join(writers)}" if writers else ""
            who = (
                f"stop {writers[0]} from changing {field} of DaemonSet {name}, and revert its change"
                if writers
                else f"correct {field} of DaemonSet {name}"
            )
            if found.path == ("tolerations",) and not writers:
                who = f"remove the taint from the node, or add a toleration to DaemonSet {name} by the role's patches"
            return (
                f"{field} of DaemonSet {self._namespace}/{name} excludes the node{written}: {found.why}",
                f"{who}; if this is intended, exclude the node",
            )
        event = evidence.newest(
            [
                one
                for one in self._events
                if (one.get("involvedObject") or {}).get("uid") == daemon_set["metadata"].get("uid")
            ]
        )
        desired, current = (int(status.get(key) or 0) for key in ("desiredNumberScheduled", "currentNumberScheduled"))
        if event and current < desired:
            return event, ""
        why = f"DaemonSet {self._namespace}/{name} selects the node, and {current} of its {desired} pods exist"
        return (
            why,
            "check what deletes its pods, and that the DaemonSet controller (kube-controller-manager) is running",
        )

    @functools.cached_property
    def _daemon_sets(self) -> list[Obj]:
        return self._client.list(self._client.resource("apps/v1", "DaemonSet"), self._namespace).items

    @functools.cached_property
    def _events(self) -> list[Obj]:
        """Warnings about DaemonSets."""
        return self._client.list(
            self._client.resource("v1", "Event"),
            self._namespace,
            field_selector="involvedObject.kind=DaemonSet,type=Warning",
        ).items


def _writers(daemon_set: Obj, path: tuple[str, ...]) -> list[str]:
    """Field managers of others that own a field of the template, or a part of it."""
    paths = tuple(f"f:{name}" for name in (*_TEMPLATE, *path))
    found = []
    for entry in fieldsets.managers_of(daemon_set):
        manager = str(entry.get("manager") or "")
        if (
            not manager.startswith(OURS)
            and not entry.get("subresource")
            and fieldsets.covers(fieldsets.parse(entry.get("fieldsV1")), paths)
        ):
            found.append(manager)
    return list(dict.fromkeys(found))
