# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes until a change is noticed in a phase in which otherwise nothing happens: docs/openshift-wait.md has these figures."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.operations.openshift_wait.install_cluster import (
    ADDRESSES,
    MASTER,
    WORKER,
    InstallCluster,
)

CHANGES: dict[str, tuple[str, c.Callable[[InstallCluster], object]]] = {
    "bootstrap": ("configmaps", lambda cluster: cluster.bootstrap("complete")),
    "requests": (
        "certificatesigningrequests",
        lambda cluster: cluster.file(s.client(WORKER, "openshift").but(usages=("any",))),
    ),
    "nodes": ("nodes", lambda cluster: cluster.join(MASTER, ADDRESSES[MASTER], ready=False)),
    "version": ("clusterversions", lambda cluster: cluster.release("Completed", Available=True)),
    "operators": ("clusteroperators", lambda cluster: cluster.operator("ingress", Available=False)),
}


def quiet(phase: str) -> InstallCluster:
    cluster = InstallCluster()
    cluster.infrastructure()
    cluster.bootstrap("complete" if phase != "bootstrap" else "progressing")
    cluster.operator("ingress", Available=True)
    cluster.release(Available=False, Progressing=True)
    cluster.up(MASTER)
    if phase != "bootstrap":
        cluster.etcd(True)
    if phase == "install":
        cluster.up(WORKER)
    return cluster


def latency(phase: str, what: str, after: float) -> float:
    """Seconds from a change, so long after the beginning, until a watch has reported it."""
    cluster = quiet(phase)
    kind, change = CHANGES[what]
    assert cluster.time is not None
    at = cluster.time.now + after
    noticed: list[float] = []
    happened: list[float] = []

    def watched(request: Request) -> None:
        assert cluster.time is not None
        mine = request.resource.plural == kind and (
            kind != "certificatesigningrequests" or "client" in str(request.selector)
        )
        if not happened and request.body["deadline"] >= at:
            happened.append(at)
            change(cluster)
            cluster.time.now = max(cluster.time.now, at if mine else request.body["deadline"])
        elif not happened or not mine:
            cluster.time.now = max(cluster.time.now, request.body["deadline"])
        if happened and mine and not noticed:
            noticed.append(cluster.time.now)

    cluster.before = [cluster.on("watch", watched)]
    cluster.slices(**{f"{phase}_timeout": after + 400.0})
    return noticed[0] - at


@pytest.mark.parametrize(
    ("phase", "what", "most"),
    [
        ("bootstrap", "bootstrap", 30),
        ("bootstrap", "requests", 30),
        ("nodes", "requests", 30),
        ("nodes", "nodes", 30),
        ("install", "version", 20),
        ("install", "operators", 20),
    ],
)
def test_a_change_is_noticed_in_time(phase: str, what: str, most: float) -> None:
    found = [latency(phase, what, 300 + 5.3 * number) for number in range(7)]
    assert max(found) <= most, found
