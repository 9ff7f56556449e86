# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the filters on the manifests of the roles, and simulates which nodes the resulting DaemonSets select."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.filter.stage_objects import stage_objects
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

TEXTS = {role: stack.texts(role) for role in stack.ROLES}
TRAINING = {"name": "training", "selector": "pool=training", "gpu": {"product": "H100", "count": 8}}
INFERENCE = {"name": "inference", "selector": "pool=inference", "gpu": {"product": "L4", "count": 2}}


def run(role: str, fleet: dict[str, t.Any] | None = None, **more: t.Any) -> dict[str, t.Any]:
    return stage_objects(TEXTS[role], role, stack.settings(role, **more), fleet)


def daemon_sets(plan: dict[str, t.Any], prefix: str = "") -> list[dict[str, t.Any]]:
    return [one for one in plan["objects"] if one["kind"] == "DaemonSet" and one["metadata"]["name"].startswith(prefix)]


def takes(daemon_set: dict[str, t.Any], labels: dict[str, str]) -> bool:
    """Whether the DaemonSet controller would create a pod on a node with these labels."""
    affinity = daemon_set["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity")
    if not affinity:
        return True
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return any(all(holds(one, labels) for one in term["matchExpressions"]) for term in terms)


def holds(one: dict[str, t.Any], labels: dict[str, str]) -> bool:
    value = labels.get(one["key"])
    return {
        "In": value in one.get("values", ()),
        "NotIn": value not in one.get("values", ()),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[one["operator"]]


def node(pool: str = "", kernel: str = "6.8.0-134-generic", **more: str) -> dict[str, str]:
    nfd = "feature.node.kubernetes.io/"
    base = {
        nfd + "pci-10de.present": "true",
        nfd + "kernel-version.full": kernel,
        nfd + "system-os_release.ID": "ubuntu",
        nfd + "system-os_release.VERSION_ID": "24.04",
        "kubernetes.io/arch": "amd64",
        **({"pool": pool} if pool else {}),
    }
    return base | more
