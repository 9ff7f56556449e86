# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where pods run: nodes of examples that a workload has to select or to leave out, and taints that it tolerates or not."""

from __future__ import annotations

import collections.abc as c
import sys

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Finding, Manifests, Workload, where
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.ownership import COMPONENT
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

sys.path.insert(0, str(stack.TOP / "roles" / "sandbox" / "files"))

from fleet_agent.programs.nfd_features import rule_output

Labels = dict[str, str]
#: Component in the label by which others switch a workload off, nvidia.com/gpu.deploy.* (docs/existing-cluster.md), by workload.
SWITCHES = {
    "nvidia-driver": "driver",
    "nvidia-container-toolkit": "container-toolkit",
    "nvidia-validator": "operator-validator",
    "nvidia-device-plugin": "device-plugin",
    "gpu-feature-discovery": "gpu-feature-discovery",
    "nvidia-dcgm-exporter": "dcgm-exporter",
}
_BOARD = {names.INTEGRATED_LABEL: "true"}
_TEGRA = {names.CPU_VENDOR_LABEL: names.TEGRA_CPU_VENDOR}
_CARD = {names.PCI_LABELS[0]: "true"}
_MACHINE = {
    names.KERNEL_LABEL: rendered.KERNEL,
    names.OS_ID_LABEL: "ubuntu",
    names.OS_VERSION_LABEL: "24.04",
    placement.ARCHITECTURE: "amd64",
    "pool": rendered.POOL,
}
#: Workloads that a board does without: its driver is the system's, and DCGM knows no integrated GPU.
_CARDS_ONLY = ("nvidia-driver", "nvidia-dcgm-exporter")


def nodes(found: Manifests) -> c.Iterator[Finding]:
    """An agent runs on every node with a GPU, of whatever kind, and on no other; where a label of NVIDIA's switches it off, it does not run."""
    for one in found.workloads:
        if one.name not in SWITCHES:
            continue
        at = f"{one.where}spec.affinity.nodeAffinity"
        if not _serves(one):
            continue
        kinds = [_CARD] if one.name in _CARDS_ONLY else [_CARD, _BOARD, _TEGRA]
        for kind in kinds:
            if not selected(one.spec, _MACHINE | kind):
                yield f"{at} excludes the node with {_text(kind)}, which has a GPU"
            if not selected(one.spec, _MACHINE | kind | {names.OPERANDS_LABEL: "true"}):
                yield f"{at} excludes the node with {_text(kind)} whose {names.OPERANDS_LABEL} is true"
            for label, value in _switched_off(one.name):
                if selected(one.spec, _MACHINE | kind | {label: value}):
                    yield f"{at} selects the node with {_text(kind)} although {label} is {value}"
        for other in ({}, {names.PCI_LABELS[0]: "false"}, {names.CPU_VENDOR_LABEL: "Intel"}):
            if selected(one.spec, _MACHINE | other):
                yield f"{at} selects a node without a GPU, with none of {_text(_CARD)}, {_text(_BOARD)}, {_text(_TEGRA)}"
        yield from _of_machine(one, at)


def _serves(one: Workload) -> bool:
    """Whether a workload is for the pool's nodes; of a manifest that is made for several kinds of nodes, one is."""
    return not one.item["metadata"]["name"].startswith(("nvidia-driver-lanes-other", "nvidia-driver-default")) and (
        one.name != "nvidia-dcgm-exporter" or one.item["metadata"]["name"] != one.name
    )


def _switched_off(name: str) -> c.Iterator[tuple[str, str]]:
    yield names.OPERANDS_LABEL, "false"
    for value in (*placement.PAUSED, *([names.PRE_INSTALLED] if name == "nvidia-driver" else [])):
        yield f"{names.VENDOR}gpu.deploy.{SWITCHES[name]}", value


def _of_machine(one: Workload, at: str) -> c.Iterator[Finding]:
    """A driver is built for a kernel, a system and an architecture; what has its own object for each pool, leaves the others out."""
    fixed = {"nvidia-driver": [*_MACHINE], "nvidia-dcgm-exporter": ["pool"]}.get(one.name, [])
    for label in fixed:
        if selected(one.spec, _MACHINE | _CARD | {label: "other"}):
            yield f"{at} selects a node whose {label} is not {_MACHINE[label]}, for which the pod is not"


def alone(found: Manifests) -> c.Iterator[Finding]:
    """Only one driver fits on a node: a driver's pod keeps away from others, by node and by the labels that they and the vGPU manager have."""
    for one in found.workloads:
        if one.name != "nvidia-driver":
            continue
        at = f"{one.where}spec.affinity.podAntiAffinity"
        for what in ("nvidia-driver", "nvidia-vgpu-host-manager"):
            if not _avoids(one.spec, {COMPONENT: what}):
                yield f"{at} does not keep the pod from a node with a pod whose {COMPONENT} is {what} (labelSelector, topologyKey)"
        if _avoids(one.spec, {COMPONENT: "nvidia-device-plugin"}):
            yield f"{at} keeps the pod from a node with any other pod, whatever its {COMPONENT} (labelSelector)"
        if one.labels.get(COMPONENT) != "nvidia-driver":
            yield f"{one.where}metadata.labels: {COMPONENT} is not nvidia-driver, so other drivers do not keep away"


