# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on one node: by its chain, the declaration, and the previous states of its pods."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, expected, exporters
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Expectation, Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import ROLE_OF_GATE
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import EXPORTER, VALIDATOR
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import snapshot
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet, is_candidate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings

#: The kubelet retries a failure after at most five minutes. Until then, a failure from before this run is only the result of the last attempt.
STALE = 330.0
#: Links whose failed containers run briefly between two back-offs. A driver's run takes minutes, and may succeed.
_KEPT_FAILED = ("devices", exporters.GATE)


@dataclasses.dataclass
class Judge:
    """failed: uid of the pod by node, for nodes that failed because of a pod and have not passed since.

    excused: crashes that do not count, by the validator pod's uid and step, because they can only be recognized while the driver is not ready.
    """

    settings: Settings
    fleet: Fleet
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    excused: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)

    def of_node(self, name: str) -> tuple[Verdict | None, Verdict | None]:
        """(the verdict, why the node is held): the first is None if the node is not judged, the second if it is not held."""
        gate, node, pods = self.settings.gate, self.fleet.nodes[name], self.fleet.pods_of(name)
        judged, expectation = (
            self._is_target(name),
            self._excusing(pods, snapshot.expectation(self.settings, self.fleet, name)),
        )
        held = exporters.held(node, pods, expectation, to_come=judged) if gate == exporters.GATE else None
        if judged and held is None:
            verdict = exporters.judge(pods) if gate == exporters.GATE else chain.judge(gate, node, pods, expectation)
            verdict = expected.judged(gate, node, self.fleet.expected[name], pods, verdict)
            held = expected.switched_off(gate, node) if verdict.state == chain.WAITING else None
            if held is None:
                return self._kept(name, self._fresh(verdict)), None
        return None, held

    def _is_target(self, name: str) -> bool:
        only = self.settings.nodes
        if name in self.settings.exclude or (only is not None and name not in only):
            return False
        node, pool = self.fleet.nodes[name], self.fleet.pool(name)
        if snapshot.provider(self.settings, self.fleet, name) == "none" and self.settings.gate != "features":
            return False
        pod = self.fleet.pods_of(name).get(ROLE_OF_GATE[self.settings.gate])
        # Upstream's device plugin has no node selector, so it always crashes on nodes without GPUs, which is normal.
        has_pod = pod is not None and (pod.ours or self.settings.gate != "devices")
        # A node with the gate's pod is judged even while NFD's labels are missing.
        if self.settings.gate == exporters.GATE:
            return has_pod or expected.names_part(self.fleet.expected[name], EXPORTER)
        return is_candidate(node, pool) or (node.managed and has_pod)

    def _excusing(self, pods: chain.Pods, expectation: Expectation) -> Expectation:
        validator = pods.get(VALIDATOR)
        if validator is None:
            return expectation
        found = chain.excused(pods, dataclasses.replace(expectation, excused=self.excused.get(validator.uid, {})))
        if found:
            self.excused[validator.uid] = found
        return dataclasses.replace(expectation, excused=found)

    def _fresh(self, verdict: Verdict) -> Verdict:
        """The cause of a pod's failure before the run may have been corrected since, so the pod gets one more attempt."""
        if verdict.state == chain.FAILED and verdict.pod is not None and verdict.pod.uid not in self.fleet.fresh:
            return dataclasses.replace(verdict, state=chain.WAITING, grace=STALE)
        return verdict

    def _kept(self, name: str, verdict: Verdict) -> Verdict:
        """A failure because of a pod remains until its node passes."""
        if verdict.state == chain.PASSED:
            self.failed.pop(name, None)
        if self.settings.gate not in _KEPT_FAILED or verdict.pod is None:
            return verdict
        if verdict.state == chain.FAILED:
            self.failed[name] = verdict.pod.uid
        return dataclasses.replace(verdict, state=chain.FAILED) if self.failed.get(name) == verdict.pod.uid else verdict
