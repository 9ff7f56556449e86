# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rotations of certificate authorities, tokens and keys share: results in plain data, steps, and why none is taken. Pure."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

_Data = c.Mapping[str, t.Any]
#: A result without any step, in the form of kubeadm.rotation.
NOTHING: dict[str, t.Any] = {
    "faults": [],
    "lines": [],
    "old": "",
    "owner": "",
    "begins": [],
    "steps": [],
    "acts": False,
    "changes": [],
}


def refused(faults: c.Iterable[Fault]) -> dict[str, t.Any]:
    return {**NOTHING, "faults": [fault.as_dict() for fault in faults]}


def step(do: str, hosts: c.Sequence[str], text: str) -> dict[str, t.Any]:
    """text: with {} for the hosts."""
    return {"do": do, "hosts": list(hosts), "text": text.format(some(hosts))}


def read(printed: str) -> _Data | None:
    """What a script has printed on a machine, None if it could not be observed."""
    return dict(json.loads(printed)) if printed else None


def unseen(lost: c.Collection[str], why: str) -> list[Fault]:
    """lost: names of machines that could not be observed. why: they are needed."""
    if not lost:
        return []
    next_step = "bring it back, or set hwaccel_lost: true for it if it is gone for good"
    return [Fault(f"{some(lost)} could not be observed", "", why, next_step)]


def strangers(own: c.Iterable[str], wish: _Data, why: str, next_step: str) -> list[Fault]:
    """Nodes of the cluster that are no machine's. own: names of nodes of machines. why: they would be locked out. next_step: if the cluster was not asked."""
    if not wish["nodes"]:
        return [Fault(f"{wish['cluster']} could not be asked for its nodes", "", "", next_step)]
    others = sorted(set(wish["nodes"]) - {*own, *wish["lost"]})
    if not others:
        return []
    next_step = "add their machines to the inventory, or let those that are retired leave first"
    return [Fault(f"{some(others)} is a node, and no machine that stays", wish["cluster"], why, next_step)]


def other(wish: _Data, old: str, kind: str = "certificate authority", has: str = "the authority of {} is {}") -> Fault:
    """The confirmation is that of another one than the one of now. has: with {} for the cluster and for what it has."""
    why = f"it is {wish['confirm']}, and {has.format(wish['cluster'], old)}"
    next_step = "compare the inventory with the cluster that is meant"
    return Fault(f"hwaccel_confirm names another {kind}, so nothing was changed", "hwaccel_confirm", why, next_step)
