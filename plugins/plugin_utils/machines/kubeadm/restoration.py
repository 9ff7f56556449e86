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
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority, restoring
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

    wish: cluster, its name; snapshot, HOST:PATH or a path on the controller; verified, its SHA-256, empty if it is none, and then why; confirm; moment, UTC;
    encrypted, whether Secrets are; keys, names of those with which they are encrypted in the snapshot.
    faults: why nothing is done. lines: what would be done, and how it is confirmed. target: the server that restores, source: the path of the snapshot
    there, or on the controller if sent. kept: folder for the data of before. record: what a later run has to know of it. others: servers that join again.
    acts: whether it is confirmed and not done yet. changes: what is done.
    """
    servers = [_server(host, printed, wish) for host, printed in looks.items() if printed]
    host, path = restoring.located(wish["snapshot"], looks)
    able = [one for one in servers if not one.lacks and host in ("", one.host)]
    target = able[0] if able else None
    owners = {one.authority: one.host for one in servers if one.authority}
    faults = [
        *restoring.unseen(looks),
        *restoring.several(owners),
        *_unable(servers, host, target),
        *restoring.unverified(wish, _WANTED),
    ]
    if not faults and owners and wish["confirm"] not in ("", *owners):
        faults.append(restoring.other(wish, min(owners)))
    if faults or target is None:
        return {**restoring.NOTHING, "faults": [fault.as_dict() for fault in faults]}
    done = restoring.is_done(target.record, wish)
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


def _server(host: str, printed: str, wish: _Data) -> Server:
    found = json.loads(printed)
    lacks = ""
    if found["missing"]:
        lacks = f"{places.KUBERNETES}/{found['missing'][0]} is missing"
    elif not {"name", "peer", "image"} <= found["member"].keys():
        lacks = f"{places.ETCD} is missing"
    # A snapshot may still have names of keys that were replaced before it was taken.
    elif wish["keys"] and found["keys"] and not set(wish["keys"]) & set(found["keys"]):
        lacks = f"{places.ENCRYPTION} has other keys than the snapshot ({', '.join(wish['keys'])})"
    elif wish["encrypted"] and not found["keys"]:
        lacks = f"{places.ENCRYPTION} is missing, without which no Secret of the snapshot can be read"
    return Server(host, authority.fingerprint(found["authority"]), lacks, found["snapshots"], found["record"])


def _kept(target: Server, wish: _Data) -> str:
    """That of a run which was interrupted has the manifests."""
    return restoring.kept(target.record, f"/var/lib/etcd-before-{wish['moment']}")


def _unable(servers: c.Sequence[Server], host: str, target: Server | None) -> list[Fault]:
    if target is not None:
        return []
    why = ", ".join(f"{one.host}: {one.lacks}" for one in servers if host in ("", one.host))
    what = f"{host} cannot restore its snapshot" if host else "no server can restore a snapshot"
    if any(one.lacks.startswith(places.ENCRYPTION) for one in servers if host in ("", one.host)):
        next_step = f"put the file there that was kept beside the snapshot, with mode 0600: {places.ENCRYPTION}"
        return [Fault(what, "cluster_kubeadm_secrets_encryption", why, next_step)]
    next_step = (
        f"copy the snapshot to the controller, and set its path there as {_WANTED}"
        if [one for one in servers if not one.lacks]
        else f"bring {places.KUBERNETES} of one of them back from a backup, with the authorities of its pki"
    )
    return [Fault(what, "", why, next_step)]


def _lines(servers: c.Sequence[Server], target: Server, others: c.Sequence[str], wish: _Data, done: bool) -> list[str]:
    """What would be done, and how it is confirmed; or that nothing is left to do."""
    if done:
        return restoring.done(target.host, f"{places.FOLDER}/restore.json")
    if wish["confirm"] and wish["snapshot"]:
        return []
    if not wish["snapshot"]:
        known = {f"{one.host}:{path}": size for one in servers for path, size in one.snapshots.items()}
        return restoring.listing(wish, known, _WANTED)
    again = f" {some(others)} would be reset, and join again." if others else ""
    return [
        f"{wish['cluster']} is the cluster {target.authority}. This would stop its control plane on all servers, move what etcd has there to "
        f"{_kept(target, wish)}, and restore {wish['snapshot']} on {target.host}. Everything that was changed since the snapshot is lost.{again}",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={target.authority}",
    ]
