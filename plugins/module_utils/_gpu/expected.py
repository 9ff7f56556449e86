# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which parts of the chain a node must have a pod of: by the DaemonSets that a role has declared, not by those that are found in the cluster.

Pools, providers, platforms and patches are in what was declared already, so nothing of them is decided here a second time. A switch of a component does
not change what is expected: it is reported separately, with its value. Taints change nothing either: a node that a declared DaemonSet takes and does not
tolerate lacks its pod.
"""

from __future__ import annotations

import collections.abc as c
import sys
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, exporters, names, selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import placement as terms
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import placement

Obj = dict[str, t.Any]

#: The part whose pods `pod_selector` names, by gate.
ROLE_OF_GATE = {
    "features": parts.NFD_WORKER,
    "driver": parts.VALIDATOR,
    "devices": parts.PLUGIN,
    exporters.GATE: parts.EXPORTER,
}
#: Parts whose pods a gate needs, in the order in which one waits for the other.
PARTS_OF_GATE = {
    "features": (parts.NFD_WORKER,),
    "driver": (parts.DRIVER, parts.TOOLKIT, parts.VALIDATOR),
    "devices": (parts.PLUGIN, parts.DISCOVERY),
    exporters.GATE: (parts.EXPORTER,),
}
_SWITCH, _OFF = names.VENDOR + "gpu.deploy.", "false"
#: The GPU Operator's names of the parts, in its switches. NFD has none.
_COMPONENTS = {
    parts.DRIVER: "driver",
    parts.TOOLKIT: "container-toolkit",
    parts.VALIDATOR: "operator-validator",
    parts.PLUGIN: "device-plugin",
    parts.DISCOVERY: "gpu-feature-discovery",
    parts.EXPORTER: "dcgm-exporter",
}
_SWITCHES = frozenset(_SWITCH + component for component in _COMPONENTS.values())
#: Parts without which nothing at a gate can be proven: the validator proves what device plugin and exporter wait for.
_CRUCIAL = {
    "driver": (parts.VALIDATOR,),
    "devices": (parts.PLUGIN, parts.VALIDATOR),
    exporters.GATE: (parts.EXPORTER, parts.VALIDATOR),
}
_LINKS = {
    parts.NFD_WORKER: (chain.HARDWARE, "NFD worker"),
    parts.DRIVER: (chain.DRIVER, "driver"),
    parts.TOOLKIT: (chain.TOOLKIT, "container toolkit"),
    parts.VALIDATOR: (chain.DRIVER, "validator"),
    parts.PLUGIN: (chain.PLUGIN, "device plugin"),
    parts.DISCOVERY: (chain.PLUGIN, "GPU feature discovery"),
    parts.EXPORTER: (exporters.EXPORTER, "exporter"),
}

#: What verdicts say in brief of such nodes.
SWITCHED_OFF = "switched off"
_NEXT = "see the DaemonSet's node selector, tolerations and events"


class Expected:
    """What is declared for one gate."""

    def __init__(
        self, gate: str, daemon_sets: c.Iterable[Obj] | None, selector: c.Iterable[selectors.Requirement] | None = None
    ) -> None:
        """daemon_sets: those of a role's set as they are applied; None where nobody says, and then each GPU that DCGM knows has to have an exporter.

        selector: of the gate's own pods.
        """
        self._gate, self._selector = gate, selector
        self._declared: list[tuple[str, str, Obj]] = []
        for item in daemon_sets or ():
            self._declare(self.part_of(item["spec"]["template"]), item)
        if daemon_sets is None and gate == exporters.GATE:
            self._declare(parts.EXPORTER, _anonymous(terms.gpu_nodes(foreign_nfd=True, integrated=False)))

    def _declare(self, part: str, item: Obj) -> None:
        if part in PARTS_OF_GATE[self._gate]:
            self._declared.append((part, item["metadata"].get("name", ""), item["spec"]["template"]))

    def part_of(self, template: Obj) -> str:
        """Of the pods of a DaemonSet."""
        named = self._selector is not None and selectors.matches(
            self._selector, (template.get("metadata") or {}).get("labels") or {}
        )
        return ROLE_OF_GATE[self._gate] if named else parts.role_of(template)

    def of_node(self, labels: c.Mapping[str, str], *, gpus: bool = False) -> str:
        """Parts with blanks between them, each with "=" and the value of its switch where that keeps it away.

        gpus: there are some on the PCI bus, as `has_gpus` tells it: that somebody has taken NFD's label of them away changes nothing.
        """
        plain = _as_meant(labels, gpus)
        taken = dict.fromkeys(part for part, _name, template in self._declared if placement.fits(plain, template))
        values = {part: labels.get(_SWITCH + _COMPONENTS.get(part, ""), "") for part in taken}
        return sys.intern(
            " ".join(f"{part}={value}" if value in terms.PAUSED else part for part, value in values.items())
        )

    def takers(self, part: str, labels: c.Mapping[str, str], *, gpus: bool = False) -> list[str]:
        """Names of the declared DaemonSets that are to bring the part to a node with these labels."""
        plain = _as_meant(labels, gpus)
        return [
            name
            for declared, name, template in self._declared
            if declared == part and name and placement.fits(plain, template)
        ]


def has_gpus(node: NodeFacts, pool: Pool) -> bool:
    """GPUs on the PCI bus, as far as the node itself or its pool says so."""
    return (node.gpu_present or pool.gpu is not None) and not node.tegra


def missing(gate: str, expected: str, pods: chain.Pods) -> tuple[str, str]:
    """The first part of which a node has no pod that stays, and the value of the switch that pauses it, "" for none. ("", "") where none is missing.

    expected: as `Expected.of_node` tells it. What somebody has switched off is not missed.
    """
    desired = dict(word.partition("=")[::2] for word in expected.split())
    for part in PARTS_OF_GATE[gate]:
        if desired.get(part, _OFF) != _OFF and (part not in pods or pods[part].deleting):
            return part, desired[part]
    return "", ""


def part_to_blame(gate: str, expected: str, pods: chain.Pods) -> str:
    """Which part's DaemonSet tells more of a node that lacks a pod; "" where none is missing. Where nothing was declared, the gate's own pod is the one."""
    return missing(gate, expected, pods)[0] or (ROLE_OF_GATE[gate] if ROLE_OF_GATE[gate] not in pods else "")


def names_part(expected: str, part: str) -> bool:
    """Whether a node is to have a pod of this part, be it switched off or not."""
    return any(word.partition("=")[0] == part for word in expected.split())


def judged(gate: str, node: NodeFacts, expected: str, pods: chain.Pods, verdict: chain.Verdict) -> chain.Verdict:
    """The verdict, or where it would let a node pass without a pod that belongs there, that it waits for this pod."""
    part, paused = missing(gate, expected, pods)
    if not part or not node.uid or not node.ready or verdict.state not in (chain.PASSED, chain.WAITING):
        return verdict
    if paused:
        link, noun = _LINKS[part]
        label = f"{_SWITCH}{_COMPONENTS[part]}={paused}"
        next_step = f"let what has paused it finish (the driver manager or the MIG manager of this node), or remove the label {label}"
        return chain.Verdict(
            chain.WAITING, link, f"the node's label {label} keeps its {noun} away", next_step, brief=paused
        )
    if verdict.state == chain.WAITING and (verdict.grace or verdict.pod is None):
        # It has a cause of its own.
        return verdict
    return absent(part)


def absent(part: str) -> chain.Verdict:
    link, noun = _LINKS[part]
    return chain.Verdict(
        chain.WAITING, link, f"no {noun} pod is on the node", _NEXT, chain.GRACE, brief=f"no {noun} pod"
    )


def switched_off(gate: str, node: NodeFacts) -> chain.Verdict | None:
    """Somebody keeps away what the gate would prove, which is neither a failure nor a proof. None where nobody does."""
    for part in _CRUCIAL.get(gate, ()):
        switch = _SWITCH + _COMPONENTS[part]
        if switch in node.switched_off.split():
            link, noun = _LINKS[part]
            next_step = f"nothing, if that is meant; else remove the label {switch} from the node"
            return chain.Verdict(
                chain.WAITING,
                link,
                f"the node's label {switch}={_OFF} keeps its {noun} away",
                next_step,
                brief=SWITCHED_OFF,
            )
    return None


def _as_meant(labels: c.Mapping[str, str], gpus: bool) -> Obj:
    """A Node without what keeps single parts away, and with the label of what it has."""
    found = {key: value for key, value in labels.items() if not (key in _SWITCHES and value in terms.PAUSED)}
    return {"metadata": {"labels": found | ({names.PCI_LABELS[0]: "true"} if gpus else {})}}


def _anonymous(found: c.Sequence[terms.Term]) -> Obj:
    made: Obj = {"metadata": {}, "spec": {"template": {"spec": {}}}}
    terms.place(made, found)
    return made
