# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight reports all machines without a cluster at once, beside the problems of the clusters. There is no control plane.

Runtime: three short runs of ansible-playbook.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.live.support import site

NOWHERE = site.cluster("/nowhere/kubeconfig")


def refused(clusters: tuple[str, ...], machines: dict[str, dict[str, dict[str, t.Any]]]) -> dict[str, list[str]]:
    """Reported problems of machines, by cluster."""
    run = site.playbook("preflight", dict.fromkeys(clusters, NOWHERE), machines=machines)
    messages = {name: "\n".join(run.failures_of(name)[-1:]) for name in clusters}
    assert all("/nowhere/kubeconfig" in text for text in messages.values()), run.stdout
    return {
        name: [line.strip() for line in text.splitlines() if "machine without a cluster" in line]
        for name, text in messages.items()
    }


def test_all_machines_belong_to_the_only_cluster() -> None:
    machines = {
        "workers": {"w1": {}, "w2": {"hwaccel_cluster": "north"}, "w3": {"hwaccel_cluster": ""}},
        "others": {"x": {"hwaccel_cluster": "moon"}},
    }
    assert refused(("north",), machines) == {"north": []}


def test_an_unknown_cluster_is_reported() -> None:
    machines = {
        "load_balancers": {"lb": {"hwaccel_cluster": "nort"}},
        "build_hosts": {"lb": {}, "builder": {"hwaccel_cluster": "north"}},
    }
    (fault,) = refused(("north",), machines)["north"]
    assert fault == (
        "lb is a machine without a cluster: its hwaccel_cluster is nort, and the clusters are north. "
        "Next: set one of these, or add the cluster to the group gpu_clusters"
    )


def test_machines_without_a_cluster_are_reported_with_several_clusters() -> None:
    """Load balancers and boot servers may belong to all clusters."""
    groups, shared = (
        ("hypervisors", "bootstrap", "control_plane", "workers", "edge_nodes", "build_hosts"),
        ("load_balancers", "boot_servers"),
    )
    machines: dict[str, dict[str, dict[str, t.Any]]] = {group: {f"m-{group}": {}} for group in (*groups, *shared)}
    machines["workers"] |= {
        "empty": {"hwaccel_cluster": ""},
        "right": {"hwaccel_cluster": "south"},
        "wrong": {"hwaccel_cluster": "moon"},
    }
    problems = refused(("north", "south"), machines)
    assert problems["north"] == problems["south"]
    assert sorted(line.split()[0] for line in problems["north"]) == [
        "empty",
        *(f"m-{group}" for group in sorted(groups)),
        "wrong",
    ]
    assert "it has no hwaccel_cluster. Next: set it to one of north, south" in "\n".join(problems["north"])
