# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver DaemonSets of this collection in a cluster, and the nodes of their pods.

The role keeps them as long as they provide the driver of a node.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet_existing import sets_of

_DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
_POD = Resource("", "v1", "Pod", "pods", True)
_SELECTOR = f"app.kubernetes.io/managed-by=hwaccel.gpu,{names.DESIRED_DRIVER_VERSION_LABEL}"
#: Maximum number of nodes that are named. All are counted.
_NAMED = 5

Row = dict[str, t.Any]


def daemon_sets(client: Client) -> list[Row]:
    """Rows in the format that `node_info` returns as `driver_daemon_sets`. Pods are only read if there is one."""
    rows = {
        (row["namespace"], row["name"]): row
        for page in client.pages(_DAEMON_SET, label_selector=_SELECTOR)
        for row in map(_row, page.items)
        if row
    }
    nodes: dict[tuple[str, str], set[str]] = {key: set() for key in rows}
    for namespace in sorted({namespace for namespace, _name in rows}):
        for page in client.pages(_POD, namespace, label_selector=_SELECTOR):
            while page.items:
                # Released one by one, like nodes.
                pod = reduce_pod(page.items.pop())
                if (namespace, pod.owner) in nodes and _has_begun(pod.containers):
                    nodes[namespace, pod.owner].add(pod.node)
    return [
        row | {"running": len(nodes[key]), "nodes": sorted(nodes[key])[:_NAMED]} for key, row in sorted(rows.items())
    ]


def _row(obj: dict[str, t.Any]) -> Row | None:
    """None for objects that only have the collection's labels, which can be copied, and for DaemonSets that only report that there is no driver."""
    metadata, spec = obj["metadata"], obj["spec"]
    labels, template = metadata.get("labels") or {}, spec["template"]
    container = template["spec"]["containers"][0]
    if not sets_of(obj) or not (container.get("securityContext") or {}).get("privileged"):
        return None
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "pool": labels.get(names.DRIVER_POOL_LABEL, ""),
        "class": (spec["selector"].get("matchLabels") or {}).get(names.DRIVER_CLASS_LABEL, ""),
        "version": labels[names.DESIRED_DRIVER_VERSION_LABEL],
        "kernel": (template["metadata"].get("labels") or {}).get(names.DRIVER_KERNEL_LABEL, ""),
        "image": container["image"],
        "node_affinity": (template["spec"].get("affinity") or {}).get("nodeAffinity") or {},
    }


def _has_begun(containers: c.Sequence[t.Any]) -> bool:
    """Whether the driver was ever started in this pod. A pod whose image cannot be pulled provides no driver."""
    return any(
        one.state in ("running", "terminated") or one.restarts or one.last_exit is not None for one in containers
    )
