# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many GPUs a node should offer, and how many it offers."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import (
    DRA_DRIVER,
    MIG_PREFIX,
    SHARED_SUFFIX,
    WHOLE,
    PluginConfig,
)


def expected(node: NodeFacts, pool: Pool | None = None, config: PluginConfig | None = None) -> dict[str, int]:
    """{resource: count}. Declared counts take precedence over those of GPU feature discovery, which does not count a GPU that fell off the bus.

    Empty if neither is known, so that nothing can be reported as missing.
    """
    declared = pool.gpu.count if pool is not None and pool.gpu is not None else 0
    if node.gpu.mig_strategy == "mixed" and node.gpu.mig_devices:
        slices = _shared({MIG_PREFIX + profile: count for profile, count in node.gpu.mig_devices}, node, config)
        # The number of GPUs that are not partitioned is unknown, so the whole GPUs that the node offers count as expected.
        return slices | {name: count for name, count in node.allocatable if name.removesuffix(SHARED_SUFFIX) == WHOLE}
    if "-MIG-" in node.gpu.product:
        # With strategy single, slices have the resource name of whole GPUs, so the declared number of GPUs does not apply.
        base = {WHOLE: node.gpu.count} if node.gpu.count else {}
    else:
        count = 1 if node.tegra else declared or node.gpu.count
        base = {WHOLE: count} if count else {}
    return _shared(base, node, config)


def observed(node: NodeFacts, slices: c.Iterable[c.Mapping[str, t.Any]] = ()) -> dict[str, int]:
    """{resource: count} as allocatable now: allocatable (capacity keeps the old number for five minutes), and devices of DRA's ResourceSlices."""
    counts = dict(node.allocatable)
    for item in slices:
        spec = item.get("spec") or {}
        if spec.get("driver") == DRA_DRIVER and spec.get("nodeName") == node.name:
            counts[DRA_DRIVER] = counts.get(DRA_DRIVER, 0) + len(spec.get("devices") or ())
    return counts


def _shared(base: dict[str, int], node: NodeFacts, config: PluginConfig | None) -> dict[str, int]:
    if config is not None:
        methods = {sharing.resource: sharing for sharing in config.sharing}
        return {
            methods[name].renamed if name in methods else name: count
            * (methods[name].replicas if name in methods else 1)
            for name, count in base.items()
        }
    if node.gpu.replicas > 1:
        # Without the configuration, labels give the factor. The resource was renamed if only the shared name is offered.
        offered = {name for name, _count in node.allocatable}
        return {
            name + SHARED_SUFFIX if name + SHARED_SUFFIX in offered and name not in offered else name: count
            * node.gpu.replicas
            for name, count in base.items()
        }
    return base
