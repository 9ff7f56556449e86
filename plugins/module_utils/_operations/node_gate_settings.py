# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gate is told. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import PluginConfig


@dataclasses.dataclass(frozen=True)
class Settings:
    gate: str
    pools: tuple[Pool, ...] = ()
    namespace: str = "hwaccel-gpu"
    #: Of driver, toolkit and validator, where gate `exporters` is to look for them elsewhere.
    driver_namespace: str = ""
    pod_selector: str = ""
    max_failed: t.Any = 0
    quarantine: bool = True
    exclude: frozenset[str] = frozenset()
    #: None: by gate and size of the fleet.
    wait_timeout: float | None = None
    sample: int = 20
    plugin_configs: c.Mapping[str, PluginConfig] = dataclasses.field(default_factory=dict)
    #: By pool, where it does not say so itself: hwaccel, host, existing or none.
    driver_providers: c.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def marks(self) -> bool:
        """Whether failed nodes are kept from new pods: one that nobody watches still computes."""
        return self.quarantine and self.gate in chain.GATES
