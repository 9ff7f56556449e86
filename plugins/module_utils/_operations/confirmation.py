# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Confirmation before deletion: a cluster that only the machine's environment selected is refused until it is named."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import identity
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet

_OPTION = "-e hwaccel_confirm="


@dataclasses.dataclass(frozen=True)
class Settings:
    """name: of the cluster in the inventory. cluster_uid, confirm: "" where not set. command: the command to run again, without the confirmation.

    decided_by: the setting of the machine that selected the cluster, "" if the options did. own: the options name a kubeconfig, a context or a server.
    where, source: the API server, and the source of the credentials.
    """

    name: str
    cluster_uid: str
    confirm: str
    command: str
    decided_by: str
    own: bool
    where: str
    source: str


def confirmed(
    client: Client, settings: Settings, *, check_mode: bool, warn: c.Callable[[str], None]
) -> dict[str, t.Any]:
    """Identifies the cluster. Check mode writes nothing, so a missing confirmation is a warning there.

    Raises ManyFaults if it is not the cluster in the inventory, HwaccelError if it, or another cluster, is not the confirmed one.
    """
    uid = fleet.cluster_uid(client)
    if faults := identity.other_cluster(uid, settings.cluster_uid):
        raise ManyFaults(faults)
    # If the uid cannot be read, the name of the inventory host confirms the cluster.
    key = uid or settings.name
    found = {
        "cluster_uid": uid,
        "platform": fleet.platform(client),
        "nodes": _nodes(client),
        "server": settings.where,
        "decided_by": settings.decided_by,
    }
    described = _described(found, settings)
    result = found | {"text": f"{settings.name} is {described}"}
    proven = settings.own and bool(settings.cluster_uid)
    if settings.confirm and settings.confirm != key:
        raise HwaccelError(
            "hwaccel_confirm names another cluster, so nothing was deleted",
            settings.name,
            f"it is {settings.confirm}, and this is {described}",
            f"correct the connection; or, if this is the intended cluster, {_command(settings, key)}",
        )
    if settings.decided_by and not settings.confirm and not proven:
        error = HwaccelError(
            f"this cluster was selected by {settings.decided_by}, not by the inventory, so nothing was deleted",
            settings.name,
            f"it is {described}",
            f"if this is the intended cluster, {_command(settings, key)}",
        )
        if not check_mode:
            raise error
        warn(f"Outside of check mode this will be refused: {error}")
    return result


def _nodes(client: Client) -> int | None:
    """None if the run may not list them."""
    try:
        return sum(len(page.items) for page in client.pages(fleet.NODE, metadata_only=True))
    except Forbidden:
        return None


def _described(found: c.Mapping[str, t.Any], settings: Settings) -> str:
    uid = (
        f"the cluster with uid {found['cluster_uid']}" if found["cluster_uid"] else "a cluster whose uid cannot be read"
    )
    count = found["nodes"]
    nodes = "an unknown number of nodes" if count is None else f"{count} node{'s' if count != 1 else ''}"
    platform = found["platform"]
    return f"{uid}, {platform['distribution']} {platform['version']}, {nodes}, API server {settings.where}, connected with {settings.source}"


def _command(settings: Settings, key: str) -> str:
    return f"run {settings.command} {_OPTION}{key}" if settings.command else f"run again with {_OPTION}{key}"
