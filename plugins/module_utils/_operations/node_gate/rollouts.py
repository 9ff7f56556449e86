# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the DaemonSets of a gate have rolled out their latest version.

Right after an apply, a gate would find no pods, or those of the previous template, and would judge by them.
"""

from __future__ import annotations

import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import PARTS_OF_GATE
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import nfd
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings


@dataclasses.dataclass
class Rollouts:
    """open: pending rollouts of DaemonSets and Deployments, as text. since: time.time() since when that has not changed.

    controllers: Deployments that were not ready when last observed.
    """

    settings: Settings
    client: Client
    fleet: Fleet
    open: list[str] = dataclasses.field(default_factory=list)
    since: float = 0.0
    controllers: list[nfd.Controller] = dataclasses.field(default_factory=list)

    def go_on(self) -> bool:
        """Whether a rollout is waited for. One without progress is not, and neither is a pod that Kubernetes reschedules."""
        now, found = time.time(), self._daemon_sets()
        self.look_at_controllers()
        found += map(str, self.down)
        if found != self.open:
            self.open, self.since = found, now
        return bool(found) and now - self.since < chain.GRACE

    @property
    def down(self) -> list[nfd.Controller]:
        """Deployments that need action by the user to become ready."""
        return [one for one in self.controllers if not one.moves(self.fleet.nodes)]

    def look_at_controllers(self) -> None:
        self.controllers = nfd.lacking(self.client) if self.settings.gate == "features" else []

    def skip(self, seconds: float) -> None:
        """Excludes a number of seconds from the ages."""
        self.since += seconds

    def left_behind(self) -> list[str]:
        """Rollouts that the gate stopped waiting for, and that no failure reports."""
        down = set(map(str, self.down))
        found = [f"gate {self.settings.gate} stopped waiting for {line}" for line in self.open if line not in down]
        return found + [
            f"{one}; its node {one.pod.node} is not Ready"
            for one in self.controllers
            if one.pod is not None and str(one) not in down
        ]

    def _daemon_sets(self) -> list[str]:
        if self.fleet.resting:
            return []
        known, found = self.fleet.pods_by_owner(), []
        for item in self.client.list(self.client.resource("apps/v1", "DaemonSet"), self.settings.namespace).items:
            if self.fleet.expecting.part_of(item["spec"]["template"]) in PARTS_OF_GATE[self.settings.gate]:
                line = _unfinished(item, known.get(item["metadata"]["name"], 0))
                found += [f"DaemonSet {item['metadata']['name']}: {line}"] if line else []
        return sorted(found)


def _unfinished(item: dict[str, t.Any], known: int) -> str:
    status = item.get("status") or {}
    desired = int(status.get("desiredNumberScheduled") or 0)
    if int(status.get("observedGeneration") or 0) < int(item["metadata"].get("generation") or 0):
        return "the controller has not observed its latest version"
    if int(status.get("currentNumberScheduled") or 0) < desired or known < desired:
        return f"{min(known, int(status.get('currentNumberScheduled') or 0))} of {desired} pods exist"
    updated = int(status.get("updatedNumberScheduled") or 0)
    # With OnDelete pods are not replaced automatically, so the existing pods are judged.
    if (
        updated < desired
        and ((item["spec"].get("updateStrategy") or {}).get("type") or "RollingUpdate") == "RollingUpdate"
    ):
        return f"{updated} of {desired} pods have its latest template"
    return ""
