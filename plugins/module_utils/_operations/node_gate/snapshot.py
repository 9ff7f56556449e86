# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of a gate, for reports and changes."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Expectation, Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings


def provider(settings: Settings, fleet: Fleet, node: str) -> str:
    """Provider of the node's driver, "" if not declared."""
    pool = fleet.pool(node)
    return pool.driver.provider or settings.driver_providers.get(pool.name, "")


def expectation(settings: Settings, fleet: Fleet, node: str) -> Expectation:
    """What the gate expects of the node."""
    facts, pool, brought_by = fleet.nodes[node], fleet.pool(node), provider(settings, fleet, node)
    config = settings.plugin_configs.get(facts.plugin_config or pool.plugin_config or "default")
    return Expectation(
        gpu_declared=pool.gpu is not None,
        expected=schedulable.expected(facts, pool, config),
        host_driver=brought_by in ("host", "existing") or bool(facts.host_driver),
        existing=brought_by == "existing",
        absences=fleet.absences[node],
    )


@dataclasses.dataclass(frozen=True)
class GateSnapshot:
    """held: nodes that are not judged, because their exporter waits for their driver (the driver's verdict), or because the component is disabled.

    started: time.time() of the run. waited: when a node of a pool was last observed waiting, time.time() by pool. broken: the cluster can no longer be reached.
    """

    settings: Settings
    client: Client
    fleet: Fleet
    verdicts: c.Mapping[str, Verdict]
    held: c.Mapping[str, Verdict] = dataclasses.field(default_factory=dict)
    started: float = 0.0
    waited: c.Mapping[str, float] = dataclasses.field(default_factory=dict)
    broken: bool = False

    def provider(self, node: str) -> str:
        return provider(self.settings, self.fleet, node)

    def expectation(self, node: str) -> Expectation:
        return expectation(self.settings, self.fleet, node)
