# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node's DCGM exporter serves metrics: the gate `exporters`, which is not part of the chain and quarantines no node."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, trouble
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Expectation, Pods, Verdict
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts

GATE = "exporters"
#: The link that verdicts of this gate name.
EXPORTER = "exporter"
#: Init container in which the exporter waits for its node's driver.
PROOF = "driver-proof"


def held(node: NodeFacts, pods: Pods, expectation: Expectation, *, to_come: bool = False) -> Verdict | None:
    """The node's verdict at gate `driver`, if that is the reason why its exporter cannot start. None if the exporter can start, or has started.

    to_come: the node should have one.
    """
    exporter = pods.get(parts.EXPORTER)
    if exporter is None:
        return chain.judge("driver", node, pods, expectation) if to_come and not node.ready else None
    if exporter.ready:
        return None
    proof = exporter.init(PROOF)
    # If another deployment proves the driver, only the waiting exporter is observed.
    driver_known = not node.ready or parts.VALIDATOR in pods or parts.DRIVER in pods
    if not driver_known or (node.ready and proof is not None and proof.succeeded):
        return None
    verdict = chain.judge("driver", node, pods, expectation)
    # A GPU on which no CUDA kernel runs must still be monitored.
    return None if verdict.state == chain.PASSED or verdict.link == chain.CUDA else verdict


def judge(pods: Pods) -> Verdict:
    """The verdict on a node whose exporter does not wait for a driver."""
    exporter = pods.get(parts.EXPORTER)
    if exporter is None:
        return Verdict(
            chain.WAITING,
            EXPORTER,
            "no exporter pod is on the node",
            "check the DaemonSet's node selector, tolerations and events",
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
        next_step = (
            "check that the driver passed validation on this node: /run/nvidia/validations/driver-ready names its boot"
        )
        return Verdict(
            chain.WAITING, EXPORTER, reason, next_step, pod=exporter, container=PROOF, brief="waits for the driver"
        )
    main = exporter.containers[0].name if exporter.containers else ""
    if any(container.state == "running" for container in exporter.containers):
        return Verdict(
            chain.WAITING,
            EXPORTER,
            "the exporter is running and does not respond",
            "check its log",
            pod=exporter,
            container=main,
            brief="no response yet",
        )
    return Verdict(
        chain.WAITING, EXPORTER, "the exporter is starting", "check the pod's events", pod=exporter, container=main
    )
