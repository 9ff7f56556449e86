# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machines are installed, and which are not because they have been nodes. The boot server records these. Pure.

A cluster does not answer before its first node, nor after its last master has failed. Only a record of earlier nodes distinguishes the two, so that a
forgotten variable in an inventory cannot wipe a machine in use.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

#: Cluster and name of a machine.
Key = tuple[str, str]
#: Boot IDs of nodes by name, by cluster. A cluster whose nodes are unknown has no entry.
Nodes = c.Mapping[str, c.Mapping[str, str]]


@dataclasses.dataclass(frozen=True, order=True)
class Member:
    """A machine that was observed as a node. mac: identifies it after it is renamed; empty for a bootstrap machine, which may become a node later."""

    cluster: str
    name: str
    mac: str


@dataclasses.dataclass(frozen=True, order=True)
class Again:
    """A request to reinstall a machine. boot: boot ID of its node at that time, None if it was not a node, or if this was unknown.

    done: whether it has been a node with another boot ID since, so that the request is completed.
    """

    cluster: str
    name: str
    boot: str | None = None
    done: bool = False


@dataclasses.dataclass(frozen=True)
class Memory:
    members: tuple[Member, ...] = ()
    again: tuple[Again, ...] = ()

    @property
    def text(self) -> str:
        """Text of the file. Empty if nothing is recorded."""
        kept = {
            "again": [dataclasses.asdict(one) for one in self.again],
            "nodes": [dataclasses.asdict(one) for one in self.members],
        }
        return json.dumps(kept, indent=2, sort_keys=True) + "\n" if any(kept.values()) else ""


@dataclasses.dataclass(frozen=True)
class Decision:
    """memory: to be written. installs: machines that have to be installed. messages: why others are not. renewed: machines whose reinstallation is requested
    since this run. waiting: machines that are declared to be installed and are no nodes, as far as this is known. replaced: machines that are requested to be
    reinstalled, and whose node exists.
    """

    memory: Memory
    installs: frozenset[Key]
    messages: tuple[str, ...] = ()
    renewed: frozenset[Key] = frozenset()
    waiting: frozenset[Key] = frozenset()
    replaced: frozenset[Key] = frozenset()


NOTHING = Memory()
NOBODY = Decision(NOTHING, frozenset())


def read(text: str, path: str) -> tuple[Memory, list[Fault]]:
    """Reads the file. A damaged file is a problem, because without it a machine in use could count as new."""
    try:
        kept = json.loads(text) if text else {"nodes": [], "again": []}
        return Memory(tuple(Member(**one) for one in kept["nodes"]), tuple(Again(**one) for one in kept["again"])), []
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = "the record of machines that have been nodes cannot be read, so no machine can be installed"
        next_step = (
            "restore the file; or remove it if no machine of the inventory is in use, or if their clusters answer"
        )
        return Memory(), [Fault(what, path, f"{type(error).__name__}: {error}", next_step)]


def decided(
    memory: Memory, found: c.Sequence[Machine], joined: c.Mapping[str, t.Any] | None, again: c.Sequence[str]
) -> Decision:
    """joined: nodes by cluster, names or dictionaries with name and boot. again: machines that are explicitly requested to be reinstalled."""
    nodes = _nodes(joined or {})
    members, gone = _members(memory, found, nodes)
    wishes = _wishes(memory, found, nodes, again)
    learned = Memory(tuple(sorted(members)), tuple(sorted(wishes.values(), key=_key)))
    known = _Known.of(members)
    kept = {_key(one): _kept(one, known, nodes) for one in found if _declared(one) and _key(one) not in wishes}
    desired = {key for key, (reason, _name) in kept.items() if not reason} | {
        key for key, wish in wishes.items() if not wish.done
    }
    messages = _messages(
        [
            *(reason for reason in kept.values() if reason[0]),
            *((_USED_UP if one.done else _AGAIN, one.name) for one in wishes.values()),
        ]
    )
    forgotten = (
        (f"removed from the record, as neither the inventory nor their cluster has them any more: {some(gone, 12)}",)
        if gone
        else ()
    )
    renewed = wishes.keys() - {_key(one) for one in memory.again}
    waiting = {_key(one) for one in found if _declared(one) and _boot(one, nodes) is None}
    asked = {key for key, wish in wishes.items() if not wish.done}
    replaced = {_key(one) for one in found if _key(one) in asked and one.name in nodes.get(one.cluster, {})}
    return Decision(
        learned,
        frozenset(desired),
        messages + forgotten,
        frozenset(renewed),
        frozenset(waiting),
        frozenset(replaced),
    )


def faults(found: c.Sequence[Machine], again: c.Iterable[str]) -> c.Iterator[Fault]:
    for machine in found:
        if _declared(machine) is None:
            what = f"it is unknown whether machine {machine.name} has to be installed"
            why = f"its hwaccel_install is {machine.more['install']}, which is neither true nor false"
            yield Fault(what, f"dns_pxe_machines: {machine.name}", why, "write it as true or false")
    for name in again:
        matching = _named(found, name)
        if not matching:
            yield Fault(
                f"{name} cannot be installed again",
                "dns_pxe_install_again",
                "the machine does not exist",
                "correct the name, or remove it",
            )
        elif len(matching) > 1:
            why = f"clusters {some(machine.cluster for machine in matching)} have machines with this name"
            yield Fault(
                f"{name} cannot be installed again",
                "dns_pxe_install_again",
                why,
                f"write it as {matching[0].cluster}/{name}",
            )


