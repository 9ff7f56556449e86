# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phases of a run on machines of clusters that an installer makes: their machines, batches, and what a failure holds back. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing, inputs, machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import inventory as cluster_inventory
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.data import batch
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.plan import in_batches
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Once, Variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import UPI

Row = c.Mapping[str, t.Any]
#: The phase in which machines become a cluster, by the role of its installer. Its host has an outcome of it, too.
CLUSTER = "cluster"
_NODES = ("control_plane", "workers", "edge_nodes")
OPENSHIFT = "openshift"
#: How machines become a cluster of OpenShift, by default with a bootstrap machine.
_METHOD = "cluster_openshift_method"
#: Of machines that machine_boot can start.
_POWER = ("hwaccel_bmc_address", "hwaccel_hypervisor", "machine_boot_bmc_address", "machine_boot_hypervisor")


@dataclasses.dataclass(frozen=True)
class Phase:
    """groups: of its machines. serves: these serve clusters, all of them without hwaccel_cluster; one is changed after the other, and one that fails ends
    the phases of its clusters. also: a group in which its machines are, too. if_set: only machines with one of these variables. at_a_time: variable of
    the cluster's host with the size of batches, and its default. only_if_due: whether it leaves out machines on which its preflight has found nothing to
    do. after_installation: whether it is only for clusters of which machines were installed in this run. installers: whose clusters have it, all if
    empty. announced: whether it has only machines with an outcome of it, which another phase's preflight has given them. bootstraps: whether it is
    only for clusters with a bootstrap machine. of_clusters: whether its hosts
    are those of the clusters themselves, and a failure ends their phases.

    What it does is in playbooks/tasks/phases, in the file of its name. A role may have several phases.
    """

    name: str
    groups: tuple[str, ...]
    serves: bool = False
    also: str = ""
    if_set: tuple[str, ...] = ()
    at_a_time: tuple[str, str] = ("", "100%")
    only_if_due: bool = False
    after_installation: bool = False
    installers: tuple[str, ...] = ()
    announced: bool = False
    bootstraps: bool = False
    of_clusters: bool = False


#: Of site, in order.
PHASES = (
    Phase("load_balancer", ("load_balancers",), serves=True),
    # What machines boot.
    Phase("installation", ("gpu_clusters",), installers=(OPENSHIFT,), of_clusters=True),
    Phase("dns_pxe", ("boot_servers",), serves=True),
    Phase(
        "machine_boot",
        ("bootstrap", "control_plane", "workers"),
        if_set=_POWER,
        at_a_time=("hwaccel_boots_at_a_time", "10"),
    ),
    # K3s looks for NVIDIA's runtime only when it starts, so its first start should find it (findNvidiaContainerRuntimes in its pkg/agent/containerd).
    Phase("toolkit", _NODES, installers=("k3s",), announced=True),
    # Until etcd does without the bootstrap machine. Load balancers do so first.
    Phase("bootstrap", ("gpu_clusters",), installers=(OPENSHIFT,), bootstraps=True, of_clusters=True),
    Phase("bootstrap_complete", ("load_balancers",), serves=True, installers=(OPENSHIFT,), bootstraps=True),
    Phase("bootstrap_off", ("bootstrap",), if_set=_POWER, installers=(OPENSHIFT,), bootstraps=True),
    # Boot servers take its ignition file away. A machine that becomes a worker is installed anew.
    Phase("bootstrap_gone", ("boot_servers",), serves=True, installers=(OPENSHIFT,), bootstraps=True),
    Phase("bootstrap_reused", ("bootstrap",), also="workers", if_set=_POWER, installers=(OPENSHIFT,), bootstraps=True),
    Phase(CLUSTER, _NODES, installers=cluster_inventory.BY_LOGIN),
    Phase(
        "node_runtime",
        _NODES,
        installers=cluster_inventory.BY_LOGIN,
        at_a_time=("hwaccel_machines_at_a_time", "10%"),
        only_if_due=True,
    ),
    # Boot servers learn which machines have joined, so that the next run has nothing to tell them.
    Phase("nodes_joined", ("boot_servers",), serves=True, after_installation=True),
)


def planned(
    groups: Groups, hostvars: Variables, only: t.Sequence[str] | str = "", names: c.Collection[str] = ()
) -> dict[str, dict[str, t.Any]]:
    """By phase: serves; hosts, in the order of their batches; batches, the sizes of these, and least, the smallest that a batch may be.

    only: names of clusters, all if empty. names: of phases, all if empty. No phase has hosts of a cluster that is not installed.
    """
    known = Once(hostvars)
    clusters = cluster_inventory.made_by(groups, known, only)
    return {
        phase.name: _planned(phase, groups, known, clusters) for phase in PHASES if not names or phase.name in names
    }


