# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a cluster's summary as a table."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import table
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import brought

DOCUMENTATION = r"""
name: fleet_table
version_added: 0.1.0
short_description: A cluster's summary as lines of a table
description:
  - Writes one line for each pool with its nodes, kernels, drivers, expected and observed GPUs, and the gates that it has passed.
  - After the table there is a line for each part of the GPU stack that this collection does not provide, if the summary has C(providers).
  - If nodes were validated, it also shows how many are proven, unproven (busy or cordoned) and failed.
author:
  - hwaccel.gpu contributors (@hwaccel)
positional: _input
options:
  _input:
    description: A summary from P(hwaccel.gpu.gate_summary#filter).
    type: dict
    required: true
  began:
    description: Start of the run in seconds since 1970. If it is set, the time that each pool took since then is shown.
    version_added: 0.2.0
    type: float
"""

EXAMPLES = r"""
- name: Show the fleet
  ansible.builtin.debug:
    msg: "{{ hwaccel_summary | hwaccel.gpu.fleet_table }}"
"""

RETURN = r"""
_value:
  description: Lines of the table.
  type: list
  elements: str
"""

_HEADER = (
    "pool",
    "nodes",
    "kernel",
    "driver",
    "GPUs expected",
    "GPUs seen",
    "gates passed",
    "proofs",
    "time",
    "remark",
)
_OPTIONAL = {_HEADER.index("proofs"), _HEADER.index("time")}


def fleet_table(summary: dict[str, t.Any], began: float | None = None) -> list[str]:
    """See DOCUMENTATION."""
    rows = [
        _row(pool, "" if began is None else f"{pool['settled'] - float(began):.0f} s")
        for pool in summary.get("pools") or ()
    ]
    # Without a validation or a start of the run, their columns are omitted.
    shown = [column for column in range(len(_HEADER)) if column not in _OPTIONAL or any(row[column] for row in rows)]
    header, *rows = [tuple(row[column] for column in shown) for row in (_HEADER, *rows)]
    providers = brought.lines(summary.get("providers") or ())
    return [*table(header, rows), *([""] if providers else []), *providers]


def _row(pool: dict[str, t.Any], time: str) -> tuple[str, ...]:
    simulated, nodes = pool.get("simulated") or 0, pool.get("nodes") or 0
    remark = "" if not simulated else "simulated" if simulated == nodes else f"{simulated} simulated"
    return (
        str(pool.get("pool", "")),
        str(pool.get("nodes", "")),
        ", ".join(pool.get("kernels") or ()),
        ", ".join(pool.get("drivers") or ()),
        str(pool.get("expected", "")),
        str(pool.get("seen", "")),
        ", ".join(pool.get("gates") or ()),
        _proofs(pool),
        time,
        remark,
    )


def _proofs(pool: dict[str, t.Any]) -> str:
    """ "7 proven, 1 unproven"; only a validation reports unproven nodes."""
    counts = (
        {"proven": pool["passed"], "unproven": pool["unproven"], "failed": pool["failed"]} if "unproven" in pool else {}
    )
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, t.Any]:
        return {"fleet_table": fleet_table}
