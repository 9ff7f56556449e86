# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first failed link of nodes that do not offer the expected GPUs, judged as by the gates, without waiting.

Pods are only read if a node lacks something, regardless of who deployed them.
"""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import ROLE_OF_GATE
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import report, snapshot
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.fleet import Fleet
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings

_DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
_NOTHING_DEPLOYED = "run hwaccel.gpu.site: this cluster has no device plugin that is deployed as a DaemonSet"

#: A node and why it offers too few GPUs, with the keys of a gate's fault.
Row = dict[str, t.Any]


class Chain:
    """settings: those of the gate devices, for its pools, their expected resources and the number of nodes reported with logs."""

    def __init__(self, client: Client, fleet: Fleet, settings: Settings) -> None:
        self.client, self.fleet, self.settings = client, fleet, settings

    def offers(self, name: str) -> bool:
        """Whether the node exists, is Ready and offers the expected GPUs. Its pods are not read."""
        return self._of_node(name).state == chain.PASSED

    def broken(self, names: c.Collection[str]) -> dict[str, Row]:
        """By node the first failed link, why, and the next step. Nodes that pass all links are omitted."""
        # The pods of these nodes give no information.
        found = {
            name: _row(self._of_node(name))
            for name in names
            if not self.fleet.nodes[name].uid or not self.fleet.nodes[name].ready
        }
        left = sorted(set(names) - set(found))
        if not left:
            return found
        try:
            deployed = self._deployed()
            self.fleet.read_pods(
                self.client, sorted({namespace for namespaces in deployed.values() for namespace in namespaces})
            )
        except Forbidden as refused:
            # Without access to pods, the nodes' own state is reported.
            return found | self._of_nodes(
                left, f"grant the missing permission to get the failed link reported: {refused.faults[0].why}"
            )
        for gate in chain.GATES:
            if namespaces := deployed.get(ROLE_OF_GATE[gate]):
                found |= self._held(gate, min(namespaces), [name for name in left if name not in found], deployed)
        return found | self._of_nodes(
            [name for name in left if name not in found], "" if parts.PLUGIN in deployed else _NOTHING_DEPLOYED
        )

    def _of_nodes(self, names: c.Iterable[str], next_step: str) -> dict[str, Row]:
        """Faults of nodes that do not offer the expected GPUs without a known cause. next_step: replaces the default one unless empty."""
        verdicts = {name: self._of_node(name) for name in names}
        instead = {"next_step": next_step} if next_step else {}
        return {name: _row(verdict) | instead for name, verdict in verdicts.items() if verdict.state != chain.PASSED}

    def _of_node(self, name: str) -> Verdict:
        return chain.judge("devices", self.fleet.nodes[name], {}, snapshot.expectation(self.settings, self.fleet, name))

    def _held(
        self, name: str, namespace: str, nodes: list[str], deployed: c.Mapping[str, c.Collection[str]]
    ) -> dict[str, Row]:
        """Faults of nodes that do not pass a gate. The validation does not wait, so pending states count as failures."""
        # If no DaemonSet provides a driver, the hosts do.
        providers = (
            {} if parts.DRIVER in deployed else dict.fromkeys((self.fleet.pool_names[node] for node in nodes), "host")
        )
        settings = dataclasses.replace(self.settings, gate=name, namespace=namespace, driver_providers=providers)
        verdicts: dict[str, Verdict] = {}
        for node in nodes:
            pods, expectation = self.fleet.pods_of(node), snapshot.expectation(settings, self.fleet, node)
            verdict = chain.judge(
                name,
                self.fleet.nodes[node],
                pods,
                dataclasses.replace(expectation, excused=chain.excused(pods, expectation)),
            )
            if verdict.state != chain.PASSED:
                verdicts[node] = dataclasses.replace(verdict, state=chain.UNKNOWN if verdict.observer else chain.FAILED)
        reported = {
            row["node"]: row
            for row in report.faults(snapshot.GateSnapshot(settings, self.client, self.fleet, verdicts))
        }
        return {node: reported.get(node) or _row(verdict) for node, verdict in verdicts.items()}

    def _deployed(self) -> dict[str, set[str]]:
        """Namespaces with DaemonSets, by part, of this and other deployments."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        for page in self.client.pages(_DAEMON_SET):
            for item in page.items:
                found[parts.role_of(item["spec"]["template"])].add(item["metadata"]["namespace"])
        found.pop(parts.OTHER, None)
        return dict(found)


def _row(verdict: Verdict) -> Row:
    pod = verdict.pod.name if verdict.pod is not None else ""
    return {"link": verdict.link, "reason": verdict.reason, "next_step": verdict.next_step, "pod": pod, "log_tail": ""}