def named(name: str) -> Phase:
    return next(one for one in PHASES if one.name == name)


def idle(name: str, hosts: c.Iterable[str], of_cluster: Row | None, outcomes: c.Mapping[str, Row]) -> list[str]:
    """Machines of a cluster that a phase leaves out: a preflight has found nothing to do there, and nothing was changed since, neither on the machine nor in
    the cluster. To observe them once more takes as long as the preflight did, batch by batch.

    of_cluster: outcome of the cluster's host in the phase CLUSTER. outcomes: by host and phase.
    """
    if named(name).announced:
        return [host for host in hosts if name not in outcomes[host]]
    if not named(name).only_if_due or not _is_unchanged(of_cluster):
        return []
    return [host for host in hosts if name in outcomes[host] and all(map(_is_unchanged, outcomes[host].values()))]


def _is_unchanged(outcome: Row | None) -> bool:
    return outcome is not None and outcome["state"] == closing.DONE and not outcome["changes"]


def without(found: Row, names: c.Collection[str]) -> dict[str, t.Any]:
    """A phase of `planned` without some of its machines. The others stay in their batches."""
    rest = iter(found["hosts"])
    batches = [[one for one in itertools.islice(rest, size) if one not in names] for size in found["batches"]]
    kept = [batch for batch in batches if batch]
    return {**found, "hosts": list(itertools.chain(*kept)), "batches": [len(batch) for batch in kept]}


def hypervisors(groups: Groups, hostvars: Variables, found: c.Mapping[str, Row]) -> list[str]:
    """Hypervisors of the machines that are started. found: of `planned`."""
    named = {str(hostvars[name].get("hwaccel_hypervisor") or "") for name in found["machine_boot"]["hosts"]}
    return [name for name in groups.get("hypervisors", ()) if name in named]


def _planned(phase: Phase, groups: Groups, hostvars: Variables, clusters: c.Sequence[str]) -> dict[str, t.Any]:
    sets = _sets(phase, groups, hostvars, clusters)
    sizes = [1 if phase.serves else _size(phase, hostvars[owner], len(names)) for owner, names in sets.items()]
    batched = [in_batches(names, size) for names, size in zip(sets.values(), sizes, strict=True)]
    # The first batch of each cluster, then the second of each that has one.
    batches = [list(itertools.chain(*row)) for row in itertools.zip_longest(*batched, fillvalue=())]
    return {
        "serves": phase.serves,
        "hosts": [name for one in batches for name in one],
        "batches": [len(one) for one in batches],
        "least": min(sizes, default=1),
    }


def _sets(phase: Phase, groups: Groups, hostvars: Variables, clusters: c.Sequence[str]) -> dict[str, list[str]]:
    """Machines whose batches are independent of others, by their cluster, which is empty for those that serve all."""
    if phase.installers:
        clusters = [name for name in clusters if hostvars[name].get("hwaccel_installer") in phase.installers]
    if phase.bootstraps:
        clusters = [name for name in clusters if (hostvars[name].get(_METHOD) or UPI) == UPI]
    if not clusters:
        return {}
    if phase.of_clusters:
        return {name: [name] for name in clusters}
    everyone = list(groups.get("gpu_clusters", ()))
    default = "" if phase.serves else everyone[0] if len(everyone) == 1 else None
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(itertools.chain(*(groups.get(group, ()) for group in phase.groups))):
        variables = hostvars[name]
        owner = str(variables.get("hwaccel_cluster") or "") or default
        if owner is None or (owner and owner not in clusters):
            continue
        if _taken(phase, variables) and (not phase.also or name in groups.get(phase.also, ())):
            found.setdefault(owner, []).append(name)
    return found


def _taken(phase: Phase, variables: Row) -> bool:
    """Machines that are to leave are only taken in where this makes them leave, and those that are lost are not asked at all."""
    leaves = phase.name != CLUSTER and machines.truth(variables.get("hwaccel_retired"))
    lost = machines.truth(variables.get("hwaccel_lost"))
    return not leaves and not lost and (not phase.if_set or any(variables.get(name) for name in phase.if_set))


def _size(phase: Phase, variables: Row, total: int) -> int:
    """Of a batch. A value that is none is reported by the preflight."""
    name, default = phase.at_a_time
    given = str(variables.get(name) or default)
    return batch(default if inputs.batch(given, name) else given, total)


