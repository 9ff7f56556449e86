# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a gate."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import PluginConfig
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests, patches
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults

#: Default seconds that a gate waits: a driver is built in up to 20 minutes, NFD and the plugin report within one or two.
BASE_TIMEOUT = {"features": 300.0, "driver": 1800.0, "devices": 300.0, "exporters": 300.0}
#: Additional seconds for each node, because registries and the API server need longer for a large fleet.
SECONDS_PER_NODE = 0.3


def declared(definition: t.Sequence[t.Any], raw_patches: t.Any) -> tuple[dict[str, t.Any], ...]:
    """DaemonSets of a set after its patches. Patches that match none of them are for other objects of the set. Raises ManyFaults."""
    found, faults = manifests.load(definition)
    wishes, wrong = patches.read(raw_patches)
    mine = [one for one in found if one.key.kind == "DaemonSet"]
    patched, more = patches.apply_all(mine, [wish for wish in wishes if any(wish.matches(one) for one in mine)])
    if faults or wrong or more:
        raise ManyFaults([*faults, *wrong, *more])
    return tuple(one.body for one in patched)


@dataclasses.dataclass(frozen=True)
class Settings:
    gate: str
    pools: tuple[Pool, ...] = ()
    namespace: str = "hwaccel-gpu"
    #: Namespace of driver, toolkit and validator for gate `exporters`, if it is another one.
    driver_namespace: str = ""
    pod_selector: str = ""
    max_failed: t.Any = 0
    quarantine: bool = True
    #: Names of the only nodes to judge; None means all.
    nodes: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    #: None means a default by gate and size of the fleet.
    wait_timeout: float | None = None
    sample: int = 20
    #: Those of the role's set as applied; () if another deployment provides them, None if not declared.
    daemon_sets: tuple[dict[str, t.Any], ...] | None = None
    plugin_configs: c.Mapping[str, PluginConfig] = dataclasses.field(default_factory=dict)
    #: Provider by pool, for pools that do not declare it: hwaccel, host, existing or none.
    driver_providers: c.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def timeout_of(self, nodes: int) -> float:
        """Timeout in seconds for this number of nodes."""
        return BASE_TIMEOUT[self.gate] + SECONDS_PER_NODE * nodes if self.wait_timeout is None else self.wait_timeout

    @property
    def marks(self) -> bool:
        """Whether failed nodes are quarantined. A node without an exporter can still run GPU pods."""
        return self.quarantine and self.gate in chain.GATES
