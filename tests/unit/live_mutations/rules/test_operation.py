# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, update and end of pods, and the GPUs that they are given."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import operation
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import container, pod, put, without

STOP = ("lifecycle", "preStop", "exec", "command")
ROWS: list[sets.Row] = [
    (operation.single, "Deployment", "nfd-master", without("spec", "strategy"), "and not Recreate"),
    (
        operation.lasting,
        "DaemonSet",
        "nvidia-dcgm-exporter",
        container(put("livenessProbe", "failureThreshold", 3)),
        "45, less than 120",
    ),
    (
        operation.lasting,
        "DaemonSet",
        "nvidia-driver",
        container(without("startupProbe", "failureThreshold")),
        "30, less than 1200",
    ),
    (
        operation.lasting,
        "DaemonSet",
        "nvidia-device-plugin",
        container(put("livenessProbe", "failureThreshold", 3)),
        "45, and not three minutes",
    ),
    (
        operation.lasting,
        "DaemonSet",
        "nvidia-validator",
        container(put("readinessProbe", "failureThreshold", 1)),
        "by chance",
    ),
    (operation.once, "Pod", "gpu-validation", put("spec", "restartPolicy", "Always"), "and not Never"),
    (operation.once, "Pod", "gpu-validation", without("spec", "runtimeClassName"), "by the runtime alone"),
    (
        operation.pulled,
        "Deployment",
        "nfd-gc",
        container(put("image", "registry.k8s.io/nfd/node-feature-discovery:latest")),
        "no tag that stays",
    ),
    (operation.pulled, "Deployment", "nfd-gc", container(without("imagePullPolicy")), "imagePullPolicy is None"),
    (
        operation.updated,
        "DaemonSet",
        "nvidia-validator",
        put("spec", "updateStrategy", "rollingUpdate", {"maxUnavailable": "100%"}),
        "51%",
    ),
    (
        operation.updated,
        "DaemonSet",
        "nvidia-driver",
        put("spec", "updateStrategy", {"type": "RollingUpdate"}),
        "OnDelete",
    ),
    (operation.ranked, "DaemonSet", "nvidia-validator", pod(without("priorityClassName")), "priorityClassName"),
    (operation.handlers, "DaemonSet", "nvidia-validator", pod(put("runtimeClassName", "x")), 'no RuntimeClass "x"'),
    (
        operation.handlers,
        "DaemonSet",
        "nvidia-validator",
        pod(without("runtimeClassName")),
        "runtimeClassName is missing",
    ),
    (operation.handlers, "RuntimeClass", "nvidia", put("handler", "x"), "handler x"),
    (operation.given, "DaemonSet", "nvidia-driver", container(put("env", [])), "NVIDIA_VISIBLE_DEVICES is neither"),
    (
        operation.given,
        "DaemonSet",
        "nvidia-device-plugin",
        container(put("env", 6, "value", "utility")),
        "need compute,utility",
    ),
    (
        operation.switched,
        "DaemonSet",
        "nvidia-driver",
        container(put("env", 3, "value", "")),
        "KERNEL_MODULE_TYPE is empty",
    ),
    (
        operation.switched,
        "DaemonSet",
        "nvidia-driver",
        container(without("env", 3, "value")),
        "KERNEL_MODULE_TYPE has no value",
    ),
    (
        operation.ended,
        "DaemonSet",
        "nvidia-validator",
        pod(put("terminationGracePeriodSeconds", 1)),
        "terminationGracePeriodSeconds",
    ),
    (operation.ended, "DaemonSet", "nvidia-driver", container(without("lifecycle")), "leaves the node open"),
    (operation.ended, "DaemonSet", "nvidia-driver", container(put(*STOP, ["x"])), "does not remove files"),
    (
        operation.ended,
        "DaemonSet",
        "nvidia-driver",
        container(put(*STOP, 2, "rm -f /run/nvidia/validations/x")),
        "nobody looks at",
    ),
    (
        operation.patient,
        "DaemonSet",
        "nvidia-validator",
        container(without("readinessProbe", "timeoutSeconds")),
        "the probe runs nvidia-smi",
    ),
    (operation.linked, "Deployment", "nfd-gc", pod(without("enableServiceLinks")), "not the same in all pods"),
    (operation.single, "Deployment", "nfd-gc", put("spec", "replicas", 2), "elects no leader"),
    (
        operation.digests,
        "DaemonSet",
        "nvidia-driver",
        container(put("env", 4, "value", "x")),
        "DRIVER_CONFIG_DIGEST is not the same",
    ),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