def held(phase: str, host: str, clusters: c.Mapping[str, Row], outcomes: c.Mapping[str, Row]) -> list[str]:
    """Why a phase leaves a machine, or the host of a cluster, as it is; empty if it does not.

    clusters: those of the machine, each with phases, as `planned` returns them for it, and problems, which its preflight has found. outcomes: by host and
    phase, of the machine itself, of the hosts of these clusters, and of machines that serve them.
    """
    if not clusters:
        return []
    mine = outcomes.get(host, {})
    ill = [name for name in _before(next(iter(clusters.values()))["phases"], phase) if not _done(mine.get(name))]
    if ill:
        return [f"it has failed in the phase {ill[0]}"]
    reasons = [_of_cluster(phase, host, name, one, outcomes) for name, one in clusters.items()]
    # A machine that serves several clusters is changed for those of them that are well.
    return [] if "" in reasons else list(dict.fromkeys(reasons))


def _of_cluster(phase: str, host: str, name: str, cluster: Row, outcomes: c.Mapping[str, Row]) -> str:
    if cluster["problems"]:
        return f"the preflight of {name} has found problems"
    before = _before(cluster["phases"], phase)
    for earlier in before:
        row = cluster["phases"][earlier]
        failed = [one for one in row["hosts"] if row["serves"] and not _done(outcomes.get(one, {}).get(earlier))]
        if failed:
            return f"the phase {earlier} has failed on {some(failed)}"
        if named(earlier).of_clusters and not _done(outcomes.get(name, {}).get(earlier)):
            return f"the phase {earlier} of {name} has failed"
    if CLUSTER in before and not _done(outcomes.get(name, {}).get(CLUSTER)):
        return f"{name} could not be made"
    row = cluster["phases"].get(phase, {})
    peers = row.get("hosts", ()) if row.get("serves") else ()
    others = [(one, outcomes.get(one, {}).get(phase) or {}) for one in peers if one != host]
    # Those of an earlier batch: in its own one, another machine may not have ended.
    failed = [one for one, its in others if its and host not in its["batch"] and not _done(its)]
    return f"the phase {phase} has failed on {some(failed)}" if failed else ""


def _before(phases: c.Iterable[str], phase: str) -> list[str]:
    return list(itertools.takewhile(lambda name: name != phase, phases))


def _done(outcome: Row | None) -> bool:
    """Whether a phase has done its work on a machine, or had none there."""
    return not outcome or outcome["state"] == closing.DONE


def unanswered(awaited: c.Mapping[str, c.Sequence[str]], nodes: c.Sequence[str] | None, new: bool) -> list[str]:
    """Problems of machines that do not answer, which are to be installed: one that may be a node is not. awaited: names that the node of each may have, by why
    the machine does not answer. nodes: of its cluster, None if they are unknown. new: whether the cluster is declared as new, so that it has none.
    """
    if nodes is None:
        step = "; if it is empty, and its cluster is to be made of machines that are installed first, set hwaccel_new_cluster: true for the cluster"
        return [] if new else [f"{text}{step}" for text in awaited]
    return [text for text, names in awaited.items() if set(names) & set(nodes)]


def reasons(phases: c.Mapping[str, Row], outcomes: c.Mapping[str, Row]) -> dict[str, list[str]]:
    """Problems and failures by machine, of all phases. outcomes: by host and phase."""
    found: dict[str, list[str]] = {}
    for name, host, outcome in _outcomes(phases, outcomes):
        # Of a machine that is held, the cause is reported where it is.
        texts = closing.summarized(outcome)["reasons"] if outcome["state"] != closing.HELD else []
        if texts:
            found.setdefault(host, []).extend(text if host in text else f"{name}: {text}" for text in texts)
    return found


def changes(phases: c.Mapping[str, Row], outcomes: c.Mapping[str, Row]) -> list[str]:
    """What phases have changed on machines, in their order; what was changed on several is reported once. A cluster itself has the steps that made it."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, host, outcome in _outcomes({name: one for name, one in phases.items() if name != CLUSTER}, outcomes):
        for text in outcome["changes"] if _done(outcome) else ():
            found.setdefault((name, str(text)), []).append(host)
    return [f"{name}: {some(hosts)}: {text}" for (name, text), hosts in found.items()]


def _outcomes(phases: c.Mapping[str, Row], outcomes: c.Mapping[str, Row]) -> c.Iterator[tuple[str, str, Row]]:
    for name, phase in phases.items():
        for host in phase["hosts"]:
            if outcome := outcomes.get(host, {}).get(name):
                yield name, host, outcome
