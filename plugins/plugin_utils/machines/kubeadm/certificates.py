# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a server that kubeadm has issued: whether they have to be renewed, and which static pods have not loaded them. Pure.

kubeadm issues them for a year, and its upgrades renew only those of static pods whose manifests they replace (cmd/kubeadm/app/phases/upgrade/staticpods.go).
Nothing but a restart makes all components load renewed ones (https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-certs/).
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import ipaddress

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places


@dataclasses.dataclass(frozen=True)
class Certificates:
    """days: until the first one expires, None if the machine has none. due: whether they are to be renewed.

    renewable: whether kubeadm can renew them, which needs the keys of the authorities. pods: static pods that have not loaded theirs, or will not have.
    lacking: names for which the API server's certificate is to be valid, and is not.
    """

    days: int | None = None
    due: bool = False
    renewable: bool = False
    pods: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def renew(self) -> bool:
        return self.due and self.renewable

    @property
    def expired(self) -> bool:
        return self.days is not None and self.days < 0

    @property
    def state(self) -> str:
        return authority.expiry(self.days, "its control plane")


def certificates(host: Host, names: c.Iterable[str] = ()) -> Certificates:
    """names: those for which the certificate of the API server is to be valid."""
    days, due = authority.lasting(map(host.text, places.CERTIFICATES), host.now)
    manifests = [pod for pod in places.STATIC_PODS if host.moment(places.moment(places.manifest(pod)))]
    needed = [*places.AUTHORITY_KEYS, *([places.ETCD_AUTHORITY_KEY] if "etcd" in manifests else [])]
    renewable = set(needed) <= set(host.fact("keys").split())
    lacking = _lacking(host, names)
    reissued = ["kube-apiserver"] if lacking and renewable else []
    restarts = [pod for pod in manifests if (due and renewable) or pod in reissued or _outdated(host, pod)]
    return Certificates(days, due, renewable, tuple(restarts), lacking)


def _lacking(host: Host, names: c.Iterable[str]) -> tuple[str, ...]:
    if not (text := host.text(places.API_CERTIFICATE)):
        return ()
    has = authority.names(text)
    return tuple(name for name in names if _shortest(name) not in has)


def _shortest(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _outdated(host: Host, pod: str) -> bool:
    """Whether its credentials are newer than its manifest, whose change is what restarts a static pod."""
    since = host.moment(places.moment(places.manifest(pod)))
    return any(host.later(host.moment(places.moment(path)), since) for path in places.STATIC_PODS[pod])
