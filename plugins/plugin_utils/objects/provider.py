# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provider of a component that a cluster has once: this collection, or an existing deployment."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import StagePlan, text
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import Fleet

PROVIDERS = ("hwaccel", "existing")


@dataclasses.dataclass(frozen=True)
class Component:
    """role: the prefix of its variables; name: for messages; found_as: keys of node_info that list other deployments; clash: why there cannot be two."""

    role: str
    name: str
    found_as: tuple[str, ...]
    clash: str


def provider_of(component: Component, fleet: Fleet, settings: c.Mapping[str, t.Any], made: StagePlan) -> str:
    """The declared provider, else the detected one. The plan gets a note with the reason, or an error if the declaration contradicts the cluster."""
    declared, foreign = text(settings.get("provider")), fleet.found(*component.found_as)
    if declared and declared not in PROVIDERS:
        made.faults.append(
            Fault(f"{component.role}_provider {declared!r} is unknown", "", "", f"choose one of {', '.join(PROVIDERS)}")
        )
        return "existing"
    if declared == "hwaccel" and foreign:
        next_step = f"set {component.role}_provider: existing, or remove the other one first"
        made.faults.append(Fault(f"another {component.name} is in the cluster", foreign[0], component.clash, next_step))
    found = declared or ("existing" if foreign else "hwaccel")
    why = "declared" if declared else f"detected {foreign[0]}" if foreign else "no other was detected"
    made.notes.append(f"{component.role.replace('_', ' ')} by {found} ({why})")
    return found
