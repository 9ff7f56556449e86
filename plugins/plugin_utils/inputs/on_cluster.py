# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in the public variables that can only be detected with the cluster. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.judge import Finding

#: Labels that stages of a run write, so that no node has them before the first one.
_OF_STAGES = (names.VENDOR, names.NFD, names.OURS)


def judge(given: c.Mapping[str, t.Any], fleet: c.Mapping[str, t.Any]) -> list[Finding]:
    """given: variables without other errors. fleet: the result of node_info, called with the excluded nodes."""
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
                "hwaccel_excluded_nodes", Fault(what, "hwaccel_excluded_nodes", why, "correct the name, or remove it")
            )
        )
    return found


def _comes_later(pool: Pool) -> bool:
    """Whether a pool may have no nodes: it is declared so, names nodes that gates wait for, or selects by nothing or by labels of a later stage."""
    if pool.may_be_empty or pool.nodes or not pool.selector:
        return True
    return any(requirement.key.startswith(_OF_STAGES) for requirement in selectors.parse(pool.selector))


def _empty(pool: Pool, where: str) -> Fault:
    next_step = "correct it, label the nodes, or set may_be_empty: true in the pool if it may have no nodes"
    return Fault(
        f"the selector {pool.selector!r} matches no node", where, "this pool would not be validated", next_step
    )
