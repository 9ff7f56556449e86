# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A teardown on a real node, and the states before and after it: objects of the cluster, files of the node."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses

from ansible_collections.hwaccel.gpu.tests.live.support import life, rights, site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import differences
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode

#: Folders into which the stack's programs write on a machine, without the state of kubelet and containerd.
_FOLDERS = (
    "/etc/cdi",
    "/etc/containerd",
    "/lib/firmware",
    "/run/mellanox",
    "/run/nvidia*",
    "/usr/local/nvidia",
    "/var/log/nvidia*",
    "/var/run/cdi",
)


@dataclasses.dataclass(frozen=True)
class Traces:
    """objects: those of the cluster. files: digests of the node's files by path."""

    objects: life.World
    files: dict[str, str]


def traces(cluster: Cluster, node: KubernetesNode) -> Traces:
    cluster.client.forget_discovery()
    return Traces(life.plain(cluster.client), files(node))


def files(node: KubernetesNode) -> dict[str, str]:
    """Digests of files on the disk and in /run of the machine, without other file systems below."""
    script = f"for folder in {' '.join(_FOLDERS)}; do find $folder -xdev -type f -exec sha256sum {{}} + 2>/dev/null || :; done"
    rows = (line.split(maxsplit=1) for line in node.machine.sh(script).splitlines())
    return {path: digest for digest, path in rows}


@dataclasses.dataclass(frozen=True)
class Teardown:
    """run: the teardown. granted: rights of our ServiceAccounts up to its end, with its own. log: the audit log since the start of the cluster."""

    cluster: Cluster
    node: KubernetesNode
    before: Traces
    run: site.Run
    granted: frozenset[rights.Right]
    log: AuditLog

    def left_behind(self) -> list[str]:
        """Differences of objects from the state before the first run, without the objects of nodes, which have the nodes' names."""
        self.cluster.client.forget_discovery()
        name = self.node.machine.name
        others = {*self.cluster.others(name), name}

        def without_nodes(objects: life.World) -> life.World:
            return {
                key: value
                for key, value in objects.items()
                if key == f"Node. /{name}" or key.rpartition("/")[2] not in others
            }

        return differences(without_nodes(self.before.objects), without_nodes(life.plain(self.cluster.client)))

    def files_left(self) -> dict[str, str]:
        """Paths of the node's files that are new, deleted or different."""
        now = files(self.node)
        return {
            path: now.get(path, "deleted")
            for path in now.keys() | self.before.files.keys()
            if now.get(path) != self.before.files.get(path)
        }

    def requests(self) -> list[Request]:
        """Requests of our ServiceAccounts, from real and from simulated nodes."""
        return rights.requests_of(self.log, life.NAMESPACES)


def tear_down(cluster: Cluster, node: KubernetesNode, before: Traces, clusters: site.Clusters) -> Teardown:
    book, log = rights.RoleBook(cluster.client), AuditLog(cluster.sandbox.audit_log)
    log.offset = 0
    with cordoned(cluster, cluster.others(node.machine.name)):
        run = site.playbook("teardown", clusters)
    cluster.client.forget_discovery()
    return Teardown(cluster, node, before, run, book.granted(life.NAMESPACES), log)


@contextlib.contextmanager
def cordoned(cluster: Cluster, names: c.Sequence[str]) -> c.Iterator[None]:
    """No Job can be scheduled on these nodes, so that the real program on the real node removes the labels."""
    for name in names:
        cluster.client.patch(NODE, name, "", {"spec": {"unschedulable": True}})
    yield
    for name in names:
        cluster.client.patch(NODE, name, "", {"spec": {"unschedulable": None}})


def marks(cluster: Cluster, prefixes: c.Sequence[str]) -> dict[str, list[str]]:
    """Labels, annotations, taints and allocatable resources with these prefixes, by node. The kubelet keeps names of resources with 0 devices."""
    result = {}
    for item in cluster.client.list(NODE).items:
        metadata, status = item["metadata"], item.get("status", {})
        keys = [
            *(metadata.get("labels") or ()),
            *(metadata.get("annotations") or ()),
            *(taint["key"] for taint in item["spec"].get("taints") or ()),
        ]
        keys += [f"{name}={count}" for name, count in status.get("allocatable", {}).items() if count != "0"]
        if these := sorted(key for key in keys if key.startswith(tuple(prefixes))):
            result[metadata["name"]] = these
    return result
