# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before site and after teardown a cluster is the same: every stored object, and of nodes labels, annotations, taints and resource keys.

Left out, by name: what support/snapshot.py names, and on nodes the resource keys of device plugins that are gone. The kubelet keeps
them, at 0, in its own checkpoint, and the API offers no way to take them back.

Runtime: one run of site on four nodes, two of teardown.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import resources
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import differences, snapshot

WAIT = {"hwaccel_wait_timeout": 90, "hwaccel_max_failed": "40%"}
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {"name": "gpu", "count": 2, "gpu": GPU},
        {"name": "bad", "count": 1, "gpu": GPU, "faults": ["driver_load_failure"]},
        {"name": "cpu", "count": 1, "labels": {"team": "a"}, "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]},
    ],
}


def _of_users(client: Client) -> None:
    """Things that were there before, one of them in the way of a careless removal."""
    node = client.resource("v1", "Node")
    client.patch(node, "gpu-0", "", {"metadata": {"labels": {"nvidia.com/site": "x"}, "annotations": {"example.com/note": "mine"}}}, field_manager="people")
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}, client.resource("v1", "Namespace"))
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}
    client.create(runtime, client.resource("node.k8s.io/v1", "RuntimeClass"))


def _plain(client: Client) -> dict[str, dict[str, t.Any]]:
    world = snapshot(client)
    for key, value in world.items():
        if key.startswith("Node. "):
            value["resources"] = {kind: [name for name in names if not name.startswith("nvidia.com/")] for kind, names in value["resources"].items()}
    return world


def test_nothing_is_left_and_nothing_is_missing(make_sandbox: t.Any) -> None:
    made = make_sandbox(FLEET)
    client = connect({"kubeconfig": made.kubeconfig})
    _of_users(client)
    before = _plain(client)
    clusters = {"one": site.cluster(made.kubeconfig, **WAIT)}
    done = site.playbook("site", clusters)
    assert [name for one in done.summary.values() for name in one["failed_nodes"]] == ["bad-0"], done.stdout[-6000:]
    between = differences(before, _plain(client))
    assert any("hwaccel.gpu/quarantine" in line for line in between), between
    assert any("DaemonSet.apps" in line for line in between)

    gone = site.playbook("teardown", clusters)
    assert gone.rc == 0, gone.stdout[-6000:]
    assert gone.changed() > 0
    client.forget_discovery()
    until(lambda: not differences(before, _plain(client)), "controllers to clean up", 20, lambda: differences(before, _plain(client)))
    for item in client.list(client.resource("v1", "Node")).items:
        assert resources.total(resources.observed(reduce_node(item, []))) == 0

    again = site.playbook("teardown", clusters)
    assert again.rc == 0, again.stdout[-6000:]
    assert differences(before, _plain(client)) == []
    made.close()
