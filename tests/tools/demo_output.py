# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the last lines of `make demo` with the fleet: the table of pools, and the paths of the cluster's files."""

from __future__ import annotations

import pathlib
import re
import typing as t

COLUMNS = [
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
]
KUBECONFIG_MODE = 0o600


def faults(text: str, pools: list[dict[str, t.Any]], declared: set[str]) -> list[str]:
    """Problems in the output of a run.

    pools: of a fleet file, each with count, kernel, and gpu.count if it has GPUs. They must differ in these, because the table may have other names.
    declared: names of the pools in the inventory, which the table has to contain.
    """
    lines = text.splitlines()
    return [*_table_faults(_table(lines), pools, declared), *_file_faults(lines)]


def _table(lines: list[str]) -> list[dict[str, str]]:
    """The rows by column. The line below the header shows where columns start."""
    first = next((number for number, line in enumerate(lines) if re.match("pool +nodes +", line)), None)
    if first is None:
        return []
    header, rule, *rest = lines[first:]
    starts = [match.start() for match in re.finditer("-+", rule)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    rows = rest[: rest.index("")] if "" in rest else rest
    return [{header[begin:end].strip(): row[begin:end].strip() for begin, end in spans} for row in rows]


def _table_faults(rows: list[dict[str, str]], pools: list[dict[str, t.Any]], declared: set[str]) -> list[str]:
    if not rows or list(rows[0]) != COLUMNS:
        return [f"the table's columns are {list(rows[0]) if rows else 'missing'}, not {COLUMNS}"]
    expected = sorted(
        (str(pool["count"]), pool["kernel"], str(pool["count"] * pool.get("gpu", {}).get("count", 0))) for pool in pools
    )
    shown = sorted((row["nodes"], row["kernel"], row["GPUs expected"]) for row in rows)
    problems = (
        []
        if shown == expected
        else [f"nodes, kernels and GPUs of the pools are {shown} in the table, {expected} in the fleet"]
    )
    problems += [f"the table has no pool {name}" for name in sorted(declared - {row["pool"] for row in rows})]
    for row in rows:
        bare = row["GPUs expected"] == "0"
        gates = "features" if bare else "features, driver, devices, exporters, validation"
        proofs = "" if bare else f"{row['nodes']} proven"
        right = row | {
            "GPUs seen": row["GPUs expected"],
            "gates passed": gates,
            "proofs": proofs,
            "remark": "simulated",
        }
        problems += [
            f"{column} of pool {row['pool']} is {row[column]!r}, not {value!r}"
            for column, value in right.items()
            if row[column] != value
        ]
        problems += [] if re.fullmatch(r"\d+ s", row["time"]) else [f"time of pool {row['pool']} is {row['time']!r}"]
    return problems


def _file_faults(lines: list[str]) -> list[str]:
    problems = []
    for name in ("KUBECONFIG", "AUDIT_LOG"):
        paths = [line.removeprefix(f"{name}=") for line in lines if line.startswith(f"{name}=")]
        if len(paths) != 1 or not pathlib.Path(paths[0]).is_file():
            problems.append(f"{name} names {paths or 'nothing'}, not one file that is there")
        elif name == "KUBECONFIG" and (mode := pathlib.Path(paths[0]).stat().st_mode & 0o777) != KUBECONFIG_MODE:
            problems.append(f"{paths[0]} has the mode {mode:o}, not {KUBECONFIG_MODE:o}")
    return problems
