# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The encryption of Secrets: what of it a run finds on a server, and the steps after which Secrets are encrypted with another key. Pure.

The steps are those of https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/#rotating-a-decryption-key. API servers read each other's Secrets from
the datastore, so all know a key before one encrypts with it, and all Secrets are encrypted with it before one forgets the old one. A cluster that was made
without encryption gets it by the same steps, with identity, which is no encryption, as the old key.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import rotating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import MEMBER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import documents, places

_Data = c.Mapping[str, t.Any]
KEYS = "encryption keys"
ADD, PROMOTE, REWRITE, DROP = "add", "promote", "rewrite", "drop"
IDENTITY = "identity"
#: What a server's file has after a phase.
_RANKS = {ADD: 1, PROMOTE: 2, DROP: 3}
_TEXTS = {
    ADD: "let the API server of {} know another key",
    PROMOTE: "let the API server of {} encrypt Secrets with the other key",
    REWRITE: "encrypt all Secrets with it by the API server of {}",
    DROP: "let the API server of {} know the other key only",
}
_SETTING = "cluster_kubeadm_secrets_encryption"
_SAVED = "put the file there that was kept beside snapshots, with mode 0600"

#: Names of keys and of what is replaced, which are no secrets, from the file as encryption.py writes it; and the argument of the API server.
FACTS: dict[str, tuple[str, ...]] = {
    "encryption": ("lines", places.ENCRYPTION, r"^(# replaces \S+| {6}- name: \S+|  - identity: \{\})$"),
    "encryption_kept": ("exists", places.ENCRYPTION),
    "encrypts": ("lines", places.API_SERVER, documents.ENCRYPTION_ARGUMENT),
}


def replacing(host: Host) -> bool:
    """Whether the key is being replaced. One that replaces none may be without an end, as nothing else depends on it."""
    return any(line.startswith("# replaces ") and not line.endswith(f" {IDENTITY}") for line in _lines(host))


def faults(host: Host, settings: _Data, now: Found) -> list[Fault]:
    given = documents.given_arguments(settings)
    found = []
    if settings["secrets_encryption"] and documents.ENCRYPTION_ARGUMENT in given:
        next_step = f"leave one of the two out: without {_SETTING} the file is yours on each server"
        what = f"{_SETTING} and cluster_kubeadm_configuration both set {documents.ENCRYPTION_ARGUMENT}"
        found.append(Fault(what, "cluster_kubeadm_configuration", "", next_step))
    if now.state == MEMBER and places.ENCRYPTION in host.fact("encrypts") and not host.fact("encryption_kept"):
        why = "its API server reads the keys of Secrets there when it starts"
        found.append(
            Fault(f"{places.ENCRYPTION} is missing", settings["host"], why, f"{_SAVED}, or copy that of another server")
        )
    return found


def messages(host: Host, now: Found) -> list[str]:
    lines = [line.strip() for line in _lines(host) if not line.startswith("#")]
    if now.state != MEMBER or not lines or not lines[0].startswith(f"- {IDENTITY}"):
        return []
    return ["Secrets are not encrypted yet. Next: run the entry rotate_encryption_keys, which encrypts all of them"]


def _lines(host: Host) -> list[str]:
    return host.fact("encryption").splitlines()


def rotation(machines: c.Sequence[_Data], looks: c.Mapping[str, str], wish: _Data) -> dict[str, t.Any]:
    """In plain data. machines: as inventory.read returns them, also those that are retired. looks: what `encryption.py look` has printed, by server; empty for
    one that could not be observed.

    wish: cluster, its name; members, of etcd by their nodes, and nodes, empty if it could not be asked; lost, names of nodes of machines that are gone for
    good; retired, names of machines that leave; confirm, the name of the key that is replaced.
    Result as of rotation.rotation. old: the name of the key. owner: the server that makes the new one. steps: each with do, a phase, or rewrite; hosts;
    copies, whether the server gets the file of the
    owner; owner and old, as above; and text.
    """
    servers = [one for one in machines if one["serves"]]
    seen = {one["host"]: rotating.read(looks.get(one["host"], "")) for one in servers}
    # One that has left already.
    found = {host: one for host, one in seen.items() if one and (one["serves"] or host not in wish["retired"])}
    wrong = [*_unseen(seen), *_strangers(servers, wish), *_unable(found, wish)] or _different(found)
    if wrong:
        return rotating.refused(wrong)
    begun = next((one["replaces"] for one in found.values() if one["replaces"]), "")
    first = next(iter(found.values()))
    # Nothing is left, or only to restart API servers.
    ended = (
        not begun
        and wish["confirm"]
        and wish["confirm"] != first["order"][0]
        and {one["replaced"] for one in found.values()} == {wish["confirm"]}
    )
    old = begun or (wish["confirm"] if ended else first["order"][0])
    if wish["confirm"] not in ("", old):
        return rotating.refused([rotating.other(wish, old, "key", "{} has {}")])
    ranks = {host: _rank(one, old) for host, one in found.items()}
    owner = next((host for host, rank in ranks.items() if rank), next(iter(found)))
    steps = [{**one, "owner": owner, "old": old} for one in _steps(found, ranks, owner)]
    if not wish["confirm"]:
        return {**rotating.NOTHING, "old": old, "owner": owner, "lines": _told(wish, old, steps)}
    done = [] if steps else [f"{old} was replaced already, by {first['order'][0]}"]
    changes = [one["text"] for one in steps]
    planned = {"old": old, "owner": owner, "steps": steps, "acts": bool(steps), "changes": changes, "lines": done}
    return {**rotating.NOTHING, **planned}


