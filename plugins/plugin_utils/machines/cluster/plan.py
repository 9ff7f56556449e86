# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which machines are one cluster, from what they are now. The same for all installers. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import identity, versions
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    ABSENT,
    AGENT,
    HALF,
    MEMBER,
    SERVER,
    Answer,
    Machine,
    unique,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Version, version_text

T = t.TypeVar("T")
#: What a step does. Servers are taken one at a time, agents in batches.
INIT, JOIN_SERVER, JOIN_AGENTS, RESET = "init", "join server", "join agents", "reset"
UPGRADE_SERVER, UPGRADE_AGENTS, RENEW = "upgrade server", "upgrade agents", "renew certificates"
RETIRE, FORGET, CONFIGURE = "retire", "forget", "configure"


@dataclasses.dataclass(frozen=True)
class Wish:
    """version: of Kubernetes. endpoint: host and port at which machines and clients reach the API server, empty if none is set.

    even_servers: whether an even number of servers is accepted. at_a_time: agents of a batch.
    """

    version: Version
    endpoint: str = ""
    even_servers: bool = False
    at_a_time: int = 1


@dataclasses.dataclass(frozen=True)
class Step:
    """do: see above. hosts: names in the inventory. upgrades: whether the version of one of them changes."""

    do: str
    hosts: tuple[str, ...]
    why: str
    upgrades: bool = True

    def __str__(self) -> str:
        verb = _VERBS[self.do] if self.upgrades else _VERBS[self.do].replace("upgrade", "update")
        return f"{verb.format(', '.join(self.hosts))}: {self.why}"

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "hosts": list(self.hosts), "text": str(self)}


_VERBS = {
    INIT: "initialize the cluster on {}",
    JOIN_SERVER: "join the server {}",
    JOIN_AGENTS: "join {}",
    RESET: "reset {}",
    UPGRADE_SERVER: "upgrade the server {}",
    UPGRADE_AGENTS: "upgrade {}",
    RENEW: "renew the certificates of {}",
    RETIRE: "take out {}",
    FORGET: "remove what is left of {}",
    CONFIGURE: "change the configuration of the cluster on {}",
}


@dataclasses.dataclass(frozen=True)
class Decision:
    """leader: a server that is a member, or the one that initializes the cluster; empty if there is none."""

    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    leader: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "steps": [step.as_dict() for step in self.steps],
            "faults": [fault.as_dict() for fault in self.faults],
            "predicted": [str(step) for step in self.steps],
            "leader": self.leader,
        }


@dataclasses.dataclass(frozen=True)
class Cluster:
    """What the cluster itself tells. changes: of its configuration, which machines take over in their turns. faults: changes that cannot be.

    names: of its nodes and of members of its datastore. ready: of those nodes that are Ready.
    """

    changes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    names: frozenset[str] = frozenset()
    ready: frozenset[str] = frozenset()


#: It does not answer, or is not there.
SILENT = Cluster()


def decide(machines: c.Sequence[Machine], wish: Wish, answer: Answer, cluster: Cluster = SILENT) -> Decision:
    """machines: all of the cluster, in the order of the inventory. answer: of the endpoint.

    Without faults the steps end with all observed machines in one cluster. A machine that could not be observed has no step: an agent is left
    out, and a server is a fault as soon as there is a step, because another one must not be taken away or added then.
    """
    lost, everyone = [one for one in machines if one.lost], [one for one in machines if not one.lost]
    machines = [one for one in everyone if not one.retired]
    servers = [machine for machine in machines if machine.role == SERVER]
    faults = [
        *_counts(servers, wish),
        *unique(everyone),
        *_addressed(everyone, lost, wish),
        *identity.faults(everyone, answer),
        *versions.faults(machines, wish.version),
        *cluster.faults,
        *_alive(lost, cluster),
    ]
    leader = next((one for one in servers if one.joined), None)
    faults += _replaced(everyone) if not leader else []
    steps = [*_renewals(servers), *_resets(machines, leader)] if not faults else []
    if leader and cluster.changes:
        # Those that join take it over, too.
        steps.append(Step(CONFIGURE, (leader.host,), ", ".join(cluster.changes)))
    first = None if leader or not servers else servers[0]
    owners = [machine for machine in everyone if machine.has_data or machine.joined]
    if first and not owners:
        steps.append(Step(INIT, (first.host,), "no machine has data of a cluster, and nothing answers at its endpoint"))
    elif first and not faults:
        faults.append(_unfinished(owners))
    joins = [
        Step(JOIN_SERVER, (one.host,), "it is no member of the cluster")
        for one in servers
        if one is not first and one.state in (ABSENT, HALF)
    ]
    older = [one for one in servers if one.joined and one.serves < wish.version]
    faults += _held(everyone, wish) if older else []
    # Once a server has the version, the configuration of the cluster has it too, and with it those that join.
    faults += _reduced(joins, older) if older and len(older) == sum(one.joined for one in servers) else []
    # Agents join API servers that are not older than they are.
    before = _upgrades(servers, wish) if older else []
    steps += [*joins, *before, *_joining(machines, wish.at_a_time)]
    steps += [step for step in _upgrades(machines, wish) if step not in before]
    # One that an earlier run has begun is ill until it is gone, which would hold up all others.
    leaving = _retirements(everyone)
    stopped = [one.host for one in _departing(everyone) if one.found and not one.found.running]
    begun = [step for step in leaving if step.hosts[0] in stopped]
    steps = [*_forgotten(lost, cluster), *begun, *steps, *(step for step in leaving if step not in begun)]
    faults += _unobserved([machine for machine in everyone if machine.role == SERVER]) if steps else []
    return Decision(() if faults else tuple(steps), tuple(faults), (leader or first or _NOBODY).host)


