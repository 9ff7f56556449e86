# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces: created in advance, or by the first stage of a run that needs them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import (
    Manifest,
    StagePlan,
    containers,
    listed,
    pod_template,
)

#: https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces
POD_SECURITY = "pod-security.kubernetes.io/"
PRIVILEGED, RESTRICTED = "privileged", "restricted"


def needed(
    objects: c.Sequence[Manifest],
    set_name: str,
    settings: c.Mapping[str, t.Any],
    facts: c.Mapping[str, t.Any] | None,
    made: StagePlan,
) -> list[Manifest]:
    """The Namespaces of these objects that are members of this set.

    It omits those that an earlier stage of the run creates (setting `namespaces_before`), and existing ones of others. These are used
    unchanged, and are an error of the plan if their Pod Security level does not admit the pods.
    """
    there = {row["name"]: row for row in (facts or {}).get("namespaces") or ()}
    names = {one["metadata"]["namespace"] for one in objects if one["metadata"].get("namespace")}
    found = []
    for name in sorted(names - set(listed(settings.get("namespaces_before")))):
        level, row = _level(name, objects), there.get(name)
        if row is None or row["set"] == set_name:
            found.append(_namespace(name, level))
        elif not row["set"]:
            made.notes.append(f"namespace {name} exists and is used unchanged")
            made.faults += _level_faults(name, level, row["pod_security"])
    return found


def _level_faults(name: str, level: str, enforced: str) -> list[Fault]:
    """Pods of the restricted profile are admitted at each level, others only at `privileged`. Without the label, the cluster's default applies."""
    if level == RESTRICTED or enforced == PRIVILEGED:
        return []
    label, why = (
        f"{POD_SECURITY}enforce",
        "node agents mount folders of the host, and the role does not change labels of a namespace that it did not create",
    )
    next_step = f"kubectl label --overwrite namespace {name} {label}={PRIVILEGED}"
    return [
        Fault(
            f"namespace {name} does not admit node agents",
            f"its label {label} is {enforced or 'missing'}",
            why,
            next_step,
        )
    ]


def _namespace(name: str, level: str) -> Manifest:
    labels = {POD_SECURITY + mode: level for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _level(name: str, objects: c.Iterable[Manifest]) -> str:
    """Whether pods mount folders of the host or run privileged, as node agents do."""
    templates = [pod_template(one) for one in objects if one["metadata"].get("namespace") == name]
    return PRIVILEGED if any(_touches_host(template) for template in templates if template) else RESTRICTED


def _touches_host(template: Manifest) -> bool:
    spec = template["spec"]
    return (
        any(spec.get(field) for field in ("hostPID", "hostNetwork", "hostIPC"))
        or any("hostPath" in volume for volume in spec.get("volumes", ()))
        or any((one.get("securityContext") or {}).get("privileged") for one in containers(template))
    )
