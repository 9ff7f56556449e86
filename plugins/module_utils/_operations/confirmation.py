# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom something is about to destroy: a cluster that only the machine's environment has chosen is refused until it is named."""

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
    """name: of the cluster in the inventory. cluster_uid, confirm: "" where not set. command: what goes on, but for the confirmation.

    decided_by: what of the machine has chosen the cluster, "" where the options have. own: the options name a kubeconfig, a context or a server.
    where, source: the API server, and where the credentials are from.
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
    """The cluster that was reached. Check mode writes nothing, so there a missing confirmation is a warning.

    Raises ManyFaults where it is another cluster than the inventory means, HwaccelError where it is not confirmed, or another one is.
    """
    uid = fleet.cluster_uid(client)
    if faults := identity.other_cluster(uid, settings.cluster_uid):
        raise ManyFaults(faults)
    # Who cannot read the uid can still say which host of the inventory is meant.
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
            "hwaccel_confirm names another cluster, so nothing was removed",
            settings.name,
            f"it says {settings.confirm}, and this is {described}",
            f"correct the connection; or, if this is the cluster that is meant, {_command(settings, key)}",
        )
    if settings.decided_by and not settings.confirm and not proven:
        error = HwaccelError(
            f"which cluster this is was decided by {settings.decided_by}, and not by the inventory, so nothing was removed",
            settings.name,
            f"it is {described}",
            f"if this is the cluster that is meant, {_command(settings, key)}",
        )
        if not check_mode:
            raise error
        warn(f"Without check mode this will be refused: {error}")
    return result


def _nodes(client: Client) -> int | None:
    """None where they may not be listed."""
    try:
        return sum(len(page.items) for page in client.pages(fleet.NODE, metadata_only=True))
    except Forbidden:
        return None


def _described(found: c.Mapping[str, t.Any], settings: Settings) -> str:
    uid = (
        f"the cluster with uid {found['cluster_uid']}" if found["cluster_uid"] else "a cluster whose uid cannot be read"
    )
    count = found["nodes"]
    nodes = "nodes that may not be counted" if count is None else f"{count} node{'s' if count != 1 else ''}"
    platform = found["platform"]
    return f"{uid}, {platform['distribution']} {platform['version']}, {nodes}, API server {settings.where}, reached with {settings.source}"


def _command(settings: Settings, key: str) -> str:
    return f"run {settings.command} {_OPTION}{key}" if settings.command else f"run again with {_OPTION}{key}"