def _declared(machine: Machine) -> bool | None:
    return machines.truth(machine.more.get("install"))


def _named(found: c.Iterable[Machine], name: str) -> list[Machine]:
    return [machine for machine in found if name in (machine.name, f"{machine.cluster}/{machine.name}")]


def _nodes(joined: c.Mapping[str, t.Any]) -> Nodes:
    """Names of nodes may end with the domain."""
    declared = {
        cluster: [one if isinstance(one, c.Mapping) else {"name": one} for one in nodes or ()]
        for cluster, nodes in joined.items()
    }
    return {
        cluster: {str(one["name"]).partition(".")[0]: str(one.get("boot") or "") for one in nodes}
        for cluster, nodes in declared.items()
    }


def _key(one: Machine | Member | Again) -> Key:
    return one.cluster, one.name


def _boot(machine: Machine, nodes: Nodes) -> str | None:
    """Boot ID of its node, None if it is not a node. A bootstrap machine counts as a node as soon as its cluster has one, because it is not needed any more."""
    there = nodes.get(machine.cluster, {})
    return ("" if there else None) if machine.role == machines.BOOTSTRAP else there.get(machine.name)


def _members(memory: Memory, found: c.Sequence[Machine], nodes: Nodes) -> tuple[set[Member], list[str]]:
    """Recorded machines, and those that are removed from the record."""
    joined = [machine for machine in found if _boot(machine, nodes) is not None]
    now = {Member(*_key(machine), "" if machine.role == machines.BOOTSTRAP else machine.mac) for machine in joined}
    keys, macs = {_key(one) for one in now}, {one.mac for one in now if one.mac}
    before = [one for one in memory.members if _key(one) not in keys and one.mac not in macs]
    listed = {_key(machine) for machine in found}
    cards = {machine.mac for machine in found if machine.mac}
    # An inventory may lack machines by accident, so a machine is removed only if its cluster has other nodes but not this one.
    gone = [
        one
        for one in before
        if _key(one) not in listed
        and one.mac not in cards
        and nodes.get(one.cluster)
        and one.name not in nodes[one.cluster]
    ]
    return now | (set(before) - set(gone)), [one.name for one in gone]


def _wishes(memory: Memory, found: c.Sequence[Machine], nodes: Nodes, again: c.Sequence[str]) -> dict[Key, Again]:
    """Current requests. A completed one is kept as long as its machine is named, so that the machine is not reinstalled at each run."""
    before = {_key(one): one for one in memory.again}
    wishes = {}
    for machine in (matching[0] for name in again if len(matching := _named(found, name)) == 1):
        boot = _boot(machine, nodes)
        wish = before.get(_key(machine)) or Again(*_key(machine), boot)
        if boot is not None and boot != wish.boot:
            wish = dataclasses.replace(wish, done=True)
        elif boot is None and nodes.get(machine.cluster):
            wish = dataclasses.replace(wish, boot=None)
        wishes[_key(machine)] = wish
    return wishes


_JOINED = "not installed although hwaccel_install is set, as they have joined: {}"
_REMEMBERED = (
    "not installed although hwaccel_install is set, as they have been nodes before: {}. "
    "Next: add those that have to be wiped to dns_pxe_install_again"
)
_SILENT = "the nodes of cluster {} are unknown: none of its machines is installed, as they may be in use"
_NONE_LEFT = (
    "cluster {} has had nodes and reports none now: none of its machines is installed, as they may be in use; "
    "hwaccel_new_cluster has no effect after the first node. Next: remove it"
)


_AGAIN = "installed because dns_pxe_install_again names them, until they have joined again: {}"
_USED_UP = (
    "not installed again, as they have joined since dns_pxe_install_again named them: {}. Next: remove them from it"
)


@dataclasses.dataclass(frozen=True)
class _Known:
    """Members by name and by MAC address."""

    keys: c.Mapping[Key, Member]
    macs: c.Mapping[str, Member]
    clusters: c.Collection[str]

    @classmethod
    def of(cls, members: c.Collection[Member]) -> _Known:
        return cls(
            {_key(one): one for one in members},
            {one.mac: one for one in members if one.mac},
            {one.cluster for one in members},
        )


def _kept(machine: Machine, known: _Known, nodes: Nodes) -> tuple[str, str]:
    """Why a machine is not installed although this is declared, with the value for the placeholder. Empty if it is installed."""
    if _boot(machine, nodes) is not None:
        return _JOINED, machine.name
    if _key(machine) in known.keys:
        return _REMEMBERED, machine.name
    if one := known.macs.get(machine.mac):
        return _REMEMBERED, f"{machine.name} (as {one.name} of {one.cluster})"
    if machine.cluster not in nodes:
        return _SILENT, machine.cluster
    if not nodes[machine.cluster] and machine.cluster in known.clusters:
        return _NONE_LEFT, machine.cluster
    return "", ""


def _messages(reasons: c.Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """A sentence for each reason."""
    by_reason: dict[str, set[str]] = {}
    for text, name in reasons:
        by_reason.setdefault(text, set()).add(name)
    return tuple(text.format(some(names, 12)) for text, names in sorted(by_reason.items()))
