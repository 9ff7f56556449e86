# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which a cluster has other certificate authorities, from what was found on its machines. Pure.

The phases are those of https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates: all machines trust the old and the new ones before
anything is issued by the new ones, and the old ones are only dropped once nothing is left that they have issued. A phase begins when all machines have
completed the one before.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority, rotating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.data import batch
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.plan import in_batches
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import encryption, places

_Data = c.Mapping[str, t.Any]
TRUST, REISSUE, REQUEST, DROP = "trust", "reissue", "request", "drop"
#: In order, with what they do, and whether they are for servers only.
_PHASES = {
    TRUST: ("let {} trust the new certificate authority, too", False),
    REISSUE: ("issue the certificates of {} again", True),
    REQUEST: ("let the kubelet of {} request its certificate again", False),
    DROP: ("let {} trust the new certificate authority only", False),
}


@dataclasses.dataclass(frozen=True)
class _Machine:
    """seen: what rotate.py has printed, None if it could not be observed. done: phases, None if none has begun."""

    host: str
    node: str
    serves: bool
    seen: _Data | None

    @property
    def done(self) -> c.Sequence[str] | None:
        return self.seen["done"] if self.seen else None


def rotation(machines: c.Sequence[_Data], looks: c.Mapping[str, str], wish: _Data) -> dict[str, t.Any]:
    """In plain data. machines: as inventory.read returns them. looks: what `rotate.py look` has printed, by machine; empty for one that could not be observed.

    wish: what, encryption keys, as encryption.rotation documents them, or certificate authorities; cluster, its name; nodes, those that it has, none if it
    could not be asked; lost, names of nodes of machines that are gone for good; confirm; at_a_time, a number or a percentage of agents.
    faults: why nothing is done. lines: what would be done, and how it is confirmed. old: fingerprint of the authority that is replaced. owner: the server that
    has, or makes, the new one. begins: machines that do not have the new one yet. steps: each with do, a phase, hosts, serves, pods, static pods that are
    restarted, and text. acts: whether it is confirmed and not done yet. changes: what is done.
    """
    if wish["what"] == encryption.KEYS:
        return encryption.rotation(machines, looks, wish)
    found = [
        _Machine(one["host"], one["node"], one["serves"], rotating.read(looks.get(one["host"], ""))) for one in machines
    ]
    old, new = _authorities(found)
    if wish["confirm"] and not new and _replaced(found) == {wish["confirm"]}:
        return {**rotating.NOTHING, "lines": [f"{wish['confirm']} was replaced already, by {old}"]}
    faults = [*_unseen(found), *_strangers(found, wish), *_unable(found, old, new)]
    if not faults and wish["confirm"] not in ("", old):
        faults.append(rotating.other(wish, old))
    if faults:
        return rotating.refused(faults)
    # One that an earlier run has completed has nothing of the rotation any more.
    rest = [one for one in found if not _is_complete(one, new)]
    steps = list(_steps(rest, str(wish["at_a_time"])))
    change = f"replace the certificate authority {authority.short(old)} of {wish['cluster']}"
    return {
        **rotating.NOTHING,
        "lines": [] if wish["confirm"] else _lines(wish, old, steps),
        "old": old,
        "owner": next((one.host for one in found if one.serves and one.seen and one.seen["new"]), found[0].host),
        "begins": [one.host for one in rest if one.done is None],
        "steps": steps,
        "acts": bool(wish["confirm"]),
        "changes": [change, *(step["text"] for step in steps)] if wish["confirm"] else [],
    }


def _authorities(machines: c.Sequence[_Machine]) -> tuple[str, str]:
    """Fingerprints of the authority that is replaced, and of the one that an earlier run has begun to replace it with, empty if there is none."""
    seen = [one.seen for one in machines if one.seen]
    begun = [one for one in seen if one["old"]]
    old = authority.fingerprint(begun[0]["old"] if begun else next((one["authority"] for one in seen), ""))
    return old, next((authority.fingerprint(one["new"]) for one in seen if one["new"]), "")


def _replaced(machines: c.Iterable[_Machine]) -> set[str]:
    return {one.seen["replaced"] if one.seen else "" for one in machines}


def _is_complete(machine: _Machine, new: str) -> bool:
    trusted = authority.certificates(machine.seen["authority"]) if machine.seen else []
    return machine.done is None and [authority.fingerprint(one) for one in trusted] == [new]


