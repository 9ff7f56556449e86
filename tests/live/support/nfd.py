# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to Node Feature Discovery in the life of a cluster, and what it does to the drivers that its labels placed."""

from __future__ import annotations

import pathlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, CONTROLLERS, until

_RESTARTED = {
    "spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}}
}


def disturbed(client: Client, clusters: site.Clusters, log: str | pathlib.Path) -> dict[str, dict[str, str]]:
    """Uids of the driver pods by node: before, and after each disturbance. log: the API server's audit log."""
    found = {"before": _drivers(client)}
    for happens in (_workers_rolled, _master_restarted, _namespace_lost):
        happens(client)
        found[happens.__name__.strip("_")] = _drivers(client)
    audit = AuditLog(log)
    mended = site.playbook("feature_discovery", clusters)
    assert mended.rc == 0, mended.stdout[-6000:]
    client.forget_discovery()
    # nfd-gc only handles the deletion of nodes that it has listed before.
    until(lambda: any(map(_lists_nodes, audit.requests())), "the new nfd-gc to list the nodes")
    return found | {"mended": _drivers(client)}


def _lists_nodes(request: Request) -> bool:
    return (request.verb, request.resource) == ("list", "nodes") and request.user.endswith(f":{CONTROLLERS}:nfd-gc")


def _workers_rolled(client: Client) -> None:
    """As `kubectl rollout restart` does it."""
    old = _pods(client, AGENTS, "nfd-worker")
    client.patch(
        client.resource("apps/v1", "DaemonSet"), "nfd-worker", AGENTS, _RESTARTED, field_manager="kubectl-rollout"
    )
    until(lambda: _replaced(client, AGENTS, "nfd-worker", old), "other NFD workers on every node")


def _master_restarted(client: Client) -> None:
    old = _pods(client, CONTROLLERS, "nfd-master")
    for name in old.values():
        client.delete(client.resource("v1", "Pod"), name, CONTROLLERS)
    until(lambda: _replaced(client, CONTROLLERS, "nfd-master", old), "another nfd-master")


def _namespace_lost(client: Client) -> None:
    """Without its programs first: one that outlives its ServiceAccount's rights is refused things, which no cluster's life should show."""
    for name in ("nfd-master", "nfd-gc"):
        client.patch(
            client.resource("apps/v1", "Deployment"),
            name,
            CONTROLLERS,
            {"spec": {"replicas": 0}},
            field_manager="people",
        )
    until(
        lambda: not _pods(client, CONTROLLERS, "nfd-master") and not _pods(client, CONTROLLERS, "nfd-gc"),
        "nfd-master and nfd-gc to go",
    )
    client.delete(client.resource("v1", "Namespace"), CONTROLLERS)
    old = _pods(client, AGENTS, "nfd-worker")
    for name in old.values():
        client.delete(client.resource("v1", "Pod"), name, AGENTS)
    until(
        lambda: _replaced(client, AGENTS, "nfd-worker", old) and not _there(client, CONTROLLERS),
        f"namespace {CONTROLLERS} to go, and NFD workers to come",
    )


def _replaced(client: Client, namespace: str, app: str, old: dict[str, str]) -> bool:
    """By as many, all ready."""
    now = _pods(client, namespace, app, ready=True)
    return len(now) == len(_pods(client, namespace, app)) == len(old) and not now.keys() & old.keys()


def _pods(client: Client, namespace: str, app: str, *, ready: bool = False) -> dict[str, str]:
    """Names by uid."""
    items = client.list(client.resource("v1", "Pod"), namespace, label_selector=f"app={app}").items
    return {
        item["metadata"]["uid"]: item["metadata"]["name"]
        for item in items
        if not ready
        or any((one["type"], one["status"]) == ("Ready", "True") for one in item["status"].get("conditions") or [])
    }


def _drivers(client: Client) -> dict[str, str]:
    """Those that stay: one that is being deleted is gone."""
    items = client.list(client.resource("v1", "Pod"), AGENTS, label_selector="app=nvidia-driver").items
    return {
        item["spec"]["nodeName"]: item["metadata"]["uid"]
        for item in items
        if "deletionTimestamp" not in item["metadata"]
    }


def _there(client: Client, namespace: str) -> bool:
    try:
        client.get(client.resource("v1", "Namespace"), namespace)
    except NotFound:
        return False
    return True
