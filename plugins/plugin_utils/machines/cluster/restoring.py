# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What restorations of a cluster from a snapshot of etcd share, whichever installer has made it. Pure.

wish, where a function has it: cluster, its name; snapshot, HOST:PATH or a path on the controller; verified, its SHA-256, empty if it is none, and then why;
confirm, how the user has named the cluster.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority

_Data = c.Mapping[str, t.Any]
#: What is done if there are problems.
NOTHING: dict[str, t.Any] = {
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


def is_done(record: _Data, wish: _Data) -> bool:
    """record: of an earlier restoration."""
    return record.get("snapshot") == wish["verified"] and record.get("state") == "restored"


def kept(record: _Data, folder: str) -> str:
    """The folder for the data of before: that of a run which was interrupted has some already."""
    interrupted = record.get("state") == "begun" and record.get("kept", "")
    return str(interrupted or folder)


def unseen(looks: c.Mapping[str, str]) -> list[Fault]:
    """looks: what was found, by server; empty for one that could not be observed."""
    lost = [host for host, printed in looks.items() if not printed]
    if not lost:
        return []
    why = "its etcd may still run, with the data that is to be replaced"
    next_step = "bring it back, or take it out of the inventory once it is gone for good"
    return [Fault(f"{some(lost)} could not be observed", "", why, next_step)]


def several(owners: c.Mapping[str, str]) -> list[Fault]:
    """owners: a server by the fingerprint of its cluster's authority."""
    if len(owners) < 2:
        return []
    which = "; ".join(f"{authority.short(name)} on {host}" for name, host in owners.items())
    next_step = "give each cluster machines of its own by hwaccel_cluster"
    return [Fault(f"the servers are of {len(owners)} clusters", "certificate authorities", which, next_step)]


def unverified(wish: _Data, variable: str) -> list[Fault]:
    if not wish["snapshot"] or wish["verified"]:
        return []
    next_step = "set another one; without it the snapshots that servers have are listed"
    return [Fault(f"{wish['snapshot']} is no snapshot of etcd", variable, wish["why"], next_step)]


def other(wish: _Data, mine: str) -> Fault:
    why = f"it is {wish['confirm']}, and {wish['cluster']} is the cluster {mine}"
    return Fault(
        "hwaccel_confirm names another cluster, so nothing was changed",
        "hwaccel_confirm",
        why,
        "compare the inventory with the cluster that is meant",
    )


def listing(wish: _Data, snapshots: c.Mapping[str, int], variable: str) -> list[str]:
    """snapshots: sizes in bytes by HOST:PATH."""
    known = [f"{place} ({round(size / (1 << 20))} MiB)" for place, size in snapshots.items()]
    listed = known or ["none. A snapshot on the controller can be set, too"]
    return [
        f"Snapshots of {wish['cluster']}: {', '.join(listed)}.",
        f"Nothing was changed. Run again with -e {variable}=HOST:PATH, or a path on the controller.",
    ]


def done(target: str, record: str) -> list[str]:
    return [f"{target} was restored from this snapshot already. To restore it once more, remove {record} there."]