_NOBODY = Machine("", "", "", AGENT)


def _renewals(servers: c.Sequence[Machine]) -> list[Step]:
    """Of servers whose certificates have expired. All at once: none of them serves, and their datastore needs more than one of them."""
    hosts = tuple(one.host for one in servers if one.found and one.joined and one.found.expired)
    return [Step(RENEW, hosts, "they have expired")] if hosts else []


def _resets(machines: c.Sequence[Machine], leader: Machine | None) -> list[Step]:
    """Machines on which an earlier run was interrupted. What they hold is known to no member, as they are none."""
    return [
        Step(RESET, (one.host,), f"an earlier run was interrupted there ({one.found.why})")
        for one in machines
        if one.found and one.state == HALF and (leader or not one.has_data)
    ]


def _joining(machines: c.Sequence[Machine], at_a_time: int) -> list[Step]:
    new = [one for one in machines if one.role == AGENT and one.state in (ABSENT, HALF)]
    return [
        Step(JOIN_AGENTS, tuple(one.host for one in batch), "not a member of the cluster")
        for batch in in_batches(new, at_a_time)
    ]


def _addressed(machines: c.Sequence[Machine], lost: c.Sequence[Machine], wish: Wish) -> list[Fault]:
    """Nodes would lose the API server with the machine whose address their endpoint is."""
    leaving = [*_departing(machines), *(one for one in lost if one.role == SERVER)]
    next_step = "put a load balancer before the servers; the endpoint of a cluster cannot be changed afterwards"
    return [
        Fault(
            f"{one.host} is {'lost' if one.lost else 'retired'}, and its address is the endpoint",
            wish.endpoint,
            "",
            next_step,
        )
        for one in leaving
        if one.address in _endpoints(machines, wish, one)
    ]


def _alive(lost: c.Iterable[Machine], cluster: Cluster) -> list[Fault]:
    """A machine that runs would register its node again, and its pods would run twice."""
    next_step = "remove hwaccel_lost; a machine that runs leaves by hwaccel_retired: true"
    names = [one.host for one in lost if one.node in cluster.ready]
    return [Fault(f"{name} is lost, and its node is Ready", "hwaccel_lost", "", next_step) for name in names]


def _forgotten(lost: c.Iterable[Machine], cluster: Cluster) -> list[Step]:
    """One at a time, servers first: until then they count for the quorum of the datastore, which others that join would strain."""
    left = [one for one in lost if one.node in cluster.names]
    return [Step(FORGET, (one.host,), "it is lost") for one in sorted(left, key=lambda one: one.role != SERVER)]


def _departing(machines: c.Iterable[Machine]) -> list[Machine]:
    """Servers that are to leave, and still are members."""
    return [one for one in machines if one.retired and one.role == SERVER and one.joined]


def _endpoints(machines: c.Sequence[Machine], wish: Wish, but: Machine) -> set[str]:
    """Hosts at which other machines reach the API server. A server's kubelet may use its own."""
    used = [one.found.endpoint for one in machines if one.found and one.joined and one is not but]
    return {url.removeprefix("https://").rpartition(":")[0].strip("[]") for url in (wish.endpoint, *used)}


def _held(machines: c.Sequence[Machine], wish: Wish) -> list[Fault]:
    """kubeadm upgrades add-ons only once all API servers have the version (cmd/kubeadm/app/cmd/phases/upgrade/addons.go)."""
    leaving = [one.host for one in _departing(machines)]
    if not leaving:
        return []
    what = f"{some(leaving)} is retired, and the control plane is to be upgraded to {version_text(wish.version)}"
    why = "add-ons are not upgraded while an API server has another version"
    return [Fault(what, "hwaccel_retired", why, "let it leave with the version that runs first, and upgrade then")]