def _steps(machines: c.Sequence[_Machine], at_a_time: str) -> c.Iterator[dict[str, t.Any]]:
    """Servers are taken one at a time, agents in batches."""
    agents = [one for one in machines if not one.serves]
    size = batch(at_a_time, len(agents))
    for phase, (verb, servers_only) in _PHASES.items():
        waiting = [one for one in machines if phase not in (one.done or ())]
        sets = [[one] for one in waiting if one.serves]
        rest = [] if servers_only else [one for one in waiting if not one.serves]
        for one in [*sets, *in_batches(rest, size)]:
            hosts = [machine.host for machine in one]
            yield {
                "do": phase,
                "hosts": hosts,
                "serves": one[0].serves,
                "pods": _pods(one[0]) if phase != REQUEST else [],
                "text": verb.format(", ".join(hosts)),
            }


def _pods(machine: _Machine) -> list[str]:
    """Static pods that read the authorities when they start."""
    if not machine.serves or machine.seen is None:
        return []
    return [pod for pod in places.STATIC_PODS if pod != "etcd" or machine.seen["stacked"]]


def _unseen(machines: c.Iterable[_Machine]) -> list[Fault]:
    lost = [one.host for one in machines if one.seen is None]
    return rotating.unseen(lost, "with certificates of the old authority it would be no member any more")


def _strangers(machines: c.Sequence[_Machine], wish: _Data) -> list[Fault]:
    """Nodes whose kubelets would not get certificates of the new authority."""
    why = "the API servers would refuse their kubelets afterwards"
    next_step = "correct what keeps its API servers from answering; certificates that have expired are renewed by the entry main"
    faults = rotating.strangers([one.node for one in machines], wish, why, next_step)
    missing = [one.host for one in machines if wish["nodes"] and one.node not in wish["nodes"]]
    if missing:
        next_step = "let it join first, or take it out of the inventory"
        faults.append(Fault(f"{some(missing)} is no node of the cluster", wish["cluster"], "", next_step))
    return faults


def _unable(machines: c.Iterable[_Machine], old: str, new: str) -> list[Fault]:
    seen = [(one.host, one.seen) for one in machines if one.seen]
    successor = next((one["new"] for _host, one in seen if one["new"]), "")
    faults = [_of_machine(host, one, {old, new}) or _refused(host, one, successor) for host, one in seen]
    return [fault for fault in faults if fault]


def _refused(host: str, seen: _Data, successor: str) -> Fault | None:
    """Without this, the API servers would not know the kubelet any more."""
    if REQUEST not in (seen["done"] or ()) or authority.issued(seen["client"], successor):
        return None
    what = f"the kubelet of {host} has no certificate of the new authority"
    next_step = f"remove {places.ROTATION}/done.json there, and run again"
    return Fault(what, places.KUBELET_CERTIFICATE, "", next_step)


def _of_machine(host: str, seen: _Data, known: c.Collection[str]) -> Fault | None:
    """Why a machine cannot get other authorities."""
    trusted = [authority.fingerprint(one) for one in authority.certificates(seen["authority"])]
    if not trusted or not set(trusted) <= set(known):
        which = ", ".join(map(authority.short, trusted)) or "none"
        next_step = "give each cluster machines of its own by hwaccel_cluster"
        return Fault(
            f"{host} is of another cluster", places.AUTHORITY, f"its certificate authority is {which}", next_step
        )
    if seen["missing"]:
        why = f"{some(seen['missing'])} is missing, so another program issues its certificates"
        return Fault(
            f"kubeadm cannot issue certificates on {host}",
            f"{places.KUBERNETES}/pki",
            why,
            "replace the authority there",
        )
    if seen["signing"] not in ("", places.AUTHORITY, places.SIGNING):
        why = f"kube-controller-manager signs with {seen['signing']}"
        next_step = "replace that authority by hand, as kubeadm does not know of it"
        return Fault(f"certificates of kubelets on {host} have another authority", places.KUBERNETES, why, next_step)
    if not seen["linked"]:
        why = f"it does not refer to {places.KUBELET_CERTIFICATE}"
        next_step = "let it refer to that file, as kubeadm init does in its phase kubelet-finalize"
        return Fault(f"the kubelet of {host} cannot request its certificate again", places.KUBELET_CONF, why, next_step)
    return None


def _lines(wish: _Data, old: str, steps: c.Sequence[_Data]) -> list[str]:
    return [
        f"{wish['cluster']} has the certificate authority {old}. This would replace it, and those of etcd and of the front proxy, in {len(steps)} steps: "
        f"{'; '.join(step['text'] for step in steps)}. API servers restart one at a time, and kubelets without their pods. Afterwards kubeconfigs with "
        "client certificates have to be issued again; service accounts and running pods go on.",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={old}",
    ]
