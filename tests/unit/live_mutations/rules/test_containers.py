# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers may do on their node."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import containers
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, pod, put, without

ENFORCE = "pod-security.kubernetes.io/enforce"
ROWS: list[sets.Row] = [
    (containers.on_the_host, "DaemonSet", "nfd-worker", container(put("name", "x")), "x has no row"),
    (
        containers.on_the_host,
        "DaemonSet",
        "nfd-worker",
        container(put("securityContext", "privileged", True)),
        "securityContext.privileged",
    ),
    (
        containers.on_the_host,
        "DaemonSet",
        "nfd-worker",
        container(put("volumeMounts", 0, "readOnly", False)),
        "'/boot': 'rw'",
    ),
    (containers.on_the_host, "DaemonSet", "nvidia-driver", pod(without("hostPID")), "hostPID"),
    (
        containers.on_the_host,
        "DaemonSet",
        "nvidia-driver",
        pod(without("initContainers")),
        '"k8s-driver-manager" of the table',
    ),
    (
        containers.confined,
        "DaemonSet",
        "nfd-worker",
        container(without("securityContext", "allowPrivilegeEscalation")),
        "allowPrivilegeEscalation",
    ),
    (
        containers.confined,
        "DaemonSet",
        "nfd-worker",
        container(put("securityContext", "capabilities", {})),
        "capabilities.drop",
    ),
    (containers.confined, "Deployment", "nfd-gc", pod(put("securityContext", "runAsNonRoot", False)), "runAsNonRoot"),
    (containers.confined, "Deployment", "nfd-gc", pod(without("securityContext", "seccompProfile")), "seccompProfile"),
    (containers.users, "Deployment", "nfd-gc", pod(without("securityContext", "runAsUser")), "runAsUser is not set"),
    (
        containers.levels,
        "Namespace",
        "gpu-controllers",
        put("metadata", "labels", ENFORCE, "baseline"),
        "restricted is what its pods need",
    ),
    (
        containers.levels,
        "Namespace",
        "gpu-nodes",
        without("metadata", "labels", ENFORCE),
        "privileged is what its pods need",
    ),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
