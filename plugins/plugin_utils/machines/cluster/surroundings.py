# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is around a machine that becomes a node: proxies in its environment, and the name of its cluster's endpoint. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host

_UNITS = ("containerd", "crio", "docker", "k3s", "k3s-agent", "kubelet")
#: Where services and logins have their environment from.
_FILES = (
    "/etc/environment",
    *(f"/etc/systemd/system/{unit}.service.d/*.conf" for unit in _UNITS),
    *(f"/etc/systemd/system/{unit}.service.env" for unit in ("k3s", "k3s-agent")),
    *(f"/etc/{folder}/{unit}" for folder in ("default", "sysconfig") for unit in _UNITS),
)
#: Addresses of proxies may have passwords, so only the files are named that have any.
FACTS: dict[str, tuple[str, ...]] = {
    "proxied": ("having", r"(?i)^[^#]*\bHTTPS?_PROXY=[\"']?\S", *_FILES),
    "unproxied": ("found_in", r"(?i)\bNO_PROXY=[\"']?([^\s\"']*)", *_FILES),
}


def facts(endpoint: str) -> dict[str, tuple[str, ...]]:
    """With the addresses of the endpoint's name. endpoint: with its port."""
    name = _name(endpoint)
    return {**FACTS, **({"endpoint": ("output", "getent", "hosts", name)} if name and not _address(name) else {})}


def endpoint(host: Host, given: str) -> list[Fault]:
    """A name that the machine does not know."""
    name = _name(given)
    if not name or _address(name) or "endpoint" not in host.facts or host.fact("endpoint").strip():
        return []
    next_step = "add it to DNS or to /etc/hosts, or set an address as hwaccel_api_endpoint"
    return [
        Fault(
            f"the endpoint's name {name} has no address", "getent hosts", "a node asks its API server by it", next_step
        )
    ]


def proxy(host: Host, given: str, networks: c.Iterable[str]) -> list[Fault]:
    """A proxy that would get what is meant for the cluster."""
    files = host.fact("proxied").split()
    if not files:
        return []
    known = {one.strip() for line in host.fact("unproxied").splitlines() for one in line.split(",") if one.strip()}
    wanted = [part.strip() for text in networks for part in text.split(",") if part.strip()]
    lacks = [one for one in (*filter(None, [_name(given)]), *wanted) if not _covered(one, known)]
    if not lacks:
        return []
    why, next_step = f"NO_PROXY does not have {some(lacks)}", "add it there, and restart the service"
    return [Fault("a proxy would take traffic of the cluster", some(files), why, next_step)]


def _name(given: str) -> str:
    return given.rpartition(":")[0].strip("[]")


def _address(text: str) -> bool:
    return _network(text) is not None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _covered(wanted: str, known: c.Collection[str]) -> bool:
    """As golang.org/x/net/http/httpproxy reads NO_PROXY: *, addresses, networks, and names with all below them."""
    mine = _network(wanted)
    if "*" in known:
        return True
    if mine is None:
        return any(wanted == one.lstrip(".") or wanted.endswith(f".{one.lstrip('.')}") for one in known)
    theirs = [found for one in known if (found := _network(one)) is not None]
    return any(found.version == mine.version and mine.subnet_of(found) for found in theirs)  # type: ignore[arg-type]
