# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps running drivers: their DaemonSets are kept with their current nodes, which are excluded from the others.

The DaemonSet controller deletes a pod as soon as its node no longer matches the DaemonSet's affinity, regardless of the update strategy
(kubernetes 1.36, pkg/controller/daemon/daemon_controller.go, podsShouldBeOnNode). So a DaemonSet that has started a driver never loses a node to
another one of the same version; and to one of another version only if that is meant for the node and the node has its label. Every node is selected by
one at most.
"""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import node_sets
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.driver_daemonsets import DriverDaemonSets
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import DriverInCluster, Fleet, NodeClass

_VERSION = names.DESIRED_DRIVER_VERSION_LABEL


def staying(fleet: Fleet, bare: c.Collection[NodeClass]) -> list[DriverInCluster]:
    """DaemonSets that have started a driver, and those that are the only ones for the kernel of a node. bare: classes without an image."""
    return [one for one in fleet.drivers if one.running or any(takes(one, node_class, fleet) for node_class in bare)]


def takes(driver: DriverInCluster, one: NodeClass, fleet: Fleet) -> bool:
    """Whether a DaemonSet selects nodes of this class."""
    machine = {
        names.KERNEL_LABEL: placement.nfd_value(one.kernel),
        placement.ARCHITECTURE: one.architecture,
        names.OS_ID_LABEL: one.os_id,
        names.OS_VERSION_LABEL: one.os_version,
    }
    of_class = [tuple(placement.need(key, "In", value) for key, value in machine.items())]
    return bool(node_sets.common(node_sets.common(driver.terms, of_class), placement.of_pool(one.pool, fleet.pools)))


def keep(
    found: c.Sequence[Manifest], kept: c.Sequence[DriverInCluster], maker: DriverDaemonSets
) -> tuple[list[Manifest], list[str]]:
    """Planned driver DaemonSets, changed so that existing ones keep their nodes, and notes about that. maker: builds the existing ones."""
    planned = {one["metadata"]["name"]: one for one in found}
    terms = {
        name: node_sets.read(one["spec"]["template"]["spec"]["affinity"]["nodeAffinity"])
        for name, one in planned.items()
    }
    labeled = {
        name: node_sets.common(terms[name], [(placement.need(_VERSION, "In", _version(one)),)])
        for name, one in planned.items()
    }
    held = {
        one.name: node_sets.without(
            one.terms, [term for name in planned if _version(planned[name]) != one.version for term in labeled[name]]
        )
        for one in kept
    }
    notes = []
    result = []
    for name, manifest in planned.items():
        left = node_sets.without(
            terms[name], [term for holder, taken in held.items() if holder != name for term in taken]
        )
        if name in held and not node_sets.covers(left, held[name]):
            left = [*held[name], *node_sets.without(left, held[name])]
        if left:
            placement.place(manifest, left)
            result.append(manifest)
    for one in kept:
        if one.name not in planned:
            made = maker.again(one)
            placement.place(made, held[one.name])
            result.append(made)
        if one.name not in planned or not node_sets.covers(terms[one.name], held[one.name]):
            others = {_version(planned[name]) for name in planned if node_sets.common(one.terms, terms[name])} - {
                one.version
            }
            notes.append(_note(one, others))
    return result, notes


def _version(manifest: Manifest) -> str:
    return manifest["metadata"]["labels"][_VERSION]


def _note(one: DriverInCluster, others: c.Collection[str]) -> str:
    """others: versions that are planned for its nodes."""
    more = one.running - len(one.nodes)
    where = ", ".join(one.nodes) + (f" and {more} more" if more > 0 else "")
    stays = (
        f"driver {one.version} stays on {one.running} nodes ({where})" if one.running else f"driver {one.version} stays"
    )
    why = "it is running there" if one.running else "there is no other image for that kernel"
    line = f"{stays}, by DaemonSet {one.name}: {why}"
    if not others:
        return f"{line}; it is deleted when its last node has left the cluster"
    return f"{line}. Next: node by node, end its GPU pods and set the label {_VERSION}={' or '.join(sorted(others))} (docs/drivers.md)"