def _rank(seen: _Data, old: str) -> int:
    """How far a server has come, as _RANKS has it. 0: it does not know another key."""
    if seen["replaces"] == old:
        return _RANKS[ADD] if seen["order"][0] == old else _RANKS[PROMOTE]
    return _RANKS[DROP] if seen["replaced"] == old and seen["order"][0] != old else 0


def _steps(found: c.Mapping[str, _Data], ranks: c.Mapping[str, int], owner: str) -> list[dict[str, t.Any]]:
    """One server at a time. A phase begins when all servers have completed the one before, which a restart of the API server belongs to."""
    hosts = [owner, *(host for host in found if host != owner)]
    rewritten = min(ranks.values()) >= _RANKS[PROMOTE] and max(ranks.values()) == _RANKS[DROP]
    steps = []
    for phase, rank in _RANKS.items():
        if phase == DROP and not rewritten:
            steps.append({**rotating.step(REWRITE, [owner], _TEXTS[REWRITE]), "copies": False})
        for host in hosts:
            if ranks[host] < rank or (ranks[host] == rank and not found[host]["loaded"]):
                copies = phase == ADD and host != owner and not ranks[host]
                steps.append({**rotating.step(phase, [host], _TEXTS[phase]), "copies": copies})
    return steps


def _unseen(seen: c.Mapping[str, _Data | None]) -> list[Fault]:
    lost = [host for host, one in seen.items() if one is None]
    return rotating.unseen(lost, "it could read no Secret that is encrypted with the new key")


def _strangers(servers: c.Sequence[_Data], wish: _Data) -> list[Fault]:
    """API servers that would not get the key."""
    if not wish["nodes"]:
        next_step = "correct what keeps its API servers from answering"
        return [Fault(f"{wish['cluster']} could not be asked for its members", "", "", next_step)]
    others = sorted(set(wish["members"]) - {*wish["lost"], *(one["node"] for one in servers)})
    next_step = "add its machine to the group control_plane, or remove it from etcd"
    what = f"{some(others)} is a member of etcd, and no server of the inventory"
    return [Fault(what, wish["cluster"], "it would not get the new key", next_step)] if others else []


def _unable(found: c.Mapping[str, _Data], wish: _Data) -> list[Fault]:
    made = [_of_server(host, one, wish) for host, one in found.items()]
    return [fault for fault in made if fault]


def _of_server(host: str, seen: _Data, wish: _Data) -> Fault | None:
    if not seen["serves"]:
        return Fault(
            f"{host} is no server of the cluster", "", "", "let it join first, or take it out of the inventory"
        )
    if host in wish["retired"]:
        return Fault(f"{host} is to leave the cluster", "hwaccel_retired", "", "let it leave first, by the entry main")
    if seen["rotating"]:
        return Fault(
            f"the certificate authority of {host} is being replaced", "", "", "complete it by the entry rotate_ca"
        )
    if seen["used"] not in ("", places.ENCRYPTION) or seen["other"]:
        why = "others have written it"
        return Fault(
            f"the keys of {host} are not this role's", seen["used"] or places.ENCRYPTION, why, "replace them by hand"
        )
    if not seen["used"]:
        next_step = f"set {_SETTING}: true, and run the entry main, which lets API servers know a key"
        return Fault(f"Secrets are not encrypted on {host}", _SETTING, "its API server has no key", next_step)
    return (
        None
        if seen["order"]
        else Fault(f"{places.ENCRYPTION} is missing", host, "", f"{_SAVED}, or copy that of another server")
    )


def _different(found: c.Mapping[str, _Data]) -> list[Fault]:
    """A key by another name, or another key by the name: one of the servers can read nothing that the others have written."""
    digests: dict[str, set[str]] = {}
    for one in found.values():
        for name, digest in one["digests"].items():
            digests.setdefault(name, set()).add(digest)
    settled = (
        {one["order"][0] for one in found.values()} if not any(one["replaces"] for one in found.values()) else set()
    )
    if len(settled) < 2 and all(len(values) == 1 for values in digests.values()):
        return []
    shown = "; ".join(f"{host}: {', '.join(one['order'])}" for host, one in found.items())
    next_step = "copy the file of a server that can read all Secrets to the others, and restart their API servers"
    return [Fault("servers have different keys", places.ENCRYPTION, shown, next_step)]


def _told(wish: _Data, old: str, steps: c.Sequence[_Data]) -> list[str]:
    how = "are not encrypted (identity)" if old == IDENTITY else f"are encrypted with {old}"
    return [
        f"Secrets of {wish['cluster']} {how}. This would encrypt them with another key, in {len(steps)} steps: "
        f"{'; '.join(one['text'] for one in steps)}. API servers restart one at a time. Pods run on. Snapshots of before need {places.ENCRYPTION} of now.",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={old}",
    ]
