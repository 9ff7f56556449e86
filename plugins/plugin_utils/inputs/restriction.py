# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is restricted to pools or nodes: which nodes it leaves out, and which objects it may change. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import label_value
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

Row = c.Mapping[str, t.Any]
#: Actions of manifest_set that leave an object as it is.
_NOTHING = ("unchanged", "kept")
_LISTED = 5


@dataclasses.dataclass(frozen=True)
class Restriction:
    """Of both, those that are given: nodes in these pools, and of them these nodes."""

    pools: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pools or self.nodes)

    @property
    def variables(self) -> str:
        given = {"hwaccel_only_pools": self.pools, "hwaccel_only_nodes": self.nodes}
        return " and ".join(name for name, value in given.items() if value)

    def faults(self, fleet: Row) -> list[Fault]:
        """Names that the cluster does not have. fleet: the result of node_info with rows."""
        found = []
        for variable, kind, given, known in (
            ("hwaccel_only_pools", "pool", self.pools, [row["name"] for row in fleet["pools"]]),
            ("hwaccel_only_nodes", "node", self.nodes, [row["name"] for row in fleet["nodes"]]),
        ):
            for name in given:
                if name not in known:
                    near = values.nearest(name, known)
                    why = f"did you mean {near}?" if near else f"it has {', '.join(known[:_LISTED])}"
                    found.append(
                        Fault(f"the cluster has no {kind} {name}", variable, why, "correct the name, or remove it")
                    )
        return found

    def left_out(self, fleet: Row) -> list[str]:
        """Names of the nodes that the run does not judge or mark."""
        return [row["name"] for row in fleet["nodes"] if not self._has(row)]

    def _has(self, row: Row) -> bool:
        return (not self.pools or row["pool"] in self.pools) and (not self.nodes or row["name"] in self.nodes)

    def refused(self, predicted: Row, objects: c.Iterable[Row]) -> str:
        """Why the objects cannot be applied, empty if only those of the pools would change.

        predicted: the result of manifest_set in check mode. objects: the desired ones; those of a pool have a label with its name.
        """
        pools = set() if self.nodes else {label_value(name) for name in self.pools}
        own = {
            _key(body["kind"], body["metadata"])
            for body in objects
            if (body["metadata"].get("labels") or {}).get(names.DRIVER_POOL_LABEL) in pools
        }
        others = [
            f"{row['kind']} {row['name']}"
            for row in predicted.get("objects") or ()
            if row["action"] not in _NOTHING and _key(row["kind"], row) not in own
        ]
        if not others:
            return ""
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        return (
            f"this run is restricted by {self.variables}, and would change objects that also others need: "
            f"{', '.join(others[:_LISTED])}{more}. Next: run without {self.variables}, or with --check to see the changes"
        )


def _key(kind: str, row: Row) -> tuple[str, str, str]:
    return kind, row.get("namespace") or "", row["name"]
