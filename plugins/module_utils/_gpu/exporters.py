# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node's DCGM exporter serves metrics: the gate `exporters`, which lies beside the chain and keeps no node from new pods."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, trouble
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Expectation, Pods, Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts

GATE = "exporters"
#: What verdicts of this gate name in place of a link of the chain.
EXPORTER = "exporter"
#: Init container in which the exporter waits for its node's driver.
PROOF = "driver-proof"


def held(node: NodeFacts, pods: Pods, expectation: Expectation, *, to_come: bool = False) -> Verdict | None:
    """Why the node's exporter cannot start yet, where that is no fault of its own: the node's verdict at gate `driver`. None where it can, or has.

    to_come: the node is to have one.
    """
    exporter = pods.get(parts.EXPORTER)
    if exporter is None:
        return chain.judge("driver", node, pods, expectation) if to_come and not node.ready else None
    if exporter.ready:
        return None
    proof = exporter.init(PROOF)
    # Of a driver that somebody else proves, nothing is to be seen but that the exporter waits for it.
    driver_known = not node.ready or parts.VALIDATOR in pods or parts.DRIVER in pods
    if not driver_known or (node.ready and proof is not None and proof.succeeded):
        return None
    verdict = chain.judge("driver", node, pods, expectation)
    # A GPU on which no kernel runs is to be watched all the more.
    return None if verdict.state == chain.PASSED or verdict.link == chain.CUDA else verdict


def judge(pods: Pods) -> Verdict:
    """Of a node that is to have an exporter which nothing holds."""
    exporter = pods.get(parts.EXPORTER)
    if exporter is None:
        return Verdict(
            chain.WAITING,
            EXPORTER,
            "no exporter pod is on the node",
            "see the DaemonSet's node selector, tolerations and events",
            chain.GRACE,
        )
    if exporter.ready and not exporter.deleting:
        return Verdict(chain.PASSED, EXPORTER)
    if found := trouble.of_pod(exporter):
        state = chain.FAILED if found.state == "failed" else chain.WAITING
        return Verdict(
            state, EXPORTER, found.reason, found.next_step, chain.GRACE, exporter, found.container, found.brief
        )
    proof = exporter.init(PROOF)
    if proof is not None and proof.state == "running":
        reason = f"the exporter waits in {PROOF} for this node's driver"
        next_step = "see that the driver is proven on this node: /run/nvidia/validations/driver-ready names its boot"
        return Verdict(
            chain.WAITING, EXPORTER, reason, next_step, pod=exporter, container=PROOF, brief="waits for the driver"
        )
    main = exporter.containers[0].name if exporter.containers else ""
    if any(container.state == "running" for container in exporter.containers):
        return Verdict(
            chain.WAITING,
            EXPORTER,
            "the exporter runs and does not answer",
            "see its log",
            pod=exporter,
            container=main,
            brief="no answer yet",
        )
    return Verdict(chain.WAITING, EXPORTER, "the exporter starts", "see the pod's events", pod=exporter, container=main)
