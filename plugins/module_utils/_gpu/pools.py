# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools: declared in the inventory, or discovered."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import kinds, selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

#: Pools of nodes outside of every declared pool: with GPUs, and without.
DEFAULT, CPU = "default", "cpu"
PROVIDERS = ("hwaccel", "host", "none", "existing")
SOURCES = ("precompiled", "build")
#: Maximum number of nodes named in one error. The others are counted.
_NAMED = 5

#: The driver's own limit: open-gpu-kernel-modules, src/common/sdk/nvidia/inc/nvlimits.h, NV_MAX_DEVICES.
MOST_GPUS = 32
#: Range in MiB. A smaller value must be in GiB, because the smallest GPU that a driver still supports has 1 GiB. A larger one is in bytes or KiB.
_LEAST_MEMORY, _MOST_MEMORY = 1000, 4 * 1024 * 1024


@dataclasses.dataclass(frozen=True)
class PoolGpu:
    """ecc, mig: whether these modes are enabled, None if the pool does not declare it."""

    product: str = ""
    count: int = 0
    memory_mib: int = 0
    ecc: bool | None = None
    mig: bool | None = None


@dataclasses.dataclass(frozen=True)
class PoolDriver:
    """Empty fields mean the role's defaults."""

    provider: str = ""
    version: str = ""
    source: str = ""


@dataclasses.dataclass(frozen=True)
class PoolInterconnect:
    """transport: prefix of the name of NCCL's network. min_bandwidth: in GB/s, 0 if it is not judged.

    resources, environment, annotations: what a pod needs to use it, in addition to GPUs.
    """

    transport: str = "IB"
    min_bandwidth: float = 0.0
    resources: c.Mapping[str, int] = dataclasses.field(default_factory=dict)
    environment: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: c.Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Pool:
    name: str
    selector: str = ""
    nodes: frozenset[str] = frozenset()
    gpu: PoolGpu | None = None
    driver: PoolDriver = PoolDriver()
    plugin_config: str = ""
    declared: bool = True
    interconnect: PoolInterconnect | None = None
    #: Whether a selector may match no node, as in a pool that grows and shrinks.
    may_be_empty: bool = False


def parse_pools(declared: t.Any, variable: str = "pools") -> tuple[Pool, ...]:
    """`hwaccel_pools` as pools. variable: its name in messages. Raises ManyFaults with all of its errors."""
    if declared in (None, "", [], ()):
        return ()
    if not isinstance(declared, (list, tuple)):
        what, next_step = (
            f"{values.shown(declared)} is not a list of pools",
            "set a list of pools, each with a name and a selector or nodes: - name: training",
        )
        raise ManyFaults([Fault(what, variable, "", next_step)])
    faults: list[Fault] = []
    pools = [_pool(entry, f"{variable}[{position}]", faults) for position, entry in enumerate(declared)]
    seen: set[str] = set()
    for pool in pools:
        if pool is not None and pool.name in seen:
            faults.append(Fault(f"pool {pool.name} is declared twice", variable, "", "set a unique name for each pool"))
        elif pool is not None:
            seen.add(pool.name)
    if faults:
        raise ManyFaults(faults)
    return tuple(pool for pool in pools if pool is not None)


class Assigner:
    """Assigns each node its pool while nodes are read. `faults` is complete after the last one."""

    def __init__(self, pools: c.Iterable[Pool]) -> None:
        self.pools = tuple(pools)
        self._parsed = [(pool, selectors.parse(pool.selector) if pool.selector else None) for pool in self.pools]
        self._named = {name for pool in self.pools for name in pool.nodes}
        self._met: set[str] = set()
        self._overlaps: dict[tuple[str, ...], list[str]] = {}
        self._by_name = {pool.name: pool for pool in self.pools}

    def pool_of(self, facts: NodeFacts, labels: c.Mapping[str, str]) -> Pool:
        """labels: all labels of the node, because a selector may match any."""
        if facts.name in self._named:
            self._met.add(facts.name)
        hits = [
            pool
            for pool, parsed in self._parsed
            if facts.name in pool.nodes or (parsed is not None and selectors.matches(parsed, labels))
        ]
        if len(hits) > 1:
            self._overlaps.setdefault(tuple(pool.name for pool in hits), []).append(facts.name)
        if hits:
            return hits[0]
        name = DEFAULT if facts.gpu_present else CPU
        return self._by_name.get(name) or Pool(name, declared=False)

    def faults(self, *, complete: bool = True) -> list[Fault]:
        """complete: every node of the cluster was read, so that a name that did not occur is unknown."""
        found = [
            Fault(
                f"pools {' and '.join(pools)} overlap",
                "pools",
                f"both contain {some(nodes, _NAMED)}",
                "change their selectors or nodes so that they do not overlap",
            )
            for pools, nodes in sorted(self._overlaps.items())
        ]
        unknown = sorted(self._named - self._met)
        if complete and unknown:
            what = f"the cluster has no node {some(unknown, _NAMED)}"
            found.append(
                Fault(what, "pools", "a pool names it", "correct the pool's nodes, or let the node join first")
            )
        return found


def assumed(facts: NodeFacts, pool: Pool) -> bool:
    """Whether GPUs are declared for this node, and nothing on it shows them yet."""
    return pool.gpu is not None and not facts.gpu_present