def _avoids(spec: Obj, labels: Labels) -> bool:
    """Whether a pod with these labels on a node keeps the pod away from it. No selector is for no pod, an empty one for all (api v0.36.4, core/v1/types.go)."""
    terms = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return any(
        term.get("topologyKey") == placement.HOSTNAME
        and term.get("labelSelector") is not None
        and _fits_all(term["labelSelector"].get("matchExpressions") or [], labels)
        for term in terms or ()
    )


def selected(spec: Obj, labels: Labels) -> bool:
    """Whether a pod's node affinity and selector fit a node with these labels."""
    selector = spec.get("nodeSelector") or {}
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    fits = selector.items() <= labels.items()
    if required is None:
        return fits
    terms = required.get("nodeSelectorTerms") or []
    return fits and any(_fits_all(term["matchExpressions"], labels) for term in terms if term.get("matchExpressions"))


def _fits_all(requirements: list[Obj], labels: Labels) -> bool:
    return all(_fits(one, labels) for one in requirements)


def _fits(one: Obj, labels: Labels) -> bool:
    key, operator, values = one["key"], one["operator"], one.get("values") or []
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    return (labels.get(key) in values) is (operator == "In")


#: Taints, and whether an agent and a controller tolerate them.
_TAINTS: tuple[tuple[Obj, bool, bool], ...] = (
    ({"key": "team", "value": "a", "effect": "NoSchedule"}, True, False),
    ({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}, True, False),
    ({"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"}, True, False),
    ({"key": "maintenance", "value": "now", "effect": "NoExecute"}, False, False),
    ({"key": "node-role.kubernetes.io/control-plane", "value": "", "effect": "NoSchedule"}, True, True),
    ({"key": "node-role.kubernetes.io/control-plane", "value": "true", "effect": "NoSchedule"}, True, True),
    ({"key": "node-role.kubernetes.io/control-plane", "value": "", "effect": "NoExecute"}, False, False),
)


def taints(found: Manifests) -> c.Iterator[Finding]:
    """An agent runs on tainted GPU nodes, a controller on a control plane, also of K3s, whose taint has a value; nobody stays where everybody has to go."""
    for one in found.workloads:
        tolerations = one.spec.get("tolerations") or []
        for taint, agent, controller in _TAINTS:
            wanted = controller if one.item["kind"] == "Deployment" else agent
            text = f"{taint['key']}={taint['value']}:{taint['effect']}"
            if any(_tolerates(toleration, taint) for toleration in tolerations) is not wanted:
                yield f"{one.where}spec.tolerations: the taint {text} is {'not ' if wanted else ''}tolerated"


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    """As ToleratesTaint of Kubernetes does (api v0.36.4, core/v1/toleration.go)."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool((toleration.get("value") or "") == taint["value"])


def preferred(found: Manifests) -> c.Iterator[Finding]:
    """A controller that has a preference prefers control planes, whatever the value of their label, and no other node."""
    role = "node-role.kubernetes.io/control-plane"
    for one in found.workloads:
        affinity = (one.spec.get("affinity") or {}).get("nodeAffinity") or {}
        terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        for labels, wanted in (({role: ""}, True), ({role: "true"}, True), ({"pool": "x"}, False)):
            needs = [(term.get("preference") or {}).get("matchExpressions") or [] for term in terms]
            if terms and any(need and _fits_all(need, labels) for need in needs) is not wanted:
                text = f"{'does not prefer' if wanted else 'prefers'} a node with {_text(labels)}"
                yield f"{one.where}spec.affinity.nodeAffinity {text} (preference, matchExpressions, {role}, Exists)"


def boards(found: Manifests) -> c.Iterator[Finding]:
    """The rule finds an integrated GPU by the vendor of its processor or by its kernel, either is enough, and finds none elsewhere."""
    label = {names.INTEGRATED_LABEL: "true"}
    for item in found.of("NodeFeatureRule"):
        for vendor, kernel, wanted in (
            ("NVIDIA", "6.8.0-generic", [label]),
            ("ARM", "5.15.148-tegra", [label]),
            ("Intel", rendered.KERNEL, []),
            ("", "tegra-5.15", []),
        ):
            features = {"cpu.model": {"vendor_id": vendor}, "kernel.version": {"full": kernel}}
            known = {"attributes": {name: {"elements": elements} for name, elements in features.items()}}
            made = [output["labels"] for rule in item["spec"]["rules"] if (output := rule_output(rule, known))]
            if made != wanted:
                rules = [rule.get("matchAny") for rule in item["spec"]["rules"]]
                yield f"{where(item)} spec.rules label a node with {features} by {made}, and not by {wanted}: matchAny is {rules}"


def _text(labels: Labels) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
