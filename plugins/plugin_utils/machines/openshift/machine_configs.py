# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MachineConfigs of a cluster, collected: one for each pool, because a pool reboots for each. Pure.

Source: pkg/apis of openshift/machine-config-operator; docs/MachineConfiguration.md there.
"""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.manifests import Manifest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import ignition

API, KIND, POOL_KIND = "machineconfiguration.openshift.io/v1", "MachineConfig", "MachineConfigPool"
ROLE = "machineconfiguration.openshift.io/role"
#: Pools that each cluster has.
MASTER, WORKER = "master", "worker"
POOLS = (MASTER, WORKER)
_CHRONY = "/etc/chrony.conf"
_CHRONY_TEXT = """{servers}
driftfile /var/lib/chrony/drift
makestep 1.0 3
rtcsync
logdir /var/log/chrony
"""
_LISTS, _VALUES = (
    ("kernelArguments", "extensions"),
    ("kernelType", "fips", "osImageURL", "baseOSExtensionsContainerImage"),
)
_ARGUMENT = re.compile(r"\S+")


@dataclasses.dataclass(frozen=True)
class Part:
    """What a pool gets, from one place. spec: of a MachineConfig."""

    pool: str
    origin: str
    spec: c.Mapping[str, t.Any]


def of_pool(pool: str, origin: str, config: c.Mapping[str, t.Any], **spec: t.Any) -> Part:
    return Part(pool, origin, {"config": {"ignition": {"version": ignition.VERSION}, **config}, **spec})


def time_servers(servers: c.Sequence[str]) -> list[Part]:
    """Of all pools, since others have what workers have."""
    if not servers:
        return []
    text = _CHRONY_TEXT.format(servers="\n".join(f"server {server} iburst" for server in servers))
    file = ignition.text_file(_CHRONY, text)
    return [of_pool(pool, "cluster_openshift_time_servers", {"storage": {"files": [file]}}) for pool in POOLS]


def kernel_arguments(given: c.Mapping[str, c.Sequence[str]]) -> list[Part]:
    """given: by pool."""
    origin = "cluster_openshift_kernel_arguments"
    return [
        of_pool(pool, f"{origin}.{pool}", {}, kernelArguments=[str(one) for one in some])
        for pool, some in given.items()
        if some
    ]


def parts(manifests: c.Iterable[Manifest]) -> tuple[list[Part], list[Fault]]:
    """Of MachineConfigs that a user has given, in the order in which the operator merges them, which is that of their names."""
    found, faults = [], []
    for manifest in sorted(manifests, key=lambda one: one.key.name):
        labels = manifest.body["metadata"].get("labels")
        pool = labels.get(ROLE) if isinstance(labels, c.Mapping) else None
        if not isinstance(pool, str) or not pool:
            why = "it belongs to no pool"
            faults.append(Fault(f"{manifest.title} has no label {ROLE}", manifest.origin, why, f"set {ROLE}: worker"))
            continue
        spec = manifest.body.get("spec")
        found.append(Part(pool, f"{manifest.title} ({manifest.origin})", spec if isinstance(spec, c.Mapping) else {}))
    return found, faults


def wrong(part: Part, pools: c.Collection[str]) -> c.Iterator[Fault]:
    """Faults of one part. pools: of the cluster."""
    if part.pool not in pools:
        next_step = f"use {', '.join(sorted(pools))}, or add a {POOL_KIND} to cluster_openshift_manifests"
        yield Fault(f"the pool {part.pool} does not exist", part.origin, "", next_step)
    for name in part.spec:
        if name not in ("config", *_LISTS, *_VALUES):
            yield Fault(f"spec.{name} is unknown", part.origin, "", "remove it")
    for name in _LISTS:
        given = part.spec.get(name)
        if given is None:
            continue
        if not isinstance(given, list) or not all(isinstance(one, str) and _ARGUMENT.fullmatch(one) for one in given):
            yield Fault(f"{name} is not a list of words", part.origin, "", "give each as an entry of its own")
        elif len(set(given)) < len(given):
            twice = max(given, key=given.count)
            yield Fault(f"{twice} occurs twice", f"{name} of {part.origin}", "", "remove one of them")
    if part.spec.get("config") is not None:
        for fault in ignition.faults(part.spec["config"]):
            place = f"spec.config{f'.{fault.where}' if fault.where else ''} of {part.origin}"
            yield dataclasses.replace(fault, where=place)


def collected(found: c.Iterable[Part]) -> tuple[list[dict[str, t.Any]], list[Fault]]:
    """One MachineConfig of each pool, and what parts set otherwise than others. The parts are those in which wrong() finds nothing."""
    pools: dict[str, _Pool] = {}
    faults: list[Fault] = []
    for part in found:
        faults += pools.setdefault(part.pool, _Pool(part.pool)).add(part)
    return [pool.body() for _name, pool in sorted(pools.items())], faults


class _Pool:
    """Collects what a pool gets."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._version = ignition.VERSION
        self._spec: dict[str, t.Any] = {}
        self._sections: dict[str, dict[str, list[t.Any]]] = {}
        self._origins: dict[tuple[str, str], str] = {}

    def add(self, part: Part) -> c.Iterator[Fault]:
        config = part.spec.get("config") or {"ignition": {"version": ignition.VERSION}}
        self._version = max(self._version, config["ignition"]["version"])
        for name in _LISTS:
            mine = self._spec.setdefault(name, [])
            mine += [one for one in part.spec.get(name) or [] if one not in mine]
        for name in _VALUES:
            if part.spec.get(name) is not None:
                yield from self._set(name, "", part.spec[name], part, self._spec)
        for path, key in ignition.LISTS.items():
            section, _dot, name = path.partition(".")
            for entry in (config.get(section) or {}).get(name) or []:
                yield from self._entry(path, entry[key], entry, part)

    def _set(self, name: str, key: str, value: t.Any, part: Part, into: dict[str, t.Any]) -> c.Iterator[Fault]:
        first = self._origins.setdefault((name, key), part.origin)
        if into.setdefault(name, value) != value:
            why = f"{first} sets it otherwise"
            yield Fault(f"{name} of the pool {self._name} is set twice", part.origin, why, "set it in one place")

    def _entry(self, path: str, key: str, entry: t.Any, part: Part) -> c.Iterator[Fault]:
        section, _dot, name = path.partition(".")
        entries = self._sections.setdefault(section, {}).setdefault(name, [])
        first = self._origins.get((path, key))
        if first is None:
            self._origins[(path, key)] = part.origin
            entries.append(copy.deepcopy(entry))
        elif entry not in entries:
            why = f"{first} has it with other contents"
            yield Fault(f"{key} of the pool {self._name} is set twice", part.origin, why, "set it in one place")

    def body(self) -> dict[str, t.Any]:
        config: dict[str, t.Any] = {"ignition": {"version": self._version}, **self._sections}
        return {
            "apiVersion": API,
            "kind": KIND,
            "metadata": {"name": f"99-hwaccel-gpu-{self._name}", "labels": {ROLE: self._name}},
            "spec": {"config": config, **{name: value for name, value in self._spec.items() if value}},
        }
