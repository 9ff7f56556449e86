# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a fleet: reboots, new kernels and faults, from a fleet file to the input of the fleet agent. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.fleet_file import KERNEL, Nodes, Parser


@dataclasses.dataclass(frozen=True)
class Reboot:
    """A requested reboot of a node, with the kernel after the reboot ("": the same)."""

    node: str
    kernel: str = ""


def count_by_pool(fleet: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """One row for each pool, in the order of the file, for results and messages."""
    rows: dict[str, dict[str, t.Any]] = {}
    for node in fleet.get("nodes", {}).values():
        gpu = node["gpu"]
        row = rows.setdefault(
            node["pool"], {"name": node["pool"], "nodes": 0, "gpus": 0, "gpu_product": gpu["product"] if gpu else ""}
        )
        row["nodes"] += 1
        row["gpus"] += gpu["count"] if gpu else 0
    return list(rows.values())


def advance(old: t.Mapping[str, t.Any], new: dict[str, t.Any], reboots: t.Sequence[Reboot]) -> dict[str, t.Any]:
    """The fleet `new` after a change from `old`: kernels and operating systems only change by a reboot, so these nodes boot once more.

    A node that was rebooted into another kernel keeps it until the kernel in the fleet file changes
    (`declared_kernel` keeps the one at the reboot).
    """
    nodes: Nodes = {}
    restarts = {reboot.node: reboot for reboot in reboots}
    for name, desired in new["nodes"].items():
        node = dict(desired)
        declared = node.pop("declared_kernel", node["kernel"])
        before = old.get("nodes", {}).get(name)
        if before:
            if before.get("declared_kernel", before["kernel"]) == declared:
                node["kernel"] = before["kernel"]
            restart = restarts.get(name)
            if restart and restart.kernel:
                node["kernel"] = restart.kernel
            moved = any(before[field] != node[field] for field in ("kernel", "os_image"))
            node["boot"] = before["boot"] + (1 if restart or moved else 0)
        if node["kernel"] != declared:
            node["declared_kernel"] = declared
        nodes[name] = node
    return {**new, "nodes": nodes}


def check_reboots(requested: t.Any, names: t.Collection[str]) -> list[Reboot]:
    """The reboots of the option, or all errors in them."""
    faults = []
    reboots = []
    for index, entry in enumerate(requested or []):
        where = f"reboot[{index}]"
        node, kernel = entry.get("node") or "", entry.get("kernel") or ""
        if node not in names:
            faults.append(Fault(f"there is no node {node!r} in the fleet", where, next_step=_named(names)))
        if kernel and not KERNEL.fullmatch(kernel):
            faults.append(
                Fault(
                    f"{kernel!r} is not a kernel version",
                    where,
                    next_step="write it in the format of uname -r, such as 6.8.0-45-generic",
                )
            )
        reboots.append(Reboot(node, kernel))
    if faults:
        raise ManyFaults(faults)
    return reboots


def with_faults(fleet: dict[str, t.Any], requested: t.Any) -> dict[str, t.Any]:
    """The fleet with additional faults: [{name, node or pool, options}]. Raises ManyFaults if they are invalid."""
    parser = Parser()
    nodes: Nodes = {name: {**node, "faults": list(node["faults"])} for name, node in fleet["nodes"].items()}
    pools = {node["pool"] for node in nodes.values()}
    for index, entry in enumerate(requested or []):
        where = f"faults[{index}]"
        rest = {key: value for key, value in entry.items() if key not in ("node", "pool") and value is not None}
        checked = parser.faults([rest], where)
        node, pool = entry.get("node") or "", entry.get("pool") or ""
        if bool(node) == bool(pool):
            parser.wrong(where, "needs either a node or a pool")
        elif node and node not in nodes:
            parser.wrong(where, f"there is no node {node!r} in the fleet", _named(nodes))
        elif pool and pool not in pools:
            parser.wrong(where, f"there is no pool {pool!r} in the fleet", _named(pools))
        for name, one in nodes.items():
            if name == node or one["pool"] == pool:
                one["faults"] += [fault for fault in checked if fault not in one["faults"]]
    parser.finish()
    return {**fleet, "nodes": nodes}


def _named(names: t.Collection[str]) -> str:
    shown = sorted(names)[:8]
    return (
        ("there are " + ", ".join(shown) + (" …" if len(names) > len(shown) else "")) if shown else "the fleet is empty"
    )
