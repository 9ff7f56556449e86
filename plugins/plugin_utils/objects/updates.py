# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On how many nodes at once an update may replace the pods of a DaemonSet: one rule for those of all roles.

Kubernetes counts a node whose pod never becomes ready against maxUnavailable, in every update (kubernetes v1.36.4,
pkg/controller/daemon/update.go, rollingUpdate). So the share must leave room beside the failed nodes that a run bears, or their
number alone keeps each change from all healthy nodes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts

#: Nothing that runs or starts needs a pod of theirs. Labels stay while it is away: NFD's findings belong to the node, those of GPU feature
#: discovery to its DaemonSet too (k8s-device-plugin v0.20.0, internal/lm/output.go).
OBSERVERS = frozenset({parts.NFD_WORKER, parts.DISCOVERY, parts.EXPORTER})
ALL = "100%"
#: Of the others: where the plugin is away nothing new is scheduled, the toolkit's end takes the nvidia runtime out of the configuration
#: (nvidia-container-toolkit v1.20.0, cmd/nvidia-ctk-installer/main.go, Run), the validator's closes the gate, after which the plugin lets go. A
#: change that does not work must not take that from every node. The least share that leaves room where one of two nodes has failed is more than half;
#: roles bear a tenth, rounded up.
MOST = "51%"


def limit(manifest: dict[str, t.Any]) -> None:
    """Write maxUnavailable on a DaemonSet that is updated by itself. That of the driver is not: its type is OnDelete."""
    if manifest["kind"] == "DaemonSet" and manifest["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        share = ALL if parts.role_of(manifest["spec"]["template"]) in OBSERVERS else MOST
        manifest["spec"]["updateStrategy"]["rollingUpdate"] = {"maxUnavailable": share}
