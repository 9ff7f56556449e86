# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that pods select, and taints that they tolerate."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import placement
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules.sets import pod, put, without

REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
APART = ("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0)
PREFERRED = ("affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", 0, "preference")
ROWS: list[sets.Row] = [
    (
        placement.preferred,
        "Deployment",
        "nfd-master",
        pod(put(*PREFERRED, {})),
        "does not prefer a node with node-role",
    ),
    (
        placement.preferred,
        "Deployment",
        "nfd-master",
        pod(put(*PREFERRED, "matchExpressions", [{"key": "x", "operator": "DoesNotExist"}])),
        " prefers a node with pool=x",
    ),
    (
        placement.nodes,
        "DaemonSet",
        "nvidia-validator",
        pod(without(*REQUIRED, 2)),
        "excludes the node with feature.node.kubernetes.io/cpu-model",
    ),
    (
        placement.nodes,
        "DaemonSet",
        "nvidia-validator",
        pod(without(*REQUIRED, 0, "matchExpressions", 1)),
        "although nvidia.com/gpu.deploy",
    ),
    (
        placement.nodes,
        "DaemonSet",
        "nvidia-validator",
        pod(without(*REQUIRED, 0, "matchExpressions", 0)),
        "without a GPU",
    ),
    (
        placement.nodes,
        "DaemonSet",
        "nvidia-driver",
        pod(without(*REQUIRED, 0, "matchExpressions", 4)),
        "kubernetes.io/arch is not amd64",
    ),
    (placement.alone, "DaemonSet", "nvidia-driver", pod(put(*APART, "topologyKey", "x")), "is nvidia-driver"),
    (placement.alone, "DaemonSet", "nvidia-driver", pod(put(*APART, "labelSelector", {})), "any other pod"),
    (placement.alone, "DaemonSet", "nvidia-driver", pod(without(*APART, "labelSelector")), "is nvidia-driver"),
    (
        placement.taints,
        "DaemonSet",
        "nfd-worker",
        pod(without("tolerations", 0, "effect")),
        "maintenance=now:NoExecute is tolerated",
    ),
    (
        placement.taints,
        "DaemonSet",
        "nfd-worker",
        pod(without("tolerations", 1)),
        "nvidia.com/gpu=present:NoExecute is not tolerated",
    ),
    (
        placement.taints,
        "Deployment",
        "nfd-gc",
        pod(without("tolerations", 0, "operator")),
        "=true:NoSchedule is not tolerated",
    ),
    (
        placement.boards,
        "NodeFeatureRule",
        "hwaccel-gpu",
        without("spec", "rules", 0, "matchAny", 0),
        "'vendor_id': 'NVIDIA'",
    ),
    (
        placement.boards,
        "NodeFeatureRule",
        "hwaccel-gpu",
        put("spec", "rules", 0, "matchAny", []),
        "'vendor_id': 'Intel'",
    ),
]


test_what_is_wrong_is_said = sets.checked(ROWS)
