# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is to K3s. Pure."""

from __future__ import annotations

import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import has
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    ABSENT,
    FOREIGN,
    HALF,
    MEMBER,
    Found,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import adoption, external, places

#: What shows that K3s has been started. The folder of images and the configuration come before.
_TRACES = (places.SERVER_AUTHORITY, places.ETCD, places.SQLITE, places.AUTHORITY, places.NODE_CERTIFICATE)


def found(host: Host, adopts: bool = False) -> Found:
    """adopts: whether a K3s is adopted that another one has installed."""
    state, why = _state(host, adopts)
    certificate = host.text(places.SERVER_AUTHORITY) or host.text(places.AUTHORITY)
    days, _due = authority.lasting(map(host.text, places.CERTIFICATES), host.now)
    serves = has(host, places.SERVER_AUTHORITY)
    version = host.version("k3s")
    return Found(
        state=state,
        why=why,
        serves=serves,
        data=has(host, places.ETCD) or has(host, places.SQLITE),
        authority=authority.fingerprint(certificate),
        certificate=certificate,
        endpoint=str(entry(host).get("server", "")),
        version=version,
        control_plane=version if serves else (),
        running=running(host),
        days=days,
        expired=days is not None and days < 0,
        rotating=bool(host.fact("rotating")),
    )


def entry(host: Host) -> dict[str, object]:
    """How the machine has come to its cluster, as the role has written it."""
    try:
        read = yaml.safe_load(host.text(places.ENTRY))
    except yaml.YAMLError:
        return {}
    return read if isinstance(read, dict) else {}


def running(host: Host) -> bool:
    return any(host.unit(name).active for name in places.UNITS.values())


def _state(host: Host, adopts: bool) -> tuple[str, str]:
    if other := next((unit for unit in places.FOREIGN if host.unit(unit).loaded), ""):
        return FOREIGN, f"{places.FOREIGN[other]} is installed (unit {other})"
    if host.unit("kubelet").active:
        return FOREIGN, "a kubelet runs that is not that of K3s (unit kubelet)"
    if not (adopts or host.text(places.RECORD)) and (
        other := next((name for name in places.UNITS.values() if host.unit(name).loaded), "")
    ):
        return FOREIGN, f"K3s is installed, and not by this role (unit {other}): cluster_k3s_adopt: true takes it over"
    present = [path for path in _TRACES if has(host, path)]
    if not present:
        return ABSENT, ""
    if has(host, places.ETCD) or has(host, places.SQLITE):
        # K3s completes by itself what a server lacks that has data, at each start.
        needed = [places.SERVER_AUTHORITY]
    else:
        needed = [places.AUTHORITY, places.NODE_CERTIFICATE]
        elsewhere = external.used(host) or (adopts and adoption.datastore(host))
        if has(host, places.SERVER_AUTHORITY) and not elsewhere:
            needed.append(places.ETCD)
    if missing := [path for path in needed if path not in present]:
        return HALF, f"{present[0]} exists, and {missing[0]} does not"
    return MEMBER, ""
