# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of the chain for which a node must have a pod: by the DaemonSets that a role declared, not by those observed in the cluster.

Pools, providers, platforms and patches are already part of the declaration, so nothing of them is decided here again. Labels that disable a component do
not change what is expected: they are reported separately, with their value. Neither do taints: if a declared DaemonSet selects a node and does not
tolerate its taint, the node lacks its pod.
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
#: Parts whose pods a gate needs, in the order in which they wait for each other.
PARTS_OF_GATE = {
    "features": (parts.NFD_WORKER,),
    "driver": (parts.DRIVER, parts.TOOLKIT, parts.VALIDATOR),
    "devices": (parts.PLUGIN, parts.DISCOVERY),
    exporters.GATE: (parts.EXPORTER,),
}
_SWITCH, _OFF = names.VENDOR + "gpu.deploy.", "false"
#: The GPU Operator's names of the parts in its labels. There is none for NFD.
_COMPONENTS = {
    parts.DRIVER: "driver",
    parts.TOOLKIT: "container-toolkit",
    parts.VALIDATOR: "operator-validator",
    parts.PLUGIN: "device-plugin",
    parts.DISCOVERY: "gpu-feature-discovery",
    parts.EXPORTER: "dcgm-exporter",
}
_SWITCHES = frozenset(_SWITCH + component for component in _COMPONENTS.values())
#: Parts without which a gate cannot be judged: device plugin and exporter wait for the validator's proof.
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

#: Short reason of verdicts about nodes with a disabled component.
SWITCHED_OFF = "switched off"
_NEXT = "check the DaemonSet's node selector, tolerations and events"


class Expected:
    """The declaration for one gate."""

    def __init__(
        self, gate: str, daemon_sets: c.Iterable[Obj] | None, selector: c.Iterable[selectors.Requirement] | None = None
    ) -> None:
        """daemon_sets: those of a role's set as applied; None if not declared, and then each GPU that DCGM supports must have an exporter.

        selector: label selector of the gate's own pods.
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
        """Label selector of a DaemonSet's pods."""
        named = self._selector is not None and selectors.matches(
            self._selector, (template.get("metadata") or {}).get("labels") or {}
        )
        return ROLE_OF_GATE[self._gate] if named else parts.role_of(template)

    def of_node(self, labels: c.Mapping[str, str], *, gpus: bool = False) -> str:
        """Parts separated by blanks, each with "=" and the value of its label if that disables it.

        gpus: whether there are GPUs on the PCI bus according to `has_gpus`, even if NFD's label for them was removed.
        """
        plain = _as_meant(labels, gpus)
        taken = dict.fromkeys(part for part, _name, template in self._declared if placement.fits(plain, template))
        values = {part: labels.get(_SWITCH + _COMPONENTS.get(part, ""), "") for part in taken}
        return sys.intern(
            " ".join(f"{part}={value}" if value in terms.PAUSED else part for part, value in values.items())
        )

    def takers(self, part: str, labels: c.Mapping[str, str], *, gpus: bool = False) -> list[str]:
        """Names of the declared DaemonSets that run the part on a node with these labels."""
        plain = _as_meant(labels, gpus)
        return [
            name
            for declared, name, template in self._declared
            if declared == part and name and placement.fits(plain, template)
        ]


def has_gpus(node: NodeFacts, pool: Pool) -> bool:
    """Whether there are GPUs on the PCI bus, according to the node or its pool."""
    return (node.gpu_present or pool.gpu is not None) and not node.tegra


def missing(gate: str, expected: str, pods: chain.Pods) -> tuple[str, str]:
    """The first part for which a node has no permanent pod, and the value of the label that pauses it, "" for none. ("", "") if none is missing.

    expected: from `Expected.of_node`. A disabled part is not missing.
    """
    desired = dict(word.partition("=")[::2] for word in expected.split())
    for part in PARTS_OF_GATE[gate]:
        if desired.get(part, _OFF) != _OFF and (part not in pods or pods[part].deleting):
            return part, desired[part]
    return "", ""


def part_to_blame(gate: str, expected: str, pods: chain.Pods) -> str:
    """The part whose DaemonSet shows why a node lacks a pod; "" if none is missing. Without a declaration it is the gate's own part."""
    return missing(gate, expected, pods)[0] or (ROLE_OF_GATE[gate] if ROLE_OF_GATE[gate] not in pods else "")


def names_part(expected: str, part: str) -> bool:
    """Whether a node should have a pod of this part, even if it is disabled."""
    return any(word.partition("=")[0] == part for word in expected.split())


def judged(gate: str, node: NodeFacts, expected: str, pods: chain.Pods, verdict: chain.Verdict) -> chain.Verdict:
    """The verdict. If it would let a node pass without a required pod, the verdict is that the node waits for this pod."""
    part, paused = missing(gate, expected, pods)
    if not part or not node.uid or not node.ready or verdict.state not in (chain.PASSED, chain.WAITING):
        return verdict
    if paused:
        link, noun = _LINKS[part]
        label = f"{_SWITCH}{_COMPONENTS[part]}={paused}"
        next_step = f"wait until the component that paused it has finished (the driver manager or the MIG manager of this node), or remove the label {label}"
        return chain.Verdict(
            chain.WAITING, link, f"the node's label {label} pauses its {noun}", next_step, brief=paused
        )
    if verdict.state == chain.WAITING and (verdict.grace or verdict.pod is None):
        # The verdict has another cause.
        return verdict
    return absent(part)


def absent(part: str) -> chain.Verdict:
    link, noun = _LINKS[part]
    return chain.Verdict(
        chain.WAITING, link, f"no {noun} pod is on the node", _NEXT, chain.GRACE, brief=f"no {noun} pod"
    )


def switched_off(gate: str, node: NodeFacts) -> chain.Verdict | None:
    """The component that the gate judges is disabled, which is neither a failure nor a pass. None if it is not disabled."""
    for part in _CRUCIAL.get(gate, ()):
        switch = _SWITCH + _COMPONENTS[part]
        if switch in node.switched_off.split():
            link, noun = _LINKS[part]
            next_step = f"none if this is intended; otherwise remove the label {switch} from the node"
            return chain.Verdict(
                chain.WAITING,
                link,
                f"the node's label {switch}={_OFF} disables its {noun}",
                next_step,
                brief=SWITCHED_OFF,
            )
    return None


def _as_meant(labels: c.Mapping[str, str], gpus: bool) -> Obj:
    """A Node without labels that disable single parts, and with the labels of its GPUs."""
    found = {key: value for key, value in labels.items() if not (key in _SWITCHES and value in terms.PAUSED)}
    return {"metadata": {"labels": found | ({names.PCI_LABELS[0]: "true"} if gpus else {})}}


def _anonymous(found: c.Sequence[terms.Term]) -> Obj:
    made: Obj = {"metadata": {}, "spec": {"template": {"spec": {}}}}
    terms.place(made, found)
    return made
