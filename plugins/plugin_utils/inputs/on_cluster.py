# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only the cluster shows to be wrong in the public variables. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.judge import Finding

#: Labels that stages of a run write: before the first one no node has them.
_OF_STAGES = (names.VENDOR, names.NFD, names.OURS)


def judge(given: c.Mapping[str, t.Any], fleet: c.Mapping[str, t.Any]) -> list[Finding]:
    """given: variables in which nothing else is wrong. fleet: what node_info returned, which was asked for the excluded nodes."""
    given_pools = given.get("hwaccel_pools")
    declared = values.list_of_text(given_pools) if isinstance(given_pools, str) else given_pools or []
    plain = [{key: item for key, item in pool.items() if key != "machines"} for pool in declared]
    counts = {row["name"]: row["nodes"] for row in fleet.get("pools") or ()}
    found = [
        Finding("hwaccel_pools", _empty(pool, f"hwaccel_pools[{position}].selector, pool {pool.name}"))
        for position, pool in enumerate(parse_pools(plain))
        if counts.get(pool.name) == 0 and not _comes_later(pool)
    ]
    for row in fleet.get("unknown_nodes") or ():
        why = f"did you mean {row['near']}?" if row["near"] else ""
        what = f"the cluster has no node {row['name']}"
        found.append(
            Finding(
                "hwaccel_excluded_nodes", Fault(what, "hwaccel_excluded_nodes", why, "correct the name, or take it out")
            )
        )
    return found


def _comes_later(pool: Pool) -> bool:
    """Whether a pool without nodes is no fault: it says so, names nodes that gates wait for, selects nothing itself, or by labels of a stage to come."""
    if pool.may_be_empty or pool.nodes or not pool.selector:
        return True
    return any(requirement.key.startswith(_OF_STAGES) for requirement in selectors.parse(pool.selector))


def _empty(pool: Pool, where: str) -> Fault:
    next_step = "correct it, label the nodes, or say may_be_empty: true in the pool where its nodes come and go"
    return Fault(
        f"the selector {pool.selector!r} matches no node", where, "nothing of this pool would be proven", next_step
    )
