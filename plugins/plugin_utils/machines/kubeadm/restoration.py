# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to bring etcd of a cluster back from a snapshot: which server restores it, and which ones join it again. Pure.

One server restores, as the only member of a new cluster of etcd with the objects, the certificate authority and the addresses of before
(https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#restoring-an-etcd-cluster). The others join it as new machines do.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places

_Data = c.Mapping[str, t.Any]
_WANTED = "cluster_kubeadm_snapshot"


@dataclasses.dataclass(frozen=True)
class Server:
    """host: in the inventory. authority: fingerprint of its cluster, empty if it has none. lacks: why it cannot restore, empty if it can.

    snapshots: sizes in bytes by path. record: of an earlier restoration.
    """

    host: str
    authority: str
    lacks: str
    snapshots: c.Mapping[str, int]
    record: c.Mapping[str, str]


def restoration(looks: c.Mapping[str, str], wish: _Data) -> dict[str, t.Any]:
    """In plain data. looks: what restore.py has printed, by server; empty for one that could not be observed.

    wish: cluster, its name; snapshot, HOST:PATH or a path on the controller; verified, its SHA-256, empty if it is none, and then why; confirm; moment, UTC.
    faults: why nothing is done. lines: what would be done, and how it is confirmed. target: the server that restores, source: the path of the snapshot
    there, or on the controller if sent. kept: folder for the data of before. record: what a later run has to know of it. others: servers that join again.
    acts: whether it is confirmed and not done yet. changes: what is done.
    """
    servers = [_server(host, printed) for host, printed in looks.items() if printed]
    host, path = located(wish["snapshot"], looks)
    able = [one for one in servers if not one.lacks and host in ("", one.host)]
    target = able[0] if able else None
    names = {one.authority for one in servers if one.authority}
    faults = [*_unseen(looks), *_several(servers), *_unable(servers, host, target), *_unverified(wish)]
    if not faults and names and wish["confirm"] not in ("", *names):
        faults.append(_other(wish, min(names)))
    if faults or target is None:
        return {**_NOTHING, "faults": [fault.as_dict() for fault in faults]}
    done = target.record.get("snapshot") == wish["verified"] and target.record.get("state") == "restored"
    others = [one.host for one in servers if one.host != target.host]
    kept = _kept(target, wish)
    changes = [f"restore etcd on {target.host} from {wish['snapshot']}, and move the data of before to {kept}"]
    return {
        "faults": [],
        "lines": _lines(servers, target, others, wish, done),
        "target": target.host,
        "source": path,
        "sent": not host,
        "kept": kept,
        "record": {"snapshot": wish["verified"], "kept": kept},
        "others": others,
        "acts": bool(wish["snapshot"] and wish["confirm"]) and not done,
        "changes": changes if wish["confirm"] and not done else [],
    }


_NOTHING = {
    "lines": [],
    "target": "",
    "source": "",
    "sent": False,
    "kept": "",
    "record": {},
    "others": [],
    "acts": False,
    "changes": [],
}


def located(snapshot: str, hosts: c.Collection[str]) -> tuple[str, str]:
    """Server and path of a snapshot, which has no server if it is on the controller."""
    host, colon, path = snapshot.partition(":")
    return (host, path) if colon and host in hosts else ("", snapshot)


def _server(host: str, printed: str) -> Server:
    found = json.loads(printed)
    lacks = ""
    if found["missing"]:
        lacks = f"{places.KUBERNETES}/{found['missing'][0]} is missing"
    elif not {"name", "peer", "image"} <= found["member"].keys():
        lacks = f"{places.ETCD} is missing"
    return Server(host, authority.fingerprint(found["authority"]), lacks, found["snapshots"], found["record"])


def _kept(target: Server, wish: _Data) -> str:
    """That of a run which was interrupted has the manifests."""
    interrupted = target.record.get("state") == "begun" and target.record.get("kept", "")
    return interrupted or f"/var/lib/etcd-before-{wish['moment']}"


def _unseen(looks: c.Mapping[str, str]) -> list[Fault]:
    lost = [host for host, printed in looks.items() if not printed]
    if not lost:
        return []
    why = "its etcd may still run, with the data that is to be replaced"
    next_step = "bring it back, or take it out of the inventory once it is gone for good"
    return [Fault(f"{some(lost)} could not be observed", "", why, next_step)]


def _several(servers: c.Sequence[Server]) -> list[Fault]:
    owners = {one.authority: one.host for one in servers if one.authority}
    if len(owners) < 2:
        return []
    which = "; ".join(f"{authority.short(name)} on {host}" for name, host in owners.items())
    next_step = "give each cluster machines of its own by hwaccel_cluster"
    return [Fault(f"the servers are of {len(owners)} clusters", "certificate authorities", which, next_step)]


def _unable(servers: c.Sequence[Server], host: str, target: Server | None) -> list[Fault]:
    if target is not None:
        return []
    why = ", ".join(f"{one.host}: {one.lacks}" for one in servers if host in ("", one.host))
    what = f"{host} cannot restore its snapshot" if host else "no server can restore a snapshot"
    next_step = (
        f"copy the snapshot to the controller, and set its path there as {_WANTED}"
        if [one for one in servers if not one.lacks]
        else f"bring {places.KUBERNETES} of one of them back from a backup, with the authorities of its pki"
    )
    return [Fault(what, "", why, next_step)]


def _unverified(wish: _Data) -> list[Fault]:
    if not wish["snapshot"] or wish["verified"]:
        return []
    next_step = "set another one; without it the snapshots that servers have are listed"
    return [Fault(f"{wish['snapshot']} is no snapshot of etcd", _WANTED, wish["why"], next_step)]


def _other(wish: _Data, mine: str) -> Fault:
    why = f"it is {wish['confirm']}, and {wish['cluster']} is the cluster {mine}"
    return Fault(
        "hwaccel_confirm names another cluster, so nothing was changed",
        "hwaccel_confirm",
        why,
        "compare the inventory with the cluster that is meant",
    )


def _lines(servers: c.Sequence[Server], target: Server, others: c.Sequence[str], wish: _Data, done: bool) -> list[str]:
    """What would be done, and how it is confirmed; or that nothing is left to do."""
    if done:
        record = f"{places.FOLDER}/restore.json"
        return [
            f"{target.host} was restored from this snapshot already. To restore it once more, remove {record} there.",
        ]
    if wish["confirm"] and wish["snapshot"]:
        return []
    known = [f"{one.host}:{path} ({_mib(size)} MiB)" for one in servers for path, size in one.snapshots.items()]
    if not wish["snapshot"]:
        listed = known or ["none. A snapshot on the controller can be set, too"]
        return [
            f"Snapshots of {wish['cluster']}: {', '.join(listed)}.",
            f"Nothing was changed. Run again with -e {_WANTED}=HOST:PATH, or a path on the controller.",
        ]
    again = f" {some(others)} would be reset, and join again." if others else ""
    return [
        f"{wish['cluster']} is the cluster {target.authority}. This would stop its control plane on all servers, move what etcd has there to "
        f"{_kept(target, wish)}, and restore {wish['snapshot']} on {target.host}. Everything that was changed since the snapshot is lost.{again}",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={target.authority}",
    ]


def _mib(size: int) -> int:
    return round(size / (1 << 20))
