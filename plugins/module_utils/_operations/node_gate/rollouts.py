# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the DaemonSets behind a gate have done what was last declared.

A gate that looks right after an apply would find no pods, or those of the template before, and take that for the answer.
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
    """open: what DaemonSets and Deployments have not done yet, in words. since: time.time() since when that has not changed.

    controllers: Deployments that were not up at the last look.
    """

    settings: Settings
    client: Client
    fleet: Fleet
    open: list[str] = dataclasses.field(default_factory=list)
    since: float = 0.0
    controllers: list[nfd.Controller] = dataclasses.field(default_factory=list)

    def go_on(self) -> bool:
        """One that stands still for too long is not waited for, nor one that Kubernetes moves by itself."""
        now, found = time.time(), self._daemon_sets()
        self.look_at_controllers()
        found += map(str, self.down)
        if found != self.open:
            self.open, self.since = found, now
        return bool(found) and now - self.since < chain.GRACE

    @property
    def down(self) -> list[nfd.Controller]:
        """Deployments that do not come up unless somebody does something."""
        return [one for one in self.controllers if not one.moves(self.fleet.nodes)]

    def look_at_controllers(self) -> None:
        self.controllers = nfd.lacking(self.client) if self.settings.gate == "features" else []

    def skip(self, seconds: float) -> None:
        """Time that ages nothing."""
        self.since += seconds

    def left_behind(self) -> list[str]:
        """What the gate waits for no longer, and no failure tells."""
        down = set(map(str, self.down))
        found = [
            f"gate {self.settings.gate} did not wait any longer for {line}" for line in self.open if line not in down
        ]
        return found + [
            f"{one}; its node {one.pod.node} is not Ready"
            for one in self.controllers
            if one.pod is not None and str(one) not in down
        ]

    def _daemon_sets(self) -> list[str]:
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
        return "the controller has not seen its last change"
    if int(status.get("currentNumberScheduled") or 0) < desired or known < desired:
        return f"{min(known, int(status.get('currentNumberScheduled') or 0))} of {desired} pods exist"
    updated = int(status.get("updatedNumberScheduled") or 0)
    # With OnDelete nothing is replaced by itself: the pods that are there are the ones to judge.
    if (
        updated < desired
        and ((item["spec"].get("updateStrategy") or {}).get("type") or "RollingUpdate") == "RollingUpdate"
    ):
        return f"{updated} of {desired} pods have its last template"
    return ""
