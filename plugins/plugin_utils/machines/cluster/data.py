# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a cluster, from plain data as Ansible has them. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import AGENT, Answer, Found, Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.plan import (
    SILENT,
    Cluster,
    Wish,
    decide,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import version_of

_Data = c.Mapping[str, t.Any]


def planned(
    machines: c.Iterable[_Data],
    plans: c.Mapping[str, _Data],
    wish: _Data,
    answer: Answer,
    cluster: Cluster = SILENT,
) -> dict[str, t.Any]:
    """As plan.Decision documents it. machines: as inventory.read returns them. plans: of the role for each machine that could be observed, by its host.

    wish: version, endpoint, even_servers, at_a_time, a number or a percentage of agents, retired, machines that are to leave, and lost, those that are gone.
    """
    found = [_machine(one, plans.get(one["host"])) for one in machines]
    found += [_machine(one, plans.get(one["host"]), retired=True) for one in wish.get("retired", ())]
    found += [_machine(one, None, lost=True) for one in wish.get("lost", ())]
    agents = sum(one.role == AGENT and not (one.retired or one.lost) for one in found)
    return decide(
        found,
        Wish(
            version_of(str(wish["version"])),
            str(wish["endpoint"]),
            bool(wish["even_servers"]),
            batch(str(wish["at_a_time"]), agents),
        ),
        answer,
        cluster,
    ).as_dict()


def batch(given: str, total: int) -> int:
    """Machines of a batch, at least one. given: a number or a percentage, as `serial` takes it."""
    text = given.strip()
    number = total * int(text[:-1]) // 100 if text.endswith("%") else int(text)
    return max(1, number)


def _machine(given: _Data, plan: _Data | None, *, retired: bool = False, lost: bool = False) -> Machine:
    return Machine(
        given["host"],
        given["node"],
        given["address"],
        given["role"],
        Found.of(plan["found"]) if plan else None,
        plan["identity"] if plan else {},
        given["labels"],
        tuple(given["taints"]),
        retired,
        bool(plan and (plan.get("leave") or {}).get("left")),
        lost,
        tuple((plan or {}).get("alike") or ()),
    )
