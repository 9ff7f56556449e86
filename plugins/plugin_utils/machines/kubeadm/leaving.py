# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done on a machine that leaves its cluster, so that it is as before it became a node. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import FOREIGN, HALF, MEMBER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import found as finding
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import packages as pinning
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places, sysctls, unpacking
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.turn import Turn
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.services import Action, given_back

#: Of a container runtime that the role has installed: its packages leave it.
_IMAGES = "/var/lib/containerd"


def restored(host: Host, settings: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The plan, in plain data. settings: as for plan.plan. busy, found, turn, identity: as plan.plan documents them, for the plan of the cluster.

    left: whether anything is to be done. unit: that of its kubelet. resets: whether kubeadm resets it. socket: of its container runtime, empty if kubeadm
    finds it. network: whether what the network of pods has left is removed. confirmed: the cluster whose removal an earlier run has begun here.
    stops: units that end, because their files go. absent: files to remove. restores: texts by path, of files that are as before again.
    actions: services that are restored, as services.Action. packages: installed by the role; held: those of them that it has held. removed: folders and
    files that are removed last, with the record. before: network interfaces and configurations of network plugins that were there before, of which none
    is removed. sysctls: settings of the kernel to write again.
    """
    damaged = record.faults(host, places.ROLE)
    kept = Record() if damaged else record.read(host, places.ROLE) or Record()
    now = finding.found(host)
    ours, originals, others = record.restorable(host, kept)
    foreign = [] if now.state != FOREIGN else [Fault(now.why, "", "", "take the machine out of this cluster's groups")]
    stops = ["kubelet"] if places.UNIT in ours and host.unit("kubelet").loaded else []
    snapshots, recorded = bool(host.fact("snapshots")), bool(host.text(places.RECORD))
    resets = now.state in (MEMBER, HALF)
    return {
        "messages": [*others, *([f"snapshots of etcd stay in {places.SNAPSHOTS}"] if snapshots else [])],
        "faults": [fault.as_dict() for fault in (*damaged, *foreign)],
        "busy": sorted(host.processes),
        "found": now.as_dict(),
        "turn": Turn().as_dict(),
        # A machine that is gone already may have given its name to another one.
        "identity": {"node name": settings["node"]} if resets else {},
        "left": resets or recorded,
        "unit": "kubelet",
        "resets": resets,
        "socket": settings["runtime_socket"],
        # Without a record it is not known what was there before.
        "network": recorded and bool(kept.files),
        "confirmed": host.text(places.TEARDOWN).strip(),
        "stops": stops,
        "absent": [
            *ours,
            *(unpacking.files(host) if recorded else ()),
            *([places.SECRETS] if host.fact("secrets") else []),
            # kubeadm resets no machine on which it has made nothing yet.
            *([places.ENCRYPTION] if recorded and host.fact("encryption_kept") else []),
        ],
        "restores": originals,
        "reload_units": bool(stops or originals),
        "actions": [one.as_dict() for one in _services(host, kept, stops)],
        "packages": list(kept.packages),
        "held": [name for name in settings["packages"] if pinning.with_apt(host) and name in kept.packages],
        "removed": _removed(host, kept, snapshots),
        "before": kept.settings.get("before", "").split(),
        "sysctls": sysctls.restored(host, kept.settings.get("sysctls", "")),
    }


def _services(host: Host, kept: Record, stops: c.Collection[str]) -> list[Action]:
    """Those whose packages stay. containerd also reads its configuration again in a run that continues one which was killed after its removal."""
    before = kept.files.get(places.CONTAINERD)
    configured = before is not None and (before.original is not None or not before.existed)
    service, now = kept.service("containerd"), host.unit("containerd")
    differs = "containerd" in kept.services and (service.active, service.enabled) != (now.active, now.enabled)
    units = [
        *(["containerd"] if (configured or differs) and not kept.packages else []),
        *(["kubelet"] if "kubelet" in kept.services and "kubelet" not in stops else []),
    ]
    return given_back(host, units, kept)


def _removed(host: Host, kept: Record, snapshots: bool) -> list[str]:
    images = [_IMAGES] if any(name.startswith("containerd") for name in kept.packages) else []
    if not host.text(places.RECORD):
        return []
    own = (
        [
            places.IMPORTED,
            places.UNPACKED,
            places.STAGED,
            places.TURN,
            places.CONFIGURATION,
            places.TEARDOWN,
            places.RESTORED,
            places.ROTATION,
            places.REPLACED,
            places.RECORD,
        ]
        if snapshots
        else [places.FOLDER]
    )
    return [*images, *own]