def _replaced(machines: c.Sequence[Machine]) -> list[Fault]:
    """No server would be left that knows the cluster."""
    leaving = [one.host for one in _departing(machines)]
    if not leaving:
        return []
    what = f"all servers that are members are retired ({some(leaving)})"
    return [
        Fault(what, "hwaccel_retired", "", "keep one of them until others have joined, and retire it in another run")
    ]


def _retirements(machines: c.Sequence[Machine]) -> list[Step]:
    """One at a time, agents first, once those that replace them have joined."""
    leaving = [one for one in machines if one.retired and (one.state in (MEMBER, HALF) or one.left)]
    return [
        Step(
            RETIRE,
            (one.host,),
            "it is retired" if one.joined else "it is retired, and an earlier run has not removed all of it",
        )
        for one in sorted(leaving, key=lambda one: one.role == SERVER)
    ]


def _upgrades(machines: c.Sequence[Machine], wish: Wish) -> list[Step]:
    """Members that do not run as they are set: first servers, one at a time, and first those of which an earlier run has left off, as they may be ill."""
    members = [(one, one.found) for one in machines if one.found and one.joined]
    behind = [one for one, found in sorted(members, key=lambda row: not row[1].begun) if found.behind]
    servers = [[one] for one in behind if one.role == SERVER]
    agents = in_batches([one for one in behind if one.role == AGENT], wish.at_a_time)
    return [
        Step(do, tuple(one.host for one in batch), _reasons(batch), any(_older(one, wish.version) for one in batch))
        for do, batches in ((UPGRADE_SERVER, servers), (UPGRADE_AGENTS, agents))
        for batch in batches
    ]


def _older(machine: Machine, version: Version) -> bool:
    return machine.found is not None and {machine.serves, machine.found.version} != {version}


def in_batches(listed: list[T], at_a_time: int) -> list[list[T]]:
    """In their order; the last one may be smaller."""
    return [listed[place : place + at_a_time] for place in range(0, len(listed), at_a_time)]


def _reasons(batch: c.Sequence[Machine]) -> str:
    return ", ".join(dict.fromkeys(why for one in batch if one.found for why in one.found.behind))


def _reduced(joins: c.Sequence[Step], older: c.Sequence[Machine]) -> list[Fault]:
    """A server that is upgraded is away for a while, which fewer than all others may not make up for."""
    missing = [host for step in joins for host in step.hosts]
    if not missing:
        return []
    runs = ", ".join(sorted({version_text(one.serves) for one in older}))
    what = f"{some(missing)} is no member of the cluster, whose control plane is to be upgraded"
    next_step = f"set the version that runs ({runs}) until all servers have joined, and upgrade then"
    return [Fault(what, "", "etcd could lose its quorum if another server is taken away", next_step)]


def _counts(servers: c.Sequence[Machine], wish: Wish) -> list[Fault]:
    if not servers:
        next_step = "add a machine of this cluster to the group control_plane"
        return [Fault("the cluster has no server", "group control_plane", "", next_step)]
    faults = []
    if len(servers) % 2 == 0 and not wish.even_servers:
        why = f"the loss of {len(servers) // 2} of them stops the cluster, as with {len(servers) - 1} servers, and more of them can be lost"
        next_step = "add or remove one, or set hwaccel_even_servers: true if this is known"
        faults.append(Fault(f"the cluster has {len(servers)} servers", "group control_plane", why, next_step))
    if not wish.endpoint:
        why = "machines would depend on one server"
        next_step = "set hwaccel_api_endpoint, or hwaccel_load_balancer_address"
        faults.append(
            Fault(f"the cluster has {len(servers)} servers and no endpoint", "hwaccel_api_endpoint", why, next_step)
        )
    return faults


def _unfinished(owners: c.Sequence[Machine]) -> Fault:
    names = some(one.host for one in owners)
    next_step = (
        "bring a server of it back, or restore a snapshot of its datastore, as the page of its installer says; "
        f"if that cluster is not needed, remove it from {names} by the entry teardown"
    )
    return Fault(f"{names} belongs to a cluster, and no server is a member of it", "", "", next_step)


def _unobserved(servers: c.Sequence[Machine]) -> list[Fault]:
    lost = [one.host for one in servers if one.found is None]
    if not lost:
        return []
    why = "no server is added, and no machine joins, while another server cannot be seen"
    next_step = "correct what is reported for it, or set hwaccel_lost: true for it if it is gone for good"
    return [Fault(f"{some(lost)} could not be observed, or has problems of its own", "", why, next_step)]
