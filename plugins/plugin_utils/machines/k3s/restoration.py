# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done to bring etcd of a cluster back from a snapshot by K3s, and why nothing is done. Pure.

One server resets the cluster to itself as the only member, with the data of the snapshot (https://docs.k3s.io/cli/etcd-snapshot#restoring-snapshots). Keys of
its authorities are in the snapshot, too, encrypted with the token of servers. The others join it as new machines do.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority, restoring
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places, tokens

_Data = c.Mapping[str, t.Any]
_WANTED = "cluster_k3s_snapshot"
_RECORD = f"{places.FOLDER}/restore.json"


@dataclasses.dataclass(frozen=True)
class _Server:
    """host: in the inventory. authority: fingerprint of its cluster, empty if it has none. token: of servers, as it has it. snapshots: sizes in bytes by path.

    record: of an earlier restoration.
    """

    host: str
    authority: str
    sqlite: bool
    token: str
    snapshots: c.Mapping[str, int]
    record: _Data


def restoration(looks: c.Mapping[str, str], wish: _Data) -> dict[str, t.Any]:
    """In plain data. looks: what `restore.py look` has printed, by server; empty for one that could not be observed.

    wish: as restoring documents it, and keys, names of bootstrap data in the snapshot; digest, the SHA-256 of its file, and checksum, the one that is set;
    token, the one that is given; moment, UTC. Result as of kubeadm.restoration, and keeper: the server that has the token, empty if it is given.
    """
    servers = [_server(host, printed) for host, printed in looks.items() if printed]
    host, path = restoring.located(wish["snapshot"], looks)
    able = [one for one in servers if host in ("", one.host)]
    # One on which an earlier run has begun, or that knows the cluster, if there is one.
    target = min(
        able, key=lambda one: (one.record.get("snapshot") != wish["verified"], not one.authority), default=None
    )
    owners = {one.authority: one.host for one in servers if one.authority}
    keeper, unfit = _token(servers, wish)
    faults = [
        *restoring.unseen(looks),
        *restoring.several(owners),
        *_without_etcd(servers),
        *restoring.unverified(wish, _WANTED),
        *_changed(wish),
        *unfit,
    ]
    # Without any server that knows it, the cluster is what the snapshot has.
    mine = min(owners) if owners else wish["verified"]
    if not faults and wish["confirm"] not in ("", mine):
        faults.append(restoring.other(wish, mine))
    if faults or target is None:
        return {**restoring.NOTHING, "keeper": "", "faults": [fault.as_dict() for fault in faults]}
    done = restoring.is_done(target.record, wish)
    others = [one.host for one in servers if one is not target]
    kept = restoring.kept(target.record, f"{places.DATA}-before-{wish['moment']}")
    change = f"restore etcd on {target.host} from {wish['snapshot']}"
    changes = [f"{change}, and move the data of {some(others)} to {kept}" if others else change]
    return {
        "faults": [],
        "lines": _lines(servers, target, others, kept, mine, wish, done),
        "target": target.host,
        "source": path,
        "sent": not host,
        "kept": kept,
        "record": {"snapshot": wish["verified"], "kept": kept},
        "others": others,
        "keeper": keeper,
        "acts": bool(wish["snapshot"] and wish["confirm"]) and not done,
        "changes": changes if wish["confirm"] and wish["snapshot"] and not done else [],
    }


def _server(host: str, printed: str) -> _Server:
    found = json.loads(printed)
    name = authority.fingerprint(found["authority"])
    kept = {key: found[key] for key in ("sqlite", "token", "snapshots", "record")}
    return _Server(host, name, **kept)


def _token(servers: c.Sequence[_Server], wish: _Data) -> tuple[str, list[Fault]]:
    """The server that has the token of the snapshot, empty if it is given; or why there is none."""
    if not wish["verified"]:
        return "", []
    if wish["token"]:
        fits = tokens.storage_name(wish["token"]) in wish["keys"]
        what = "the token that is set is not that of the snapshot"
        next_step = "set the one that servers had when it was taken"
    else:
        keeper = next((one for one in servers if one.token and tokens.storage_name(one.token) in wish["keys"]), None)
        if keeper:
            return keeper.host, []
        fits = False
        what = "no server has the token of the snapshot, and none is set"
        next_step = "set cluster_k3s_token, or cluster_k3s_token_file to the file that export_token has written"
    why = "K3s has encrypted the keys of the cluster's authorities in it with that token, and could not read them"
    return "", [] if fits else [Fault(what, "cluster_k3s_token", why, next_step)]


def _without_etcd(servers: c.Sequence[_Server]) -> list[Fault]:
    mine = [one.host for one in servers if one.sqlite]
    if not mine:
        return []
    next_step = f"stop K3s there, bring {places.SQLITE} back from a copy, with the token of then, and start it"
    return [Fault(f"{some(mine)} has SQLite, which has no snapshots", places.SQLITE, "", next_step)]


def _changed(wish: _Data) -> list[Fault]:
    wanted = wish["checksum"].removeprefix("sha256:")
    if not wish["verified"] or not wanted or wanted == wish["digest"]:
        return []
    what, why = "the snapshot is not the one that is meant", f"its SHA-256 is {wish['digest']}"
    return [Fault(what, "cluster_k3s_snapshot_checksum", why, "set its checksum, or another snapshot")]


def _lines(
    servers: c.Sequence[_Server],
    target: _Server,
    others: c.Sequence[str],
    kept: str,
    mine: str,
    wish: _Data,
    done: bool,
) -> list[str]:
    """What would be done, and how it is confirmed; or that nothing is left to do."""
    if done:
        return restoring.done(target.host, _RECORD)
    if not wish["snapshot"]:
        known = {f"{one.host}:{path}": size for one in servers for path, size in one.snapshots.items()}
        return restoring.listing(wish, known, _WANTED)
    if wish["confirm"]:
        return []
    again = (
        f" Data of {some(others)} would be moved to {kept}, and they would be reset, and join again." if others else ""
    )
    return [
        f"{wish['cluster']} is the cluster {mine}. This would stop K3s on all its servers, and restore {wish['snapshot']} on {target.host}, where K3s keeps "
        f"the data of before as etcd-old-* in {places.DATA}/server/db. Everything that was changed since the snapshot is lost.{again}",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={mine}",
    ]
