# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes and mounts."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import volumes
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, pod, put, without

ROWS: list[sets.Row] = [
    (
        volumes.paths,
        "DaemonSet",
        "nvidia-container-toolkit",
        pod(put("volumes", 2, "hostPath", "type", "")),
        "depends on their order",
    ),
    (
        volumes.paths,
        "DaemonSet",
        "nvidia-driver",
        pod(put("volumes", 1, "hostPath", "type", "Directory")),
        "after a reboot there is none",
    ),
    (
        volumes.paths,
        "DaemonSet",
        "nvidia-device-plugin",
        pod(without("volumes", 2, "hostPath", "type")),
        "an empty one",
    ),
    (volumes.used, "DaemonSet", "nfd-worker", pod(without("volumes", 0, "hostPath")), "has no source"),
    (volumes.used, "DaemonSet", "nfd-worker", container(without("volumeMounts", 0)), "no container mounts host-boot"),
    (
        volumes.read_only,
        "DaemonSet",
        "nfd-worker",
        container(put("volumeMounts", 5, "readOnly", False)),
        "which is configuration",
    ),
    (
        volumes.read_only,
        "DaemonSet",
        "nvidia-container-toolkit",
        container(without("volumeMounts", 10, "readOnly")),
        "2 containers may write validated",
    ),
    (volumes.shared, "DaemonSet", "nvidia-container-toolkit", container(without("volumeMounts", 10)), "are not two"),
    (
        volumes.propagation,
        "DaemonSet",
        "nvidia-driver",
        container(without("volumeMounts", 0, "mountPropagation")),
        "nobody sees the driver's root",
    ),
    (
        volumes.propagation,
        "DaemonSet",
        "nvidia-validator",
        container(without("volumeMounts", 1, "mountPropagation")),
        "is not seen",
    ),
    (
        volumes.propagation,
        "DaemonSet",
        "nvidia-validator",
        container(put("volumeMounts", 1, "mountPropagation", "Bidirectional")),
        "mounts nothing there",
    ),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
