# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools: declared in the inventory, or found. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

#: Where nodes outside every declared pool belong: with GPUs, and without.
DEFAULT, CPU = "default", "cpu"
PROVIDERS = ("hwaccel", "host", "none", "existing")
SOURCES = ("precompiled", "build")
#: At most this many nodes are named in one fault; the rest are counted.
_NAMED = 5

_KEYS = {"name", "selector", "nodes", "gpu", "driver", "plugin_config", "interconnect"}
_GPU_KEYS = {"product", "count", "memory_mib", "ecc", "mig"}
_DRIVER_KEYS = {"provider", "version", "source"}
_INTERCONNECT_KEYS = {"transport", "min_bandwidth", "resources", "environment", "annotations"}


@dataclasses.dataclass(frozen=True)
class PoolGpu:
    """ecc, mig: whether these modes are enabled, None where the pool does not say."""

    product: str = ""
    count: int = 0
    memory_mib: int = 0
    ecc: bool | None = None
    mig: bool | None = None


@dataclasses.dataclass(frozen=True)
class PoolDriver:
    """Empty fields are the role's defaults."""

    provider: str = ""
    version: str = ""
    source: str = ""


@dataclasses.dataclass(frozen=True)
class PoolInterconnect:
    """transport: how the name of NCCL's network has to begin. min_bandwidth: in GB/s, 0 where it is not judged.

    resources, environment, annotations: what a pod needs to have it, beside its GPUs.
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


def parse_pools(declared: t.Any) -> tuple[Pool, ...]:
    """`hwaccel_pools` as pools. Raises ManyFaults with everything that is wrong in it."""
    if not declared:
        return ()
    if not isinstance(declared, (list, tuple)):
        kind = type(declared).__name__
        raise ManyFaults([Fault("pools is no list", "pools", f"it is a {kind}", "give a list of pools, each with a name and a selector or nodes")])
    faults: list[Fault] = []
    pools = [_pool(entry, f"pools[{position}]", faults) for position, entry in enumerate(declared)]
    seen: set[str] = set()
    for pool in pools:
        if pool is not None and pool.name in seen:
            faults.append(Fault(f"pool {pool.name} is declared twice", "pools", "", "give each pool a name of its own"))
        elif pool is not None:
            seen.add(pool.name)
    if faults:
        raise ManyFaults(faults)
    return tuple(pool for pool in pools if pool is not None)


class Assigner:
    """Gives each node its pool while nodes are read; `faults` is complete after the last one."""

    def __init__(self, pools: c.Iterable[Pool]) -> None:
        self.pools = tuple(pools)
        self._parsed = [(pool, selectors.parse(pool.selector) if pool.selector else None) for pool in self.pools]
        self._named = {name for pool in self.pools for name in pool.nodes}
        self._met: set[str] = set()
        self._overlaps: dict[tuple[str, ...], list[str]] = {}
        self._by_name = {pool.name: pool for pool in self.pools}

    def pool_of(self, facts: NodeFacts, labels: c.Mapping[str, str]) -> Pool:
        """labels: all labels of the node, because a selector may ask for any."""
        if facts.name in self._named:
            self._met.add(facts.name)
        hits = [pool for pool, parsed in self._parsed if facts.name in pool.nodes or (parsed is not None and selectors.matches(parsed, labels))]
        if len(hits) > 1:
            self._overlaps.setdefault(tuple(pool.name for pool in hits), []).append(facts.name)
        if hits:
            return hits[0]
        name = DEFAULT if facts.gpu_present else CPU
        return self._by_name.get(name) or Pool(name, declared=False)

    def faults(self, *, complete: bool = True) -> list[Fault]:
        """complete: every node of the cluster was seen, so that a name not met is unknown."""
        found = [
            Fault(
                f"pools {' and '.join(pools)} overlap", "pools", f"both hold {some(nodes, _NAMED)}", "make their selectors or names exclude each other",
            )
            for pools, nodes in sorted(self._overlaps.items())
        ]
        unknown = sorted(self._named - self._met)
        if complete and unknown:
            what = f"the cluster has no node {some(unknown, _NAMED)}"
            found.append(Fault(what, "pools", "a pool names it", "correct the pool's nodes, or let the node join first"))
        return found


def assumed(facts: NodeFacts, pool: Pool) -> bool:
    """GPUs are declared for this node, and nothing on it has shown them yet."""
    return pool.gpu is not None and not facts.gpu_present


def _pool(entry: t.Any, where: str, faults: list[Fault]) -> Pool | None:
    if not isinstance(entry, dict):
        faults.append(Fault("a pool is no dictionary", where, f"it is a {type(entry).__name__}", "give name, and selector or nodes"))
        return None
    before = len(faults)
    name = str(entry.get("name") or "")
    where = f"{where} {name}".rstrip()
    _unknown_keys(entry, _KEYS, where, faults)
    if not name:
        faults.append(Fault("a pool has no name", where, "", "give it one"))
    selector, nodes = str(entry.get("selector") or ""), entry.get("nodes") or []
    if not selector and not nodes and name not in (DEFAULT, CPU):
        faults.append(Fault("a pool selects nothing", where, "neither selector nor nodes is given", "give one of them"))
    if not isinstance(nodes, (list, tuple)):
        faults.append(Fault("nodes is no list", where, "", "give a list of node names"))
        nodes = []
    try:
        selectors.parse(selector)
    except selectors.SelectorError as error:
        faults.append(Fault("the selector cannot be read", where, str(error), "write it as for kubectl -l"))
    gpu, driver = _gpu(entry.get("gpu"), where, faults), _driver(entry.get("driver"), where, faults)
    interconnect = _interconnect(entry.get("interconnect"), where, faults)
    if len(faults) > before:
        return None
    return Pool(name, selector, frozenset(str(node) for node in nodes), gpu, driver, str(entry.get("plugin_config") or ""), interconnect=interconnect)


def _gpu(entry: t.Any, where: str, faults: list[Fault]) -> PoolGpu | None:
    if not entry:
        return None
    if not isinstance(entry, dict):
        faults.append(Fault("gpu is no dictionary", where, "", "give product, count, memory_mib, ecc and mig"))
        return None
    _unknown_keys(entry, _GPU_KEYS, f"{where} gpu", faults)
    count, memory = (_whole(entry.get(key), f"{where} gpu.{key}", faults) for key in ("count", "memory_mib"))
    ecc, mig = (_truth(entry.get(key), f"{where} gpu.{key}", faults) for key in ("ecc", "mig"))
    return PoolGpu(str(entry.get("product") or ""), count, memory, ecc, mig)


def _driver(entry: t.Any, where: str, faults: list[Fault]) -> PoolDriver:
    if not entry:
        return PoolDriver()
    if not isinstance(entry, dict):
        faults.append(Fault("driver is no dictionary", where, "", "give provider, version, source"))
        return PoolDriver()
    _unknown_keys(entry, _DRIVER_KEYS, f"{where} driver", faults)
    driver = PoolDriver(*(str(entry.get(key) or "") for key in ("provider", "version", "source")))
    for key, value, allowed in (("provider", driver.provider, PROVIDERS), ("source", driver.source, SOURCES)):
        if value and value not in allowed:
            faults.append(Fault(f"driver.{key} {value!r} is unknown", where, "", f"choose one of {', '.join(allowed)}"))
    return driver


def _interconnect(entry: t.Any, where: str, faults: list[Fault]) -> PoolInterconnect | None:
    if not entry:
        return None
    if not isinstance(entry, dict):
        faults.append(Fault("interconnect is no dictionary", where, "", f"give {', '.join(sorted(_INTERCONNECT_KEYS))}"))
        return None
    where = f"{where} interconnect"
    _unknown_keys(entry, _INTERCONNECT_KEYS, where, faults)
    resources = {name: _whole(value, f"{where}.resources.{name}", faults) for name, value in _texts(entry, "resources", where, faults).items()}
    environment, annotations = (_texts(entry, key, where, faults) for key in ("environment", "annotations"))
    bandwidth = _bandwidth(entry.get("min_bandwidth"), f"{where}.min_bandwidth", faults)
    return PoolInterconnect(str(entry.get("transport") or "IB"), bandwidth, resources, environment, annotations)


def _texts(entry: dict[t.Any, t.Any], key: str, where: str, faults: list[Fault]) -> dict[str, str]:
    found = entry.get(key) or {}
    if not isinstance(found, dict):
        faults.append(Fault(f"{key} is no dictionary", where, "", "give names with their values"))
        return {}
    return {str(name): str(value) for name, value in found.items()}


def _bandwidth(value: t.Any, where: str, faults: list[Fault]) -> float:
    """As `_whole` of survey answers."""
    if value in (None, ""):
        return 0.0
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf") or isinstance(value, bool):
        faults.append(Fault(f"{value!r} is no bandwidth", where, "", "give GB/s, 0 where it is not to be judged"))
        return 0.0
    return number


def _whole(value: t.Any, where: str, faults: list[Fault]) -> int:
    """Survey answers arrive as strings, an empty one counts as unset."""
    if value in (None, ""):
        return 0
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(value, (bool, float)):
        faults.append(Fault(f"{value!r} is no whole number", where, "", "give 0 or more"))
        return 0
    return number


def _truth(value: t.Any, where: str, faults: list[Fault]) -> bool | None:
    """As `_whole` of survey answers."""
    if value in (None, ""):
        return None
    text = str(value).casefold()
    if text not in ("true", "false"):
        faults.append(Fault(f"{value!r} is neither true nor false", where, "", "give true where the mode is to be enabled, false where it is not"))
        return None
    return text == "true"


def _unknown_keys(entry: dict[t.Any, t.Any], known: set[str], where: str, faults: list[Fault]) -> None:
    if extra := sorted(str(key) for key in entry if key not in known):
        faults.append(Fault(f"unknown: {', '.join(extra)}", where, "", f"a pool knows {', '.join(sorted(known))} here"))
