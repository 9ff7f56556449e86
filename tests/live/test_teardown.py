# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before site and after teardown a cluster is the same: every stored object, and of nodes labels, annotations, taints and names of resources.

Exceptions are those of support/snapshot.py, and on nodes the resources of removed device plugins. The kubelet keeps
them, with 0 devices, in its checkpoint, and no API can remove them.

Runtime: none; it reads the results of `lifecycle`.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of, until
from ansible_collections.hwaccel.gpu.tests.live.support.life import Lifecycle


def test_site_changes_what_a_teardown_has_to_restore(lifecycle: Lifecycle) -> None:
    assert [name for one in lifecycle.deployed.summary.values() for name in one["failed_nodes"]] == ["bad-0"], (
        lifecycle.deployed.stdout[-6000:]
    )
    for part in ("hwaccel.gpu/quarantine", "nvidia.com/gpu.deploy.", "DaemonSet.apps"):
        assert any(part in line for line in lifecycle.between), lifecycle.between


def test_nothing_is_left_behind_and_nothing_is_missing(lifecycle: Lifecycle) -> None:
    assert lifecycle.removed.rc == 0, lifecycle.removed.stdout[-6000:]
    assert lifecycle.removed.changed() > 0
    uid = lifecycle.client.get(lifecycle.client.resource("v1", "Namespace"), "kube-system")["metadata"]["uid"]
    assert uid in lifecycle.removed.stdout, "the output identifies the cluster"
    until(lambda: not lifecycle.left(), "controllers to clean up", seen=lifecycle.left)
    for node in lifecycle.client.list(lifecycle.client.resource("v1", "Node")).items:
        assert gpus_of(node) == 0


def test_a_second_teardown_changes_nothing(lifecycle: Lifecycle) -> None:
    assert (lifecycle.again.rc, lifecycle.again.changed()) == (0, 0), lifecycle.again.stdout[-6000:]
