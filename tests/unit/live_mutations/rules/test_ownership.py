# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels, names and selectors."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import ownership
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import pod, put, without

PART_OF = "app.kubernetes.io/part-of"
ROWS: list[sets.Row] = [
    (ownership.owned, "Namespace", "gpu-nodes", without("metadata", "labels", PART_OF), PART_OF),
    (
        ownership.owned,
        "ServiceAccount",
        "nfd-gc",
        put("metadata", "labels", ownership.COMPONENT, "x"),
        "as feature-discovery",
    ),
    (
        ownership.owned,
        "Deployment",
        "nfd-gc",
        without("spec", "template", "metadata", "labels", PART_OF),
        "spec.template.metadata.labels",
    ),
    (
        ownership.owned,
        "Deployment",
        "nfd-gc",
        put("spec", "template", "metadata", "labels", ownership.COMPONENT, "x"),
        "neither",
    ),
    (
        ownership.of_driver,
        "DaemonSet",
        "nvidia-driver",
        put("metadata", "labels", "hwaccel.gpu/pool", "x"),
        "hwaccel.gpu/pool",
    ),
    (
        ownership.of_driver,
        "DaemonSet",
        "nvidia-driver",
        put("spec", "template", "spec", "containers", 0, "image", "nvcr.io/nvidia/driver:580.1-ubuntu24.04"),
        "the image nvcr.io/nvidia/driver:580.1-ubuntu24.04",
    ),
    (
        ownership.of_driver,
        "DaemonSet",
        "nvidia-driver",
        without("spec", "template", "metadata", "labels", "hwaccel.gpu/kernel"),
        "kernel",
    ),
    (ownership.configured, "ConfigMap", "nfd-worker-conf", put("data", "x", "y"), "hwaccel.gpu/config-hash"),
    (
        ownership.configured,
        "DaemonSet",
        "nfd-worker",
        without("spec", "template", "metadata", "annotations"),
        "hwaccel.gpu/config-hash",
    ),
    (
        ownership.default_container,
        "DaemonSet",
        "nvidia-driver",
        put("spec", "template", "metadata", "annotations", {"kubectl.kubernetes.io/default-container": "x"}),
        "names no container",
    ),
    (
        ownership.default_container,
        "DaemonSet",
        "nvidia-driver",
        put("spec", "template", "metadata", "annotations", {}),
        "is missing",
    ),
    (ownership.named, "Deployment", "nfd-gc", put("metadata", "name", "gc"), "metadata.name"),
    (ownership.named, "Deployment", "nfd-gc", pod(put("serviceAccountName", "nfd-master")), "serviceAccountName"),
    (ownership.named, "RoleBinding", "nfd-worker", put("metadata", "name", "x"), "what it binds, nfd-worker"),
    (ownership.named, "ConfigMap", "hwaccel-gpu-prometheus", put("metadata", "name", "x"), "no page tells"),
    (
        ownership.named,
        "ConfigMap",
        "hwaccel-gpu-dashboard-job",
        put("metadata", "name", "hwaccel-gpu-dashboard-x"),
        "no page tells",
    ),
    (ownership.selecting, "Deployment", "nfd-gc", put("spec", "selector", "matchLabels", {"a": "b"}), "no app"),
    (
        ownership.selecting,
        "DaemonSet",
        "nvidia-driver",
        without("spec", "selector", "matchLabels", "hwaccel.gpu/class"),
        "select pods of nvidia-driver-lanes-other-kernels",
    ),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
