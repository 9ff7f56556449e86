# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an install waits for: how far each machine is, and which operators lag, as lines for an operator. Pure."""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import snapshot as s
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import Machine, Node, Operator, Snapshot

#: How far a machine is, from its first packet to a node that serves with a certificate of the cluster.
UNSEEN, DHCP, KERNEL, IGNITION, CONFIG, REQUEST, NODE, READY, SERVING = STEPS = (
    "no DHCP request",
    "DHCP",
    "kernel",
    "ignition",
    "22623",
    "certificate request",
    "Node, not Ready",
    "Ready, without serving certificate",
    "complete",
)
_OF_BOOT = {
    s.NOTHING: UNSEEN,
    s.REQUESTED: DHCP,
    s.ADDRESS: DHCP,
    s.LOADER: DHCP,
    s.KERNEL: KERNEL,
    s.IGNITION: IGNITION,
    s.REPORTED: IGNITION,
    s.CONFIG: CONFIG,
}
#: Others wait for them, so that their reasons come first: without a router there is no route for authentication and console.
_FIRST = ("etcd", "kube-apiserver", "network", "dns", "ingress")
_LONGEST_REASON = 200


def step(machine: Machine, found: Snapshot) -> str:
    """How far a machine is, one of STEPS."""
    answers = found.answers
    if node := found.node_of(machine):
        if node.waiting:
            return NODE
        # Whether kubelets have certificates may not be observed.
        return SERVING if answers.serving is None or machine.name in answers.serving else READY
    if any(request.node in machine.node_names for request in answers.requests):
        return REQUEST
    return _OF_BOOT[machine.stage]


def awaited(found: Snapshot) -> tuple[Machine, ...]:
    """Machines that the install waits for now, those first that the others wait for: 22623 serves masters before workers."""
    answers = found.answers
    if found.api.answer != s.ANSWERS and not answers.nodes:
        order = found.of_role(s.BOOTSTRAP) or found.of_role(s.MASTER)
    elif not answers.bootstrapped:
        order = found.of_role(s.MASTER)
    else:
        order = (*found.of_role(s.MASTER), *found.of_role(s.WORKER))
    return tuple(machine for machine in order if step(machine, found) != SERVING)


def waits_as_usual(machine: Machine, found: Snapshot) -> bool:
    """Whether a worker waits for 22623, which answers it with HTTP 500 until masters serve it (machine-config-operator, pkg/server)."""
    started = step(machine, found) in (IGNITION, CONFIG)
    return machine.role == s.WORKER and started and not found.answers.bootstrapped


def unexpected(nodes: c.Iterable[Node], expected: c.Iterable[str]) -> list[str]:
    """Names of Nodes that no machine of the inventory has. expected: names, with their domain or without."""
    known = {short for name in expected for short in (name, name.partition(".")[0])}
    return sorted(node.name for node in nodes if not {node.name, node.name.partition(".")[0]} & known)


def machine_lines(found: Snapshot) -> list[str]:
    """One line on all machines that become nodes, one on a bootstrap machine that is needed, and one on workers that wait as usual."""
    becoming = found.of_role(s.MASTER, s.WORKER)
    steps = {machine.name: step(machine, found) for machine in becoming}
    usual = [machine.name for machine in becoming if waits_as_usual(machine, found)]
    lines = []
    if found.api.answer != s.ANSWERS and not found.answers.bootstrapped:
        lines += [f"{machine.name} (bootstrap): {step(machine, found)}" for machine in found.of_role(s.BOOTSTRAP)]
    if becoming:
        parts = [f"{sum(one == SERVING for one in steps.values())} of {len(becoming)} machines are complete"]
        for one in reversed(STEPS[:-1]):
            if names := [name for name in steps if steps[name] == one and name not in usual]:
                parts.append(f"{one}: {some(names)}")
        lines.append("; ".join(parts))
    if usual:
        lines.append(f"{some(usual)}: 22623 answers 500 until masters serve it, which is normal")
    return lines


def lagging(operators: c.Iterable[Operator]) -> list[Operator]:
    """Operators that are not available, degraded or progressing, those first that others wait for."""
    behind = [one for one in operators if one.degraded or not one.available or one.progressing]

    def order(one: Operator) -> tuple[bool, int, str]:
        place = _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST)
        return one.available and not one.degraded, place, one.name

    return sorted(behind, key=order)


def reason(operator: Operator) -> str:
    """What is the matter with an operator that lags."""
    what = "is not available" if not operator.available else "is degraded" if operator.degraded else "is progressing"
    text = f"{operator.name} {what}"
    if operator.reason:
        text += f": {operator.reason[:_LONGEST_REASON]}"
    return text


def operator_lines(operators: c.Collection[Operator]) -> list[str]:
    """One line, [] before there are operators."""
    if not operators:
        return []
    behind = lagging(operators)
    text = f"{len(operators) - len(behind)} of {len(operators)} operators are ready"
    if behind:
        text += f"; {reason(behind[0])}"
    if len(behind) > 1:
        text += f"; also {some((one.name for one in behind[1:]), 5)}"
    return [text]


def lines(found: Snapshot) -> list[str]:
    """All lines of a snapshot. Bootstrap and version are one line, in the cluster's own words."""
    answers = found.answers
    said = []
    if found.api.answer != s.ANSWERS:
        said.append(f"the API does not answer: {found.api.why or 'it was not asked'}")
    elif not answers.removable and answers.evidence:
        said.append(f"bootstrap: {answers.evidence}")
    elif answers.version is not None and answers.version.text:
        said.append(f"version: {answers.version.text}")
    every = [*said, *machine_lines(found), *operator_lines(answers.operators)]
    # What a cluster says can have several lines.
    return [" ".join(line.split()) for line in every]
