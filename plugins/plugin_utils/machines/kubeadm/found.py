# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is to kubeadm. Pure."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import has
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import (
    ABSENT,
    FOREIGN,
    HALF,
    MEMBER,
    Found,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, version_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import encryption, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.certificates import certificates

#: A kubelet without a configuration ends within a second and is started again, so one that runs for longer has another configuration.
_SETTLED = 30.0


def found(host: Host) -> Found:
    state, why = _state(host)
    certificate = host.text(places.AUTHORITY)
    issued = certificates(host)
    return Found(
        state=state,
        why=why,
        serves=has(host, places.API_SERVER),
        # A server that has served, and whose data is gone, must not make way for a second cluster: there may be a snapshot.
        data=has(host, places.DATA) or (has(host, places.ADMIN) and bool(host.fact("enrolled"))),
        authority=authority.fingerprint(certificate),
        certificate=certificate,
        endpoint=host.fact("server").partition(":")[2].strip(),
        version=host.version("kubelet"),
        # The first number in an image's name may be an address.
        control_plane=min(
            (version_of(image.rpartition(":")[2]) for name in places.CONTROL_PLANE if (image := host.fact(name))),
            default=(),
        ),
        running=host.unit("kubelet").active,
        days=issued.days,
        expired=issued.expired and issued.renewable,
        rotating=bool(host.fact("rotating")),
        rekeying=encryption.replacing(host),
    )


def _state(host: Host) -> tuple[str, str]:
    present = host.fact("present").split()
    if other := next((unit for unit in places.FOREIGN if host.unit(unit).loaded), ""):
        return FOREIGN, f"{places.FOREIGN[other]} is installed (unit {other})"
    if places.KUBELET_CONFIG not in present and _runs(host):
        return FOREIGN, "a kubelet runs without kubeadm's configuration"
    if not [path for path in present if path != places.KUBELET_CONFIG]:
        return ABSENT, ""
    needed = [places.AUTHORITY, places.KUBELET_CONF, places.KUBELET_CONFIG]
    if {places.API_SERVER, places.ADMIN, places.DATA} & set(present):
        # Without etcd's manifest, the datastore is external.
        stacked = [places.DATA] if places.ETCD in present else []
        needed += [places.ADMIN, places.API_SERVER, *stacked]
    if missing := [path for path in needed if path not in present]:
        return HALF, f"{next(path for path in present)} exists, and {missing[0]} does not"
    if places.BOOTSTRAP in present:
        return HALF, f"{places.BOOTSTRAP} exists, so its kubelet has no certificate yet"
    return MEMBER, ""


def _runs(host: Host) -> bool:
    unit = host.unit("kubelet")
    return unit.active and host.now - unit.started_at > _SETTLED
