# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Number of nodes on which an update may replace the pods of a DaemonSet at once: one rule for all roles.

Kubernetes counts a node whose pod never becomes ready against maxUnavailable, in every update (kubernetes v1.36.4,
pkg/controller/daemon/update.go, rollingUpdate). So the share must leave room in addition to the failed nodes that a run allows, because
otherwise their number alone would block each change on all healthy nodes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts

#: No other pod needs these pods. Labels remain while a pod is missing: NFD's features belong to the node, those of GPU feature
#: discovery to its DaemonSet too (k8s-device-plugin v0.20.0, internal/lm/output.go).
OBSERVERS = frozenset({parts.NFD_WORKER, parts.DISCOVERY, parts.EXPORTER})
ALL = "100%"
#: For the others: without the plugin nothing new is scheduled, the end of the toolkit removes the nvidia runtime from the configuration
#: (nvidia-container-toolkit v1.20.0, cmd/nvidia-ctk-installer/main.go, Run), and that of the validator removes the proof, after which the plugin ends. A
#: faulty change must not affect every node. The minimum share that leaves room if one of two nodes has failed is more than half;
#: roles allow a tenth of failed nodes, rounded up.
MOST = "51%"


def limit(manifest: dict[str, t.Any]) -> None:
    """Sets maxUnavailable of a DaemonSet that is updated automatically. That of the driver is not: its type is OnDelete."""
    if manifest["kind"] == "DaemonSet" and manifest["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        share = ALL if parts.role_of(manifest["spec"]["template"]) in OBSERVERS else MOST
        manifest["spec"]["updateStrategy"]["rollingUpdate"] = {"maxUnavailable": share}
