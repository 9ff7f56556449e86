# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which a cluster of K3s has other certificate authorities, from what was found on its machines. Pure.

K3s saves the new ones in its datastore, and machines take them when they are restarted, servers first
(https://docs.k3s.io/cli/certificate#rotating-self-signed-ca-certificates). They are connected with the old ones, so the order of machines does not matter to
those that run. What is left to do follows from what is on the machines, so that a run continues one that was killed.
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
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities, places

_Data = c.Mapping[str, t.Any]
MAKE, SAVE, RESTART = "make", "save", "restart"
#: Of machines that are not there, and nodes that are no machines.
_UNSEEN = "its token would have the hash of the old authority, with which it cannot start again"
_STRANGE = "it could not start again afterwards"


@dataclasses.dataclass(frozen=True)
class _Machine:
    """seen: what rotate_ca.py has printed, None if it could not be observed."""

    host: str
    node: str
    serves: bool
    seen: _Data | None

    @property
    def trusted(self) -> set[str]:
        """Fingerprints of the authorities that its files begin with: K3s writes those of servers before those of their nodes."""
        texts = [self.seen["server"], self.seen["agent"]] if self.seen else []
        return {authority.fingerprint(text) for text in texts if text}

    def of(self, name: str) -> str:
        return str(self.seen[name]) if self.seen else ""


@dataclasses.dataclass(frozen=True)
class _New:
    """owner: the server that has it, or makes it. authority: its fingerprint, empty if it is not made yet. hash: what tokens have of it. saved: whether K3s has
    it.
    """

    owner: str
    authority: str
    hash: str
    saved: bool

    def has(self, machine: _Machine) -> bool:
        """One that has joined, or has completed it, needs no preparation."""
        prepared = machine.seen is not None and (machine.seen["prepared"] or not machine.seen["begun"])
        return bool(self.authority) and machine.trusted == {self.authority} and prepared


def rotation(machines: c.Sequence[_Data], looks: c.Mapping[str, str], wish: _Data) -> dict[str, t.Any]:
    """In plain data. machines: as inventory.read returns them. looks: what rotate_ca.py has printed, by machine; empty for one that could not be observed.

    wish: cluster, nodes, lost, confirm and at_a_time as of kubeadm.rotation. Result as there, and hash, what tokens have of the new authority, once it is made.
    owner: the server that makes it, and gives it to K3s. begins: machines on which it is not recorded yet. steps: each with do, hosts and text.
    """
    found = [
        _Machine(one["host"], one["node"], one["serves"], rotating.read(looks.get(one["host"], ""))) for one in machines
    ]
    begun = next((one.of("begun") for one in found if one.of("begun")), "")
    present = next((min(one.trusted) for one in found if one.trusted), "")
    if wish["confirm"] and not begun and wish["confirm"] in {one.of("replaced") for one in found} - {present}:
        return {**rotating.NOTHING, "lines": [f"{wish['confirm']} was replaced already, by {present}"]}
    old = begun or present
    new = _new(found, begun)
    faults = [
        *rotating.unseen([one.host for one in found if one.seen is None], _UNSEEN),
        *rotating.strangers(
            [one.node for one in found], wish, _STRANGE, "correct what keeps its API servers from answering"
        ),
        *_unable(found, {old, new.authority}),
    ]
    if not faults and wish["confirm"] not in ("", old):
        faults.append(rotating.other(wish, old))
    if faults:
        return rotating.refused(faults)
    rest = [one for one in found if not new.has(one)]
    steps = list(_steps(rest, new, batch(str(wish["at_a_time"]), sum(not one.serves for one in found))))
    return {
        **rotating.NOTHING,
        "hash": new.hash,
        "lines": [] if wish["confirm"] else _lines(wish, old, steps),
        "old": old,
        "owner": new.owner,
        "begins": [one.host for one in rest if not one.of("begun")],
        "steps": steps,
        "acts": bool(wish["confirm"]),
        "changes": [one["text"] for one in steps] if wish["confirm"] else [],
    }


def _new(machines: c.Sequence[_Machine], begun: str) -> _New:
    """Servers that have restarted have it, too, if the one that has made it was lost since."""
    servers = [one for one in machines if one.serves]
    owner = next((one for one in servers if one.of("new")), servers[0])
    marked = [one.of("server") for one in servers if begun and one.of("begun") == begun]
    taken = next((text for text in marked if authority.fingerprint(text) not in ("", begun)), "")
    text = owner.of("new") or taken
    saved = bool(taken) or bool(owner.seen and owner.seen["saved"])
    return _New(owner.host, authority.fingerprint(text), authorities.hash_of(text), saved)


def _steps(machines: c.Sequence[_Machine], new: _New, size: int) -> c.Iterator[dict[str, t.Any]]:
    """Servers are taken one at a time, the one that has given it to K3s first, agents in batches of this size."""
    if not new.authority:
        yield rotating.step(MAKE, [new.owner], "make new certificate authorities on {}")
    if not new.saved:
        yield rotating.step(SAVE, [new.owner], "save them in the datastore by {}")
    servers = sorted((one.host for one in machines if one.serves), key=lambda host: host != new.owner)
    agents = [one.host for one in machines if not one.serves]
    for hosts in [*([host] for host in servers), *in_batches(agents, size)]:
        yield rotating.step(RESTART, hosts, "restart K3s on {} with the new certificate authorities")


def _unable(machines: c.Iterable[_Machine], known: c.Collection[str]) -> list[Fault]:
    seen = [one for one in machines if one.seen]
    return [fault for one in seen if (fault := _of_machine(one, known))]


def _of_machine(machine: _Machine, known: c.Collection[str]) -> Fault | None:
    """Why a machine cannot get other authorities."""
    path = places.SERVER_AUTHORITY if machine.serves else places.AUTHORITY
    if not machine.trusted:
        next_step = "let it join first, or take it out of the inventory"
        return Fault(f"{machine.host} is no member of the cluster", path, "", next_step)
    if others := machine.trusted - set(known):
        why = f"its certificate authority is {', '.join(map(authority.short, sorted(others)))}"
        next_step = "give each cluster machines of its own by hwaccel_cluster"
        return Fault(f"{machine.host} is of another cluster", path, why, next_step)
    if machine.seen and machine.seen["lacking"]:
        why = f"{some(machine.seen['lacking'])} is missing, or has no key of its root"
        next_step = "replace authorities of your own by k3s certificate rotate-ca, as https://docs.k3s.io/cli/certificate has it"
        return Fault(
            f"no successors can be connected with the authorities of {machine.host}",
            f"{places.DATA}/server/tls",
            why,
            next_step,
        )
    return None


def _lines(wish: _Data, old: str, steps: c.Sequence[_Data]) -> list[str]:
    return [
        f"{wish['cluster']} has the certificate authority {old}. This would replace it, and those of clients, of etcd and of aggregated API servers, in "
        f"{len(steps)} steps: {'; '.join(one['text'] for one in steps)}. Pods run on. The old roots stay trusted until they end, so kubeconfigs and "
        "certificates of before stay valid, and are not withdrawn. Afterwards, restart pods that keep a copy of what they trust, and export the token again.",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={old}",
    ]
