# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before site and after teardown a cluster is the same: every stored object, and of nodes labels, annotations, taints and resource keys.

Left out, by name: what support/snapshot.py names, and on nodes the resource keys of device plugins that are gone. The kubelet keeps
them, at 0, in its own checkpoint, and the API offers no way to take them back.

Runtime: none of its own; it reads what `life` left.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.tests.live.support.life import Life
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import until


def test_site_leaves_what_a_teardown_has_to_take(life: Life) -> None:
    assert [name for one in life.done.summary.values() for name in one["failed_nodes"]] == ["bad-0"], life.done.stdout[
        -6000:
    ]
    for part in ("hwaccel.gpu/quarantine", "nvidia.com/gpu.deploy.", "DaemonSet.apps"):
        assert any(part in line for line in life.between), life.between


def test_nothing_is_left_and_nothing_is_missing(life: Life) -> None:
    assert life.gone.rc == 0, life.gone.stdout[-6000:]
    assert life.gone.changed() > 0
    uid = life.client.get(life.client.resource("v1", "Namespace"), "kube-system")["metadata"]["uid"]
    assert uid in life.gone.stdout, "which cluster it was"
    until(lambda: not life.after(), "controllers to clean up", seen=life.after)
    for item in life.client.list(life.client.resource("v1", "Node")).items:
        assert resources.total(schedulable.observed(reduce_node(item, []))) == 0


def test_a_second_teardown_changes_nothing(life: Life) -> None:
    assert (life.again.rc, life.again.changed()) == (0, 0), life.again.stdout[-6000:]
