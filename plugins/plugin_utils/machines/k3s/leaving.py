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
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import external, hardening, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import found as finding
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.turn import Turn
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record


def restored(host: Host, settings: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The plan, in plain data. settings: as for plan.plan. found, turn, identity: as plan.plan documents them, for the plan of the cluster.

    left: whether anything is to be done. unit: that of its K3s. resets: whether what K3s runs and keeps is removed. confirmed: the cluster whose removal an
    earlier run has begun here. stops: units that end, because their files go. absent: files to remove. restores: texts by path, of files that are as before
    again. sysctls: settings of the kernel to write again. removed: folders and files that are removed last, with the record. before: network interfaces that
    were there before. keeps: folders of which nothing is removed, as others had them before.
    """
    damaged = record.faults(host, places.ROLE)
    kept = Record() if damaged else record.read(host, places.ROLE) or Record()
    now = finding.found(host)
    ours, originals, others = record.restorable(host, kept)
    foreign = [] if now.state != FOREIGN else [Fault(now.why, "", "", "take the machine out of this cluster's groups")]
    recorded = bool(host.text(places.RECORD))
    resets = now.state in (MEMBER, HALF)
    units = [unit for unit in places.UNITS.values() if host.unit(unit).loaded]
    secrets = [path for path in (places.TOKEN, places.AGENT_TOKEN, places.ENTRY) if path in _present(host)]
    # To the program, which goes.
    links = [path for path in kept.settings.get("links", "").split() if path in host.fact("links").split()]
    snapshots = bool(host.fact("snapshots")) and resets
    shared = bool(external.used(host)) and resets
    return {
        "messages": [
            *others,
            *([f"snapshots of etcd go with {places.DATA}"] if snapshots else []),
            *(["what the cluster has in its datastore stays there"] if shared else []),
        ],
        "faults": [fault.as_dict() for fault in (*damaged, *foreign)],
        "found": now.as_dict(),
        "turn": Turn().as_dict(),
        # A machine that is gone already may have given its name to another one.
        "identity": {"node name": settings["node"]} if resets else {},
        "left": resets or recorded,
        "unit": next(iter(units), places.UNITS[settings["role"]]),
        "resets": resets,
        "confirmed": host.text(places.TEARDOWN).strip(),
        "stops": units if recorded else [],
        "absent": [*ours, *links, *secrets],
        "restores": originals,
        "reload_units": bool(units or originals),
        "actions": [],
        "packages": [],
        "held": [],
        "removed": [places.FOLDER] if recorded else [],
        "sysctls": hardening.restored(host, kept.settings.get("sysctls", "")),
        "before": kept.settings.get("before", "").split(),
        "keeps": [places.KUBELET] if kept.settings.get("kubelet") else [],
    }


def _present(host: Host) -> list[str]:
    return [*host.fact("present").split(), *host.files]
