# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons for which a request is not approved: a closed list of codes, each with what to do next. Pure data.

Codes are results of the module, so that a playbook can act on them. What a rule observed is in the decision's `why`.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class RefusalReason:
    """next_step: for messages. permanent: another run refuses the same request again, whatever the cluster does, so that it may be denied."""

    next_step: str
    permanent: bool = False


_ATTACK = "find out who filed it: no kubelet files such a request"
_INVENTORY = "if it is a machine of this cluster, correct the inventory; else find out who filed it, and replace the bootstrap credentials"

REASONS: dict[str, RefusalReason] = {
    "UNKNOWN_SIGNER": RefusalReason("nothing: requests of other signers are not decided by this module"),
    "DENIED": RefusalReason("delete the request if it was denied by mistake; the kubelet files another one"),
    "FAILED": RefusalReason("read the condition Failed of the request: its signer refused it"),
    "FLOOD": RefusalReason(
        "find out who files so many requests (kubectl get csr); raise max_pending if so many machines join at once"
    ),
    "BAD_PEM": RefusalReason(_ATTACK, permanent=True),
    "BAD_REQUESTOR": RefusalReason("check the profile; if it is right, find out who filed the request", permanent=True),
    "BAD_USAGE": RefusalReason(_ATTACK, permanent=True),
    "BAD_SUBJECT": RefusalReason(_ATTACK, permanent=True),
    "BAD_KEY": RefusalReason(
        "let the kubelet make a key of RSA with 2048 bits or more, or of P-256, P-384 or P-521", permanent=True
    ),
    "BAD_SIGNATURE": RefusalReason(_ATTACK, permanent=True),
    "BAD_EXTENSION": RefusalReason(_ATTACK, permanent=True),
    "BAD_EXPIRATION": RefusalReason(_ATTACK, permanent=True),
    "NO_SAN": RefusalReason(
        "check the addresses in the status of the Node: the kubelet requests those", permanent=True
    ),
    "SAN_NOT_ALLOWED": RefusalReason(
        "if the machine has this name or address, add it to dns_names or ip_addresses; else find out who filed the request",
        permanent=True,
    ),
    "NOT_IN_INVENTORY": RefusalReason(_INVENTORY, permanent=True),
    "NODE_EXISTS": RefusalReason(
        "if the machine was installed again, delete its Node, or name it in allow_rejoin; else find out who filed the request"
    ),
    "NODE_MISSING": RefusalReason(
        "approve the machine's client request first, or wait until its kubelet has registered the Node"
    ),
    "NODE_UNREACHABLE": RefusalReason(
        "open the kubelet's port to this machine, or correct the inventory; then run again"
    ),
    "MACHINE_EXISTS": RefusalReason(
        "nothing: the cluster's own approver decides for machines that have a Machine object"
    ),
    "TOO_OLD": RefusalReason("nothing: the kubelet files another request; raise max_age if it has to be this one"),
    "SUPERSEDED": RefusalReason("nothing: a newer request of the node is approved"),
    "KEY_REUSED": RefusalReason("find out whether a disk was copied: each machine must make its own keys"),
    "TWO_NAMES": RefusalReason(
        "set one host name on the machine, and delete the Node or the request of the other name"
    ),
}
