# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lifecycle of a cluster from before site to after teardown, with disturbances of its nodes, for all tests that examine what remains of it.

One node fails, one joins late and leaves, one reboots, pods are replaced, nodes have the GPU Operator's labels that switch its components,
and Node Feature Discovery is rolled out again, restarted and deleted.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.tests.live.support import nfd, rights, site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import (
    AGENTS,
    CONTROLLERS,
    GPU,
    Cluster,
    is_ready,
    until,
)
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_filled, differences, snapshot

NAMESPACES = (AGENTS, CONTROLLERS)
WAIT = {"hwaccel_wait_timeout": 240, "hwaccel_max_failed": "40%"}
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {"name": "gpu", "count": 2, "gpu": GPU},
        {"name": "bad", "count": 1, "gpu": GPU, "faults": ["driver_load_failure"]},
        {
            "name": "cpu",
            "count": 1,
            "labels": {"team": "a"},
            "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
        },
    ],
}
_LATE = {"name": "late", "count": 1, "gpu": GPU}
#: Pods that are clients of the driver, by their label app.
_CLIENTS = (
    "gpu-feature-discovery",
    "nvidia-container-toolkit-daemonset",
    "nvidia-device-plugin-daemonset",
    "nvidia-operator-validator",
)

World = dict[str, dict[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class Lifecycle:
    """before: all objects before site. between: what site changed. deployed, removed, again: the runs of site, of teardown, and of teardown again.

    granted: rights of our ServiceAccounts, with those of the teardown. audit: the audit log since before site.
    drivers: uids of the driver pods by node, before and after each disturbance of NFD.
    """

    client: Client
    before: World
    between: list[str]
    deployed: site.Run
    removed: site.Run
    again: site.Run
    granted: frozenset[rights.Right]
    audit: AuditLog
    drivers: dict[str, dict[str, str]]

    def left(self) -> list[str]:
        """Present differences from the state before site."""
        return differences(self.before, plain(self.client))

    def requests(self) -> list[Request]:
        """Requests of our ServiceAccounts."""
        return rights.requests_of(self.audit, NAMESPACES)


def plain(client: Client) -> World:
    """All objects, without the resource names of device plugins: a kubelet keeps these in its checkpoint, and no API can remove them."""
    world = snapshot(client)
    for key, value in world.items():
        if key.startswith("Node. "):
            value["resources"] = {
                kind: [name for name in names if not name.startswith("nvidia.com/")]
                for kind, names in value["resources"].items()
            }
    return world


def run_lifecycle(make_sandbox: c.Callable[..., Sandbox]) -> Lifecycle:
    cluster = Cluster(make_sandbox(FLEET), **WAIT, hwaccel_stages=site.ALL)
    client = cluster.client
    _create_existing_objects(client)
    await_filled(client)
    before, audit = plain(client), AuditLog(cluster.sandbox.audit_log)
    deployed = cluster.run("site")
    client.forget_discovery()
    between = differences(before, plain(client))
    drivers = _disturb(cluster)
    book = rights.RoleBook(client)
    removed, again = cluster.run("teardown"), cluster.run("teardown")
    client.forget_discovery()
    return Lifecycle(client, before, between, deployed, removed, again, book.granted(NAMESPACES), audit, drivers)


def _create_existing_objects(client: Client) -> None:
    """Objects and labels that exist before site, and that a careless teardown would delete."""
    node = client.resource("v1", "Node")
    # These labels are left by the GPU Operator. Because of the last two, the driver manager looks for clients in all namespaces.
    switches = {"dcgm": "false", "client": "true", "dra-driver": "true"}
    labels = {"nvidia.com/site": "x"} | {f"nvidia.com/gpu.deploy.{name}": value for name, value in switches.items()}
    client.patch(
        node,
        "gpu-0",
        "",
        {"metadata": {"labels": labels, "annotations": {"example.com/note": "mine"}}},
        field_manager="people",
    )
    client.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}, client.resource("v1", "Namespace")
    )
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}
    client.create(runtime, client.resource("node.k8s.io/v1", "RuntimeClass"))


def _disturb(cluster: Cluster) -> dict[str, dict[str, str]]:
    client = cluster.client
    cluster.sandbox.set_fleet({**FLEET, "pools": [*FLEET["pools"], _LATE]})
    cluster.sandbox.reboot("gpu-1")
    until(
        lambda: cluster.gpus("late-0") == cluster.gpus("gpu-1") == 8,
        "the late and the rebooted node to offer their GPUs",
    )
    with _await_replaced(cluster, "gpu-1", "nfd-worker", "gpu-feature-discovery"):
        _delete(cluster, "gpu-1", "nfd-worker", "gpu-feature-discovery")
    # The driver manager of the new pod evicts the clients of the driver, unloads the driver and lets the clients return.
    with _await_replaced(cluster, "gpu-0", "nvidia-driver", *_CLIENTS):
        _delete(cluster, "gpu-0", "nvidia-driver")
    until(lambda: cluster.gpus("gpu-0") == 8, "gpu-0 to offer its GPUs with another driver pod")
    drivers = nfd.disturb(cluster)
    cluster.sandbox.set_fleet(FLEET)
    features = client.resource("nfd.k8s-sigs.io/v1alpha1", "NodeFeature")
    until(
        lambda: not [item for item in client.list(features).items if "late-0" in item["metadata"]["name"]],
        "the NodeFeature of late-0 to be deleted",
    )
    return drivers


def _delete(cluster: Cluster, node: str, *apps: str) -> None:
    for pod in cluster.pods(*apps, node=node).items:
        cluster.client.delete(cluster.client.resource("v1", "Pod"), pod["metadata"]["name"], AGENTS)


@contextlib.contextmanager
def _await_replaced(cluster: Cluster, node: str, *apps: str) -> c.Iterator[None]:
    """After the body, each app has one other pod on the node, and all of them are ready."""
    old = {pod["metadata"]["uid"] for pod in cluster.pods(*apps, node=node).items}
    yield

    def states() -> list[tuple[str, bool, bool]]:
        return [
            (pod["metadata"]["labels"]["app"], pod["metadata"]["uid"] not in old, is_ready(pod))
            for pod in cluster.pods(*apps, node=node).items
        ]

    until(
        lambda: sorted(states()) == [(app, True, True) for app in sorted(apps)],
        f"{', '.join(apps)} on {node} to be replaced",
        seen=states,
    )
