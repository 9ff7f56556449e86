# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cluster from before site to after teardown, with what happens to nodes in between, for all tests that ask what a whole life leaves.

A node fails, a late one joins and leaves, one reboots, its pods are replaced, people change its driver by the GPU Operator's switches,
and Node Feature Discovery is rolled, restarted and lost.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.tests.live.support import nfd, rights, site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog, Request
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, CONTROLLERS, GPU, until
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
#: Pods that use the driver, by their label app.
_CLIENTS = (
    "gpu-feature-discovery",
    "nvidia-container-toolkit-daemonset",
    "nvidia-device-plugin-daemonset",
    "nvidia-operator-validator",
)

World = dict[str, dict[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class Life:
    """before: all objects before site. between: what site changed. done, gone, again: site, teardown, teardown again.

    granted: rights of our ServiceAccounts, those of the teardown included. audit: the log from before site on.
    drivers: uids of the driver pods by node, before and after each thing that happened to NFD.
    """

    client: Client
    before: World
    between: list[str]
    done: site.Run
    gone: site.Run
    again: site.Run
    granted: frozenset[rights.Right]
    audit: AuditLog
    drivers: dict[str, dict[str, str]]

    def after(self) -> list[str]:
        """Differences to what was there before, as it is now."""
        return differences(self.before, plain(self.client))

    def requests(self) -> list[Request]:
        """Of our ServiceAccounts."""
        return rights.requests_of(self.audit, NAMESPACES)


def plain(client: Client) -> World:
    """All objects, without the resource keys of device plugins: a kubelet keeps those in its own checkpoint, and no API takes them back."""
    world = snapshot(client)
    for key, value in world.items():
        if key.startswith("Node. "):
            value["resources"] = {
                kind: [name for name in names if not name.startswith("nvidia.com/")]
                for kind, names in value["resources"].items()
            }
    return world


def lived(make_sandbox: c.Callable[..., Sandbox]) -> Life:
    made = make_sandbox(FLEET)
    client = connect({"kubeconfig": made.kubeconfig})
    _of_users(client)
    await_filled(client)
    before, audit = plain(client), AuditLog(made.audit_log)
    clusters = {"one": site.cluster(made.kubeconfig, **WAIT, hwaccel_stages=site.ALL)}
    done = site.playbook("site", clusters)
    client.forget_discovery()
    between = differences(before, plain(client))
    drivers = _happen(made, client, clusters)
    book = rights.RoleBook(client)
    gone, again = site.playbook("teardown", clusters), site.playbook("teardown", clusters)
    client.forget_discovery()
    return Life(client, before, between, done, gone, again, book.granted(NAMESPACES), audit, drivers)


def _of_users(client: Client) -> None:
    """Things that were there before, some of them in the way of a careless removal."""
    node = client.resource("v1", "Node")
    # What the GPU Operator leaves on nodes: with the last two, the driver manager looks for clients in all namespaces.
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


def _happen(made: Sandbox, client: Client, clusters: site.Clusters) -> dict[str, dict[str, str]]:
    made.set_fleet({**FLEET, "pools": [*FLEET["pools"], _LATE]})
    made.reboot("gpu-1")
    until(
        lambda: _gpus(client, "late-0") == _gpus(client, "gpu-1") == 8,
        "the late and the rebooted node to offer their GPUs",
    )
    with _replaced(client, "gpu-1", "nfd-worker", "gpu-feature-discovery"):
        _delete(client, "gpu-1", "nfd-worker", "gpu-feature-discovery")
    # The driver manager of the new pod makes the clients leave, unloads the driver and lets them come back.
    with _replaced(client, "gpu-0", "nvidia-driver", *_CLIENTS):
        _delete(client, "gpu-0", "nvidia-driver")
    until(lambda: _gpus(client, "gpu-0") == 8, "gpu-0 to offer its GPUs with another driver pod")
    drivers = nfd.disturbed(client, clusters, made.audit_log)
    made.set_fleet(FLEET)
    features = client.resource("nfd.k8s-sigs.io/v1alpha1", "NodeFeature")
    until(
        lambda: not [item for item in client.list(features).items if "late-0" in item["metadata"]["name"]],
        "what was found of late-0 to go",
    )
    return drivers


def _gpus(client: Client, node: str) -> int:
    return resources.total(schedulable.observed(reduce_node(client.get(client.resource("v1", "Node"), node), [])))


def _pods(client: Client, node: str, apps: c.Sequence[str]) -> dict[str, dict[str, t.Any]]:
    """By uid."""
    items = client.list(
        client.resource("v1", "Pod"),
        AGENTS,
        label_selector=f"app in ({','.join(apps)})",
        field_selector=f"spec.nodeName={node}",
    ).items
    return {item["metadata"]["uid"]: item for item in items}


def _delete(client: Client, node: str, *apps: str) -> None:
    for item in _pods(client, node, apps).values():
        client.delete(client.resource("v1", "Pod"), item["metadata"]["name"], AGENTS)


@contextlib.contextmanager
def _replaced(client: Client, node: str, *apps: str) -> c.Iterator[None]:
    """What happens inside leads to other pods in the place of these, all ready."""
    old = _pods(client, node, apps).keys()
    yield

    def states() -> list[tuple[str, bool, bool]]:
        found = _pods(client, node, apps)
        ready = {
            uid
            for uid, item in found.items()
            for one in item["status"].get("conditions", [])
            if (one["type"], one["status"]) == ("Ready", "True")
        }
        return [(item["metadata"]["labels"]["app"], uid not in old, uid in ready) for uid, item in found.items()]

    until(
        lambda: sorted(states()) == [(app, True, True) for app in sorted(apps)],
        f"{', '.join(apps)} on {node} to be replaced",
        seen=states,
    )
