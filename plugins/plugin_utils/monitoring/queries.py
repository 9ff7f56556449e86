# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of PromQL that rules and dashboards share.

In addition to the exporter, kube-state-metrics with its default metrics is needed (c92fe0c5, docs/metrics). No label of nodes or pods is used,
because these are only exported if its allowlist contains them.
"""

from __future__ import annotations

import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import resources

#: Labels that identify a GPU, regardless of job and exporter pod.
GPU = "node, gpu, UUID, modelName"


def by_node(expression: str) -> str:
    """Adds the label `node`. The exporter's label is Hostname, and hostname since NVIDIA/dcgm-exporter #655; its value is NODE_NAME."""
    inner = f'label_replace({expression}, "node", "$1", "hostname", "(.+)")'
    return f'label_replace({inner}, "node", "$1", "Hostname", "(.+)")'


def per_gpu(expression: str) -> str:
    """One value for each GPU. Labels of jobs are removed, because otherwise an alert would restart with each job."""
    return f"max by ({GPU}) ({by_node(expression)})"


def sanitized(resource: str) -> str:
    """A resource's name as in kube-state-metrics (internal/store/utils.go, SanitizeLabelName)."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", resource)


def gpu_resources() -> str:
    """A pattern for the names of all GPU resources."""
    whole, mig, shared = map(sanitized, (resources.WHOLE, resources.MIG_PREFIX, resources.SHARED_SUFFIX))
    return f"({whole}|{mig}.+)({shared})?"


def pods_of(daemon_sets: str) -> str:
    """Pods of DaemonSets whose names match a pattern, with the labels node and created_by_name."""
    return f'kube_pod_info{{created_by_kind="DaemonSet", created_by_name=~"{daemon_sets}"}}'


def not_ready(daemon_sets: str) -> str:
    """Nodes on which a pod of these DaemonSets is not ready."""
    return f'max by (node) ({pods_of(daemon_sets)} unless on (namespace, pod) (kube_pod_status_ready{{condition="true"}} == 1))'
