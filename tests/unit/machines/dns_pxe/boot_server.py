# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role dns_pxe for tests, and an observed boot server."""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import (
    model,
    plan,
    systems,
    units,
    wishes,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.findings import Findings, Source
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host, Listener, Unit

SERVER = "10.77.0.2"
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'
PACKAGES = "dnsmasq nftables nginx pxelinux syslinux-common shim-signed grub-efi-amd64-signed ipxe"
LOADERS = {
    "pxelinux.0": "/usr/lib/PXELINUX/pxelinux.0",
    "ldlinux.c32": "/usr/lib/syslinux/modules/bios/ldlinux.c32",
    "shimx64.efi": "/usr/lib/shim/shimx64.efi.signed",
    "grubx64.efi": "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
    "undionly.kpxe": "/usr/lib/ipxe/undionly.kpxe",
    "snponly.efi": "/usr/lib/ipxe/snponly.efi",
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def machine(name: str, role: str, number: int, **more: t.Any) -> dict[str, t.Any]:
    return {
        "name": name,
        "cluster": "ocp",
        "role": role,
        "address": f"10.77.0.{number}",
        "mac": f"52:54:00:77:00:{number}",
        "install": True,
        **more,
    }


_CLUSTER = {
    "name": "ocp",
    "domain": "ocp.example.com",
    "api": "10.77.0.5",
    "machine_networks": ["10.77.0.0/24"],
    "cluster_networks": ["10.128.0.0/14"],
    "service_networks": ["172.30.0.0/16"],
}


def settings(**changed: t.Any) -> dict[str, t.Any]:
    """A new cluster without nodes, with a bootstrap machine, a master and a worker that have to be installed."""
    paths = ("os/kernel", "os/initramfs", "os/rootfs")
    boots = dict(zip(("kernel", "initramfs", "rootfs"), paths, strict=True))
    base: dict[str, t.Any] = {
        "address": SERVER,
        "interfaces": ["eth0"],
        "dns": True,
        "dhcp": True,
        "pxe": True,
        "machines": [
            machine("bootstrap", "bootstrap", 10),
            machine("master-0", "master", 11, firmware="bios"),
            machine("worker-0", "worker", 21, firmware="uefi"),
        ],
        "clusters": [dict(_CLUSTER)],
        "networks": [{"network": "10.77.0.0/24", "router": "10.77.0.1"}],
        "clients": [],
        "forwarders": [],
        "extra_hosts": [],
        "joined": {"ocp": []},
        "install_again": [],
        "profiles": [
            {"role": role, **boots, "ignition": f"{role}.ign", "install_device": "/dev/sda"}
            for role in ("bootstrap", "master", "worker")
        ],
        "artifacts": [
            {"path": path, "source": f"/files/{path}", "checksum": f"sha256:{digest(path)}"} for path in paths
        ],
        "ignitions": [
            {"path": f"{role}.ign", "source": f"/files/{role}.ign"} for role in ("bootstrap", "master", "worker")
        ],
        "http_port": 8080,
        "ipxe": "clients",
        "loaders": {},
        "dnsmasq_extra": [],
        "nginx_extra": [],
        "python": "/usr/bin/python3",
        "skipped_checks": [],
        "firewall": True,
        "collections": ["ansible.posix", "community.general"],
    }
    return {**base, **changed}


def findings(given: dict[str, t.Any], **changed: t.Any) -> Findings:
    """All sources exist, and no file has been fetched yet."""
    sources = {
        one["source"]: Source(checksum=digest(one["path"]))
        for one in [*given["artifacts"], *given["ignitions"]]
        if "source" in one
    }
    return dataclasses.replace(Findings(sources=sources), **changed)


def _listener(protocol: str, place: str, program: str, unit: str) -> Listener:
    address, _colon, port = place.rpartition(":")
    address, _percent, device = address.strip("[]").partition("%")
    return Listener(protocol, address, int(port), program, device, unit.strip("-"))


def host(
    listeners: str = "", packages: str = PACKAGES, os_release: str = DEBIAN, firewalls: str = "", **facts: str
) -> Host:
    """A Debian without running services. Boot files have the checksum of their name. `listeners` has lines with protocol, address, program and unit."""
    return Host(
        facts={"os_release": os_release, "packages": packages, **facts},
        checksums={path: digest(name) for name, path in LOADERS.items()},
        addresses={"127.0.0.1": "lo", SERVER: "eth0"},
        listeners=tuple(_listener(*line.split()) for line in listeners.splitlines()),
        firewalls=tuple(firewalls.split()),
    )


def planned(given: dict[str, t.Any] | None = None, observed: Host | None = None, **found: t.Any) -> dict[str, t.Any]:
    given = given or settings()
    return plan.plan(observed or host(), given, findings(given, **found))


def faults(given: dict[str, t.Any] | None = None, observed: Host | None = None, **found: t.Any) -> list[str]:
    return [fault["text"] for fault in planned(given, observed, **found)["faults"]]


def after(given: dict[str, t.Any], at: float = 100.0, started: float = 200.0) -> tuple[Host, Findings]:
    """The server and findings after a complete run: files changed at the time `at`, services started at `started`."""
    site, _faults = model.read(given)
    assert site
    family = systems.family({"ID": "debian"})
    assert family
    contents = plan.rendered(site, given, family)
    files = {path: text for path, text in contents.items() if not path.startswith(plan.FILES)}
    files[plan.WISHES] = wishes.text(wishes.following((), (), site.machines, site.wanted(), "0.000"))
    files[record.path(plan.ROLE)] = '{"services": {}, "packages": []}'
    sums = {path: digest(text) for path, text in contents.items() if path.startswith(plan.FILES)}
    sums |= {f"{plan.FILES}/{name}": digest(name) for name in systems.needed(site, given)}
    sums |= {f"{plan.STATE}/{path}": digest(one.path) for path, one, readers in site.protected() if readers}
    base_host = host()
    base = dataclasses.replace(
        base_host,
        files={path: File(path, text, changed_at=at) for path, text in files.items()},
        checksums=base_host.checksums | sums,
        units={name: Unit(True, True, True, started) for name in ("dnsmasq", "nginx", units.ONCE)},
    )
    return base, findings(given, images={one.path: digest(one.path) for one in site.artifacts if not one.secret})
