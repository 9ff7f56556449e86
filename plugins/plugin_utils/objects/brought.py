# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provider of each part of the GPU stack of a cluster, from the roles' plans. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import image_base, image_tag

Row = dict[str, t.Any]
#: Role to its parts, each with the keys of node_info that list those of others. GPU feature discovery is part of the plugin's deployment.
_PARTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "feature_discovery": (("Node Feature Discovery", ("nfd",)),),
    "driver": (("driver", ("driver",)), ("container toolkit", ())),
    "device_plugin": (("device plugin", ("device_plugin",)), ("GPU feature discovery", ())),
    "monitoring": (("DCGM exporter", ("dcgm_exporter",)),),
}
#: Only a driver's provider can be the host. Its machines get this collection's toolkit and validator nevertheless.
_TOOLKIT = {"host": "hwaccel"}


def rows(plans: c.Mapping[str, c.Mapping[str, t.Any]]) -> list[Row]:
    """One row for each part, and for the driver's parts for each provider: {component, pools, provider, objects}. plans: existing ones, by role.

    pools: [] for all. objects: those of others, as "DaemonSet namespace/name (image:tag)"; with NVIDIA's operator, its ClusterPolicy first.
    """
    found: list[Row] = []
    for role, components in _PARTS.items():
        plan = plans.get(role) or {}
        if not plan.get("provider"):
            continue
        for name, listed in components:
            for provider, pools in _providers(plan, name).items():
                others = _objects(plan.get("existing") or {}, listed) if provider == "existing" else []
                found.append({"component": name, "pools": pools, "provider": provider, "objects": others})
    return found


def lines(found: c.Iterable[Row]) -> list[str]:
    """A line for each part that this collection does not provide."""
    return [_line(row) for row in found if row["provider"] != "hwaccel"]


def _line(row: Row) -> str:
    pools = f" of pool{'s' * (len(row['pools']) > 1)} {', '.join(row['pools'])}" if row["pools"] else ""
    return f"{row['component']}{pools}: {row['provider']}" + (
        f", {', '.join(row['objects'])}" if row["objects"] else ""
    )


def _providers(plan: c.Mapping[str, t.Any], component: str) -> dict[str, list[str]]:
    by: dict[str, list[str]] = {}
    for pool, provider in sorted((plan.get("pools") or {}).items()):
        by.setdefault(_TOOLKIT.get(provider, provider) if component == "container toolkit" else provider, []).append(
            pool
        )
    return by if by else {plan["provider"]: []}


def _objects(existing: c.Mapping[str, t.Any], listed: c.Iterable[str]) -> list[str]:
    operator = [f"GPU Operator (ClusterPolicy {one.get('name')})" for one in existing.get("cluster_policy") or ()]
    return operator + [_object(one) for component in listed for one in existing.get(component) or ()]


def _object(entry: c.Mapping[str, str]) -> str:
    image = entry.get("image") or ""
    image_name = ":".join(part for part in (image_base(image), image_tag(image)) if part)
    return f"{entry.get('kind')} {entry.get('namespace')}/{entry.get('name')}" + (
        f" ({image_name})" if image_name else ""
    )
