# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of dnsmasq: the model of its templates, with names, addresses and boot files. Pure."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines, templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import (
    Settings,
    Site,
    Subnet,
    overlap,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

PID = "/run/hwaccel-gpu-dns-pxe/dnsmasq.pid"
HOSTS, EXTRA_HOSTS = "hosts", "extra-hosts"
#: Tag of machines that boot files with keys, which TFTP does not serve.
KEYS = "keys"
#: Which machines use iPXE: none, those that have it, or all, which get it by TFTP.
NEVER, CLIENTS, ALWAYS = "never", "clients", "always"


@dataclasses.dataclass(frozen=True)
class Boot:
    """A kind of client, and its boot file. codes: of its architecture, in DHCP option 93. machine: tag of machines that may boot in this way.

    ipxe_file: of iPXE, for those whose boot file is loaded by TFTP: pxelinux and the signed GRUB of Debian 12 load others by TFTP only.
    """

    tag: str
    codes: tuple[int, ...]
    machine: str
    file: str
    ipxe_file: str = ""
    by_http: bool = False


#: Codes of IANA's registry "Processor Architecture Types" (RFC 4578, RFC 5970). Many firmwares for x86_64 send 7, although the registry has 9.
BOOTS = (
    Boot("client-bios", (0,), "bios", "pxelinux.0", "undionly.kpxe"),
    Boot("client-efi64", (7, 9), "uefi", "shimx64.efi", "snponly.efi"),
    Boot("client-arm64", (11,), "uefi-aarch64", "shimaa64.efi", "snponly-arm64.efi"),
    Boot("client-http64", (16,), "uefi", "httpx64.efi", by_http=True),
    Boot("client-httparm64", (19,), "uefi-aarch64", "httpaa64.efi", by_http=True),
)


def config(site: Site, settings: Settings, folder: str, files: str) -> str:
    """The main file. folder: of the other files. files: root of TFTP."""
    return templating.render(
        "dns_pxe",
        "dnsmasq.conf",
        **{name: settings[name] for name in ("interfaces", "dns", "dhcp", "pxe", "ipxe")},
        pid_file=PID,
        folder=folder,
        forwarders=site.forwarders,
        clusters=site.clusters,
        etcd=_etcd(site),
        domains=_domains(site),
        pool=any(subnet.pool for subnet in site.subnets),
        subnets=_subnets(site, settings),
        machines=[
            (one, (*_tags(one), *((KEYS,) if site.boots_keys(one) else ())))
            for one in site.machines
            if one.address.version == 4
        ],
        keys=KEYS if any(map(site.boots_keys, site.machines)) else "",
        files=files,
        boots=BOOTS,
        base=entries.http(site, settings["http_port"]),
        address=site.address,
        extra=settings["dnsmasq_extra"],
    )


def hosts(site: Site) -> str:
    """Names by address. The first name of an address is that of its reverse record, so machines come before names of clusters."""
    found = [(machine.address, [site.fqdn(machine)]) for machine in site.machines]
    for cluster in site.clusters:
        api, internal = f"api.{cluster.domain}", f"api-int.{cluster.domain}"
        both = [address for address in cluster.api if address in cluster.api_int]
        found += [(address, [api, internal]) for address in both]
        found += [(address, [api]) for address in cluster.api if address not in both]
        found += [(address, [internal]) for address in cluster.api_int if address not in both]
    return templating.render("dns_pxe", "hosts", hosts=found)


def extra_hosts(site: Site) -> str:
    """Names by address of other hosts."""
    return templating.render("dns_pxe", "hosts", hosts=site.extra_hosts)


def boot_kinds(machine: Machine) -> tuple[Boot, ...]:
    """Kinds of clients that the machine can be."""
    return tuple(one for one in BOOTS if one.machine in _tags(machine))


def _tags(machine: Machine) -> tuple[str, ...]:
    if machine.architecture == machines.AARCH64:
        return ("uefi-aarch64",)
    return (machine.firmware,) if machine.firmware else (machines.BIOS, machines.UEFI)


def _etcd(site: Site) -> dict[str, list[str]]:
    """Names of the machines in etcd's SRV records, by the name of the cluster."""
    masters = [one for one in site.machines if one.role == machines.MASTER]
    return {
        cluster.name: [site.fqdn(one) for one in masters if cluster.srv and one.cluster == cluster.name]
        for cluster in site.clusters
    }


def _subnets(site: Site, settings: Settings) -> list[tuple[str, Subnet]]:
    """Subnets of IPv4, each with its tag and the DNS servers for its machines."""
    own = (site.address,) if settings["dns"] else ()
    return [
        (f"net{number}", dataclasses.replace(subnet, dns=subnet.dns or own))
        for number, subnet in enumerate(site.subnets)
        if subnet.network.version == 4
    ]


def _domains(site: Site) -> list[str]:
    """Domains with their addresses. If two clusters share a network, each machine has a separate line."""
    found = []
    for cluster in site.clusters:
        others = [network for one in site.clusters if one is not cluster for network in one.machine_networks]
        alone = bool(cluster.machine_networks) and not any(
            overlap(network, other) for network in cluster.machine_networks for other in others
        )
        if alone or len(site.clusters) == 1:
            found += [f"{cluster.domain},{network}" for network in cluster.machine_networks] or [cluster.domain]
        else:
            mine = [one for one in site.machines if one.cluster == cluster.name]
            found += [f"{cluster.domain},{one.address},{one.address}" for one in mine]
    return found
