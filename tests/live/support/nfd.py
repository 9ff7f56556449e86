# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disturbances of Node Feature Discovery in the lifecycle of a cluster, and their effect on the drivers that its labels schedule."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, CONTROLLERS, Cluster, is_ready, until

_RESTARTED = {
    "spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}}
}


def disturb(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Uids of the driver pods by node: before, after each disturbance, and after its repair."""
    drivers = {"before": _drivers(cluster)}
    for happens in (_workers_rolled_out, _master_restarted, _namespace_deleted):
        happens(cluster)
        drivers[happens.__name__.strip("_")] = _drivers(cluster)
    audit = AuditLog(cluster.sandbox.audit_log)
    repaired = cluster.run("feature_discovery")
    assert repaired.rc == 0, repaired.stdout[-6000:]
    cluster.client.forget_discovery()
    # nfd-gc handles the deletion only of nodes that it has listed before.
    until(lambda: any(map(_lists_nodes, audit.requests())), "the new nfd-gc to list the nodes")
    return drivers | {"repaired": _drivers(cluster)}


def _lists_nodes(request: Request) -> bool:
    return (request.verb, request.resource) == ("list", "nodes") and request.user.endswith(f":{CONTROLLERS}:nfd-gc")


def _workers_rolled_out(cluster: Cluster) -> None:
    """As by `kubectl rollout restart`."""
    old = _pods(cluster, AGENTS, "nfd-worker")
    daemon_sets = cluster.client.resource("apps/v1", "DaemonSet")
    cluster.client.patch(daemon_sets, "nfd-worker", AGENTS, _RESTARTED, field_manager="kubectl-rollout")
    until(lambda: _replaced(cluster, AGENTS, "nfd-worker", old), "other NFD workers on every node")


def _master_restarted(cluster: Cluster) -> None:
    old = _pods(cluster, CONTROLLERS, "nfd-master")
    _delete(cluster, CONTROLLERS, old)
    until(lambda: _replaced(cluster, CONTROLLERS, "nfd-master", old), "another nfd-master")


def _namespace_deleted(cluster: Cluster) -> None:
    """The programs are stopped first: if they outlived their rights, the audit log would show refused requests, of which this lifecycle has none."""
    client = cluster.client
    for name in ("nfd-master", "nfd-gc"):
        client.patch(
            client.resource("apps/v1", "Deployment"),
            name,
            CONTROLLERS,
            {"spec": {"replicas": 0}},
            field_manager="people",
        )
    until(
        lambda: not cluster.pods("nfd-master", "nfd-gc", namespace=CONTROLLERS).items,
        "nfd-master and nfd-gc to be deleted",
    )
    client.delete(client.resource("v1", "Namespace"), CONTROLLERS)
    old = _pods(cluster, AGENTS, "nfd-worker")
    _delete(cluster, AGENTS, old)
    until(
        lambda: _replaced(cluster, AGENTS, "nfd-worker", old) and not _exists(client, CONTROLLERS),
        f"namespace {CONTROLLERS} to be deleted, and NFD workers to be recreated",
    )


def _replaced(cluster: Cluster, namespace: str, app: str, old: dict[str, str]) -> bool:
    """Whether as many other pods exist, all of them ready."""
    pods = cluster.pods(app, namespace=namespace).items
    new = {pod["metadata"]["uid"] for pod in pods if is_ready(pod)}
    return len(new) == len(pods) == len(old) and not new & old.keys()


def _pods(cluster: Cluster, namespace: str, app: str) -> dict[str, str]:
    """Names by uid."""
    return {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in cluster.pods(app, namespace=namespace).items}


def _delete(cluster: Cluster, namespace: str, pods: dict[str, str]) -> None:
    for name in pods.values():
        cluster.client.delete(cluster.client.resource("v1", "Pod"), name, namespace)


def _drivers(cluster: Cluster) -> dict[str, str]:
    """Pods that are being deleted do not count."""
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["uid"]
        for pod in cluster.pods("nvidia-driver").items
        if "deletionTimestamp" not in pod["metadata"]
    }


def _exists(client: Client, namespace: str) -> bool:
    try:
        client.get(client.resource("v1", "Namespace"), namespace)
    except NotFound:
        return False
    return True
