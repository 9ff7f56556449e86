# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long nodes have been in a state that must not last."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Verdict


@dataclasses.dataclass
class Ages:
    """stuck: by node the observed state and its start, time.time()."""

    stuck: dict[str, tuple[str, float]] = dataclasses.field(default_factory=dict)

    def over(self, node: str, verdict: Verdict, now: float, began: c.Callable[[], float], grown: float) -> bool:
        """Whether its grace time has passed. began: called for a new state, returns its reported start. grown: when the last pod was added to the fleet."""
        state = f"{verdict.link}|{verdict.pod.name if verdict.pod else ''}|{verdict.next_step}"
        known, since = self.stuck.get(node, ("", now))
        if known != state:
            since = began()
        self.stuck[node] = (state, since)
        if verdict.pod is None and not verdict.since:
            # For a large fleet the DaemonSet controller needs time to create pods: it sends 20 requests a second (kube-controller-manager, --kube-api-qps).
            since = max(since, grown)
        return now - since >= verdict.grace

    def forget(self, node: str) -> None:
        self.stuck.pop(node, None)

    def skip(self, seconds: float) -> None:
        """Excludes a number of seconds from the ages."""
        self.stuck = {name: (state, since + seconds) for name, (state, since) in self.stuck.items()}
