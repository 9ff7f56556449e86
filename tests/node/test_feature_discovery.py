# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our manifests of Node Feature Discovery with the real NFD on a real node, whose PCI devices are removed and added.

Runtime: about half a minute, most of it the interval of NFD.
"""

from __future__ import annotations

import platform

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import KubernetesNode

PREFIX = "feature.node.kubernetes.io/"
GPU = f"{PREFIX}pci-10de.present"


def of_nfd(values: dict[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (values or {}).items() if key.startswith((PREFIX, "nfd.node.kubernetes.io/"))}


def labels(cluster: Cluster, node: KubernetesNode) -> dict[str, str]:
    return of_nfd(cluster.client.get(NODE, node.machine.name)["metadata"].get("labels"))


def test_the_stage_passes(discovered: site.Run) -> None:
    assert discovered.rc == 0, discovered.stdout[-6000:]


def test_the_labels_are_those_that_the_stack_uses(cluster: Cluster, node: KubernetesNode, discovered: site.Run) -> None:
    observed = labels(cluster, node)
    assert observed.pop(f"{PREFIX}cpu-model.vendor_id") in ("Intel", "AMD")
    system = f"{PREFIX}system-os_release"
    assert observed == {
        GPU: "true",
        f"{PREFIX}kernel-version.full": platform.release(),
        f"{system}.ID": "debian",
        f"{system}.VERSION_ID": "12",
    }


def test_the_label_is_removed_and_added_with_the_device(
    cluster: Cluster, node: KubernetesNode, discovered: site.Run
) -> None:
    slots = node.machine.devices()
    for slot in slots:
        node.machine.unplug_device(slot)
    cluster.wait("the label is removed", lambda: GPU not in labels(cluster, node))
    node.set_gpus(len(slots))
    cluster.wait("the label is set again", lambda: GPU in labels(cluster, node))
