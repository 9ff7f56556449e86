# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which servers of K3s have another token, or encrypt Secrets with another key, from what was found on them. Pure.

What is left to do follows from what is on the servers, so that a run continues one that was killed. Both are done by one server, and the others take them
over when they are restarted, one at a time (https://docs.k3s.io/cli/token#k3s-token-rotate, https://docs.k3s.io/cli/secrets-encrypt#encryption-key-rotation).
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.rotating import NOTHING, other, refused, step
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authority_rotation, places, tokens

_Data = c.Mapping[str, t.Any]
TOKEN, KEYS, AUTHORITIES = "token", "encryption keys", "certificate authorities"
ROTATE, WRITE, RESTART = "rotate", "write", authority_rotation.RESTART


def rotation(machines: c.Sequence[_Data], looks: c.Mapping[str, str], wish: _Data) -> dict[str, t.Any]:
    """In plain data. machines: as inventory.read returns them. looks: what rotate.py has printed, by server; empty for one that could not be observed.

    wish: what, token, encryption keys, or certificate authorities, as authority_rotation.rotation documents them; cluster, its name; token, the one that
    servers are to have; confirm, the name of the key that is replaced.
    Result as of kubeadm.rotation. old: the name of the key. owner: the server that replaces it. steps: each with do, hosts and text.
    """
    if wish["what"] == AUTHORITIES:
        return authority_rotation.rotation(machines, looks, wish)
    servers = [one["host"] for one in machines if one["serves"]]
    found = {host: json.loads(looks[host]) for host in servers if looks.get(host)}
    if lost := [host for host in servers if host not in found]:
        why = "each server has to be restarted with what is replaced"
        next_step = "bring it back, or take it out of the inventory once it is gone for good"
        unseen = Fault(f"{some(lost)} could not be observed", wish["cluster"], why, next_step)
        return refused([unseen, *(_unwanted(wish) if wish["what"] == TOKEN else [])])
    return (_of_token if wish["what"] == TOKEN else _of_keys)(servers, found, wish)


def _of_token(servers: c.Sequence[str], found: c.Mapping[str, _Data], wish: _Data) -> dict[str, t.Any]:
    faults = [*_unwanted(wish), *_without_token(found)]
    secret = tokens.password(wish["token"])
    have = {host: tokens.password(one["own"]) for host, one in found.items()}
    mine = [host for host in servers if have[host] == secret]
    if not faults and not mine and len(set(have.values())) > 1:
        faults.append(_mixed(have))
    if faults:
        return refused(faults)
    # One that has it already has replaced it for the cluster.
    owner = (mine or list(servers))[0]
    rotates = [] if mine else [owner]
    writes = [host for host in servers if tokens.password(found[host]["given"]) != secret]
    ordered = [owner, *(host for host in servers if host != owner)]
    restarts = [host for host in ordered if host in writes or have[host] != secret or not found[host]["loaded"]]
    steps = [
        *[step(ROTATE, [host], "replace the token of servers on {}") for host in rotates],
        *([step(WRITE, writes, "give {} the new token")] if writes else []),
        *[step(RESTART, [host], "restart K3s on {} with the new token") for host in restarts],
    ]
    lines = [] if steps else [f"The servers of {wish['cluster']} have this token already."]
    if rotates:
        lines = ["Keep the token of before, too: snapshots that were taken before need it."]
    return _planned(owner, steps, lines)


def _planned(owner: str, steps: list[dict[str, t.Any]], lines: list[str], old: str = "") -> dict[str, t.Any]:
    changes = [one["text"] for one in steps]
    return {
        **NOTHING,
        "owner": owner,
        "old": old,
        "steps": steps,
        "acts": bool(steps),
        "changes": changes,
        "lines": lines,
    }


def _unwanted(wish: _Data) -> list[Fault]:
    why = tokens.why_not(wish["token"])
    next_step = (
        "set cluster_k3s_token_file to a file on the controller, to which a new token is written, or cluster_k3s_token"
    )
    return [Fault("servers cannot have the token that is set", "cluster_k3s_token", why, next_step)] if why else []


def _without_token(found: c.Mapping[str, _Data]) -> list[Fault]:
    without = [host for host, one in found.items() if not one["own"]]
    next_step = "let it join first, or take it out of the inventory"
    return [Fault(f"{some(without)} is no server of the cluster", places.OWN_TOKEN, "", next_step)] if without else []


def _mixed(have: c.Mapping[str, str]) -> Fault:
    groups: dict[str, list[str]] = {}
    for host, secret in have.items():
        groups.setdefault(secret, []).append(host)
    why = (
        f"{' and '.join(some(hosts) for hosts in groups.values())} have different ones, as a rotation was not completed"
    )
    next_step = "complete it with the token that was set then, and replace that afterwards"
    return Fault("it is not known which token is in force", places.OWN_TOKEN, why, next_step)


def _of_keys(servers: c.Sequence[str], found: c.Mapping[str, _Data], wish: _Data) -> dict[str, t.Any]:
    faults = [fault for host, one in found.items() if (fault := _unable(host, one))]
    if faults:
        return refused(faults)
    confirm = wish["confirm"]
    begun = bool(confirm) and any(one["replaced"] == confirm for one in found.values())
    # The server that has replaced it, if an earlier run has begun.
    replaced = [host for host in servers if found[host]["status"]["key"] != confirm] if begun else []
    owner = (replaced or list(servers))[0]
    now = found[owner]["status"]
    if not begun and confirm not in ("", now["key"]):
        return refused([other(wish, now["key"], "key", "Secrets of {} are encrypted with {}")])
    if not begun and not now["equal"]:
        return refused([_unfinished(found[owner])])
    rotates = not replaced or bool(now["inactive"]) or now["stage"] == "reencrypt_active"
    ordered = [owner, *(host for host in servers if host != owner)]
    writes = [host for host in ordered[1:] if rotates or found[host]["digest"] != found[owner]["digest"]]
    restarts = [host for host in ordered if rotates or host in writes or not found[host]["loaded"]]
    steps = [
        *([step(ROTATE, [owner], "encrypt all Secrets with another key on {}")] if rotates else []),
        *([step(WRITE, writes, "give {} the new key")] if writes else []),
        *[step(RESTART, [host], "restart K3s on {} with the new key") for host in restarts],
    ]
    if not confirm:
        return {**NOTHING, "old": now["key"], "owner": owner, "lines": _told(wish, now["key"], steps)}
    return _planned(owner, steps, [] if steps else [f"{confirm} was replaced already, by {now['key']}"], confirm)


def _unable(host: str, seen: _Data) -> Fault | None:
    status = seen["status"]
    if not status:
        what = f"K3s of {host} does not say how it encrypts"
        return Fault(what, "k3s secrets-encrypt status", seen["why"], "correct it there, and run again")
    if status["enabled"]:
        return None
    why = "K3s can encrypt them only in a cluster that was made so"
    next_step = "make another cluster with cluster_k3s_secrets_encryption: true, or enable it by k3s secrets-encrypt enable if it was disabled"
    return Fault(f"Secrets are not encrypted on {host}", "cluster_k3s_secrets_encryption", why, next_step)


def _unfinished(seen: _Data) -> Fault:
    key = seen["replaced"]
    next_step = f"complete it by -e hwaccel_confirm={key}" if key else "restart K3s on servers one at a time"
    return Fault("servers have different keys", "k3s secrets-encrypt status", seen["status"]["why"], next_step)


def _told(wish: _Data, key: str, steps: c.Sequence[_Data]) -> list[str]:
    return [
        f"Secrets of {wish['cluster']} are encrypted with {key}. This would replace it: {'; '.join(one['text'] for one in steps)}. K3s encrypts about five "
        "Secrets in a second. Pods run on.",
        f"Nothing was changed. If this is meant, run again with -e hwaccel_confirm={key}",
    ]