def _pool(entry: t.Any, where: str, faults: list[Fault]) -> Pool | None:
    if not isinstance(entry, dict):
        faults.append(
            Fault(
                f"{values.shown(entry)} is not a pool", where, "", "set a dictionary with name, and selector or nodes"
            )
        )
        return None
    name = "" if values.unset(entry.get("name")) or not values.scalar(entry["name"]) else str(entry["name"]).strip()
    # A key with an empty value counts as unset.
    entry = {key: value for key, value in entry.items() if not values.unset(value) and value not in ({}, [])}
    wrong = _CHECK(entry, where) + _conflicts(entry, where)
    if "name" not in entry:
        wrong.append(Fault("a pool has no name", where, "", "set its name"))
    if not {"selector", "nodes"} & entry.keys() and name not in (DEFAULT, CPU):
        wrong.append(Fault("a pool selects nothing", where, "neither selector nor nodes is given", "set one of them"))
    wrong = [dataclasses.replace(fault, where=f"{fault.where}, pool {name}") if name else fault for fault in wrong]
    faults += wrong
    return None if wrong else _checked(name, entry)


def _checked(name: str, entry: c.Mapping[str, t.Any]) -> Pool:
    """A pool from a valid entry. Answers of surveys are strings, and an empty one counts as unset."""
    driver = {key: str(value or "") for key, value in entry.get("driver", {}).items()}
    gpu = {key: value for key, value in entry.get("gpu", {}).items() if not values.unset(value)}
    known = PoolGpu(
        str(gpu.get("product", "")),
        int(gpu.get("count", 0)),
        int(gpu.get("memory_mib", 0)),
        _mode(gpu.get("ecc")),
        _mode(gpu.get("mig")),
    )
    return Pool(
        name,
        str(entry.get("selector", "")),
        frozenset(str(node) for node in entry.get("nodes", ())),
        known if "gpu" in entry else None,
        PoolDriver(**driver),
        str(entry.get("plugin_config", "")),
        interconnect=_interconnect(entry["interconnect"]) if "interconnect" in entry else None,
        may_be_empty=_mode(entry.get("may_be_empty")) or False,
    )


def _interconnect(entry: c.Mapping[str, t.Any]) -> PoolInterconnect:
    given = {key: value for key, value in entry.items() if not values.unset(value)}
    texts = (
        {str(name): str(value) for name, value in (given.get(key) or {}).items()}
        for key in ("environment", "annotations")
    )
    resources = {str(name): int(value) for name, value in (given.get("resources") or {}).items()}
    return PoolInterconnect(str(given.get("transport", "IB")), float(given.get("min_bandwidth", 0)), resources, *texts)


def _mode(value: t.Any) -> bool | None:
    return None if values.unset(value) else str(value).casefold() == "true"


def _true_or_false(value: t.Any, where: str) -> list[Fault]:
    """Other values that Ansible accepts as Booleans are refused, because 1 may be meant as a number of instances."""
    if str(value).casefold() in ("true", "false"):
        return []
    return [Fault(f"{values.shown(value)} is neither true nor false", where, "", "set true or false")]


def _memory(value: t.Any, where: str) -> list[Fault]:
    found = values.number_of(value)
    if found is not None and 0 < found < _LEAST_MEMORY:
        return [
            Fault(
                f"{values.shown(value)} MiB is not the memory of any GPU",
                where,
                "it looks like GiB",
                f"set MiB, such as {round(found * 1024)}",
            )
        ]
    return values.number(0, _MOST_MEMORY, whole=True)(value, where)


def _conflicts(entry: c.Mapping[str, t.Any], where: str) -> list[Fault]:
    """Errors of values that are valid alone but not together."""
    given = entry.get("driver")
    driver = given if isinstance(given, dict) else {}
    provider = driver.get("provider")
    if provider not in PROVIDERS or provider == "hwaccel":
        return []
    why, next_step = "it only applies to drivers of provider hwaccel", "remove one of them"
    return [
        Fault(f"driver.{key} and provider {provider} contradict each other", f"{where}.driver", why, next_step)
        for key in ("version", "source")
        if not values.unset(driver.get(key))
    ]


GPU_CHECKS: dict[str, values.Check] = {
    "product": values.text,
    "count": values.number(0, MOST_GPUS, whole=True),
    "memory_mib": _memory,
    "ecc": _true_or_false,
    "mig": _true_or_false,
}
DRIVER_CHECKS: dict[str, values.Check] = {
    "provider": values.choice(*PROVIDERS),
    "version": kinds.driver_version,
    "source": values.choice(*SOURCES),
}
INTERCONNECT_CHECKS: dict[str, values.Check] = {
    "transport": values.text,
    "min_bandwidth": values.number(0, what="not a bandwidth", next_step="set GB/s, or 0 to skip this check"),
    "resources": values.mapping(
        values.number(0, whole=True), "names of resources with their numbers", kinds.resource_name
    ),
    "environment": values.mapping(values.text, key=kinds.environment_name),
    "annotations": values.mapping(values.text, key=kinds.label_key),
}
#: Valid keys of a pool. `machines` is removed before: objects/fleet.py reads it if no cluster is queried.
CHECKS: dict[str, values.Check] = {
    "name": values.text,
    "selector": kinds.selector,
    "nodes": values.listed(kinds.node_name, "names of nodes"),
    "gpu": values.fields(GPU_CHECKS, "a pool's gpu"),
    "driver": values.fields(DRIVER_CHECKS, "a pool's driver"),
    "plugin_config": values.text,
    "may_be_empty": _true_or_false,
    "interconnect": values.fields(INTERCONNECT_CHECKS, "a pool's interconnect"),
}
_CHECK = values.fields(CHECKS, "a pool")
