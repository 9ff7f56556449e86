# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for tasks of the role cluster_k3s: texts and plain data in, plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority, sources
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import ABSENT, HALF, Answer
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.plan import Cluster
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import (
    configuration,
    images,
    leaving,
    places,
    plan,
    snapshots,
    verdict,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import request as asking
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import turn as turning

_Data = c.Mapping[str, t.Any]


def requested(settings: _Data) -> host.Request:
    """As request.request documents it."""
    return asking.request(settings)


def planned(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As plan.plan documents it."""
    return plan.plan(host.read(printed), settings)


def restored(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As leaving.restored documents it."""
    return leaving.restored(host.read(printed), settings)


def configured(settings: _Data, machine: _Data, secrets: _Data, what: str) -> str:
    """How a machine comes to its cluster, as configuration.entry documents it. secrets: token, empty if K3s makes it.

    what: or snapshots, for the Secret with which they go to S3, as snapshots.secret documents it. secrets: access_key and secret_key.
    """
    if what == "snapshots":
        return snapshots.secret(settings, str(secrets["access_key"]), str(secrets["secret_key"]))
    return configuration.entry({**settings, **machine}, what, token=bool(secrets.get("token")))


def wanted(settings: _Data, _read: None) -> dict[str, t.Any]:
    """Files on the controller that are to be read, as sources.wanted documents them."""
    return sources.wanted(settings, [settings["image_list"]])


def compared(settings: _Data, read: _Data) -> dict[str, t.Any]:
    """faults, and messages. read: what sources.py has printed."""
    faults, messages = images.judged(settings, read)
    return {"faults": [fault.as_dict() for fault in faults], "messages": messages}


def answered(result: _Data) -> Answer:
    """What the endpoint has answered. result: of the module uri, for the certificate authority, which K3s lets everyone read (pkg/server/handlers)."""
    if int(result.get("status", -1)) < 0:
        return Answer()
    return Answer(True, authority.fingerprint(str(result.get("content") or "")))


def told(_settings: _Data, observed: str, plans: c.Iterable[_Data]) -> tuple[Cluster, dict[str, t.Any]]:
    """What a cluster tells of itself. Machines have their configuration in files, so the cluster has none that is compared.

    observed: what `member.py observe` prints. plans: of the machines, servers first.
    """
    found = json.loads(observed)
    names = frozenset((*found["nodes"], *found["members"]))
    ready = frozenset(name for name, is_ready in found["nodes"].items() if is_ready)
    return Cluster(faults=tuple(_mixed(list(plans))), names=names, ready=ready), {}


def _mixed(plans: c.Sequence[_Data]) -> list[Fault]:
    """Servers must have the same settings (CriticalControlArgs in pkg/daemons/config/types.go): one that joins with others than those that run ends at once."""
    unread = turning.unread(places.CONFIGURATION)
    changed = any(unread in one["turn"].get("reasons", ()) and one["found"]["serves"] for one in plans)
    joins = [one for one in plans if one.get("serves") and one["found"]["state"] in (ABSENT, HALF)]
    if not (changed and joins):
        return []
    what, why = (
        "servers are to join while settings of those that run change",
        "K3s refuses servers with different settings",
    )
    next_step = "let them join with the settings that run, or change these first, and then the other"
    return [Fault(what, "", why, next_step)]


def judged(result: _Data, name: str, endpoint: str, journal: str) -> str:
    """As verdict.verdict documents it, as text. result: of systemd, or of what has asked for the node's health. name: of the machine."""
    return str(verdict.verdict(name, endpoint, verdict.output(result), journal))
