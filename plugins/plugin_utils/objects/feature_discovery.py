# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The feature_discovery role's objects: NFD, or nothing if another deployment has NFD."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import (
    namespaces,
    node_guard,
    patched,
    platforms,
    references,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import (
    Manifest,
    Sources,
    StagePlan,
    finish,
    stamp,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import read_fleet
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.provider import Component, provider_of

_COMPONENT = Component(
    "feature_discovery", "Node Feature Discovery", ("nfd",), "two would overwrite each other's labels"
)


def plan(
    manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], facts: c.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """Objects of the set `feature-discovery`, with assumed, unknown, notes and faults. settings: see the filter's documentation."""
    fleet, faults = read_fleet(settings.get("pools"), facts)
    fleet = platforms.as_declared(fleet, settings)
    made = StagePlan(faults=faults)
    made.faults += platforms.identity_faults(fleet, settings)
    provider = provider_of(_COMPONENT, fleet, settings, made)
    if provider == "hwaccel":
        kept = node_guard.fitted(manifests, fleet.version, "NFD's worker", made)
        kept += platforms.extra_objects(platforms.of(fleet.distribution), manifests)
        kept += namespaces.needed(kept, "feature-discovery", settings, facts, made)
        stamp(kept)
        made.objects = finish(kept, Sources.of(settings), "feature-discovery")
        undeclared = not any(pool.gpu for pool in fleet.pools)
        if undeclared and not fleet.gpus:
            made.unknown.append("which nodes have GPUs, until feature_discovery has run: no pool declares any")
    made.faults += references.missing(made.objects, facts)
    made.faults += patched.faults(made.objects, settings, "feature_discovery_patches")
    return made.as_dict(provider, fleet.namespace_of("nfd") if provider == "existing" else "", fleet.existing)
