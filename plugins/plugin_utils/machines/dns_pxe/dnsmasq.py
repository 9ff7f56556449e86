# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of dnsmasq: names, addresses and boot files. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import entries
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import (
    Cluster,
    Settings,
    Site,
    Subnet,
    overlap,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Address, Machine

PID = "/run/hwaccel-gpu-dns-pxe/dnsmasq.pid"
HOSTS, EXTRA_HOSTS = "hosts", "extra-hosts"
#: When iPXE is used: not at all, where a machine brings it, or by all, which get it by TFTP.
NEVER, CLIENTS, ALWAYS = "never", "clients", "always"


@dataclasses.dataclass(frozen=True)
class Boot:
    """A kind of client, and what it gets. codes: of its architecture, in DHCP's option 93. machine: tag of machines that may boot so."""

    tag: str
    codes: tuple[int, ...]
    machine: str
    file: str
    ipxe_file: str = ""
    by_http: bool = False


#: Codes of IANA's registry "Processor Architecture Types" (RFC 4578, RFC 5970). Many firmwares for x86_64 send 7 where the registry has 9.
BOOTS = (
    Boot("client-bios", (0,), "bios", "pxelinux.0", "undionly.kpxe"),
    Boot("client-efi64", (7, 9), "uefi", "shimx64.efi", "snponly.efi"),
    Boot("client-arm64", (11,), "uefi-aarch64", "shimaa64.efi", "snponly-arm64.efi"),
    Boot("client-http64", (16,), "uefi", "httpx64.efi", by_http=True),
    Boot("client-httparm64", (19,), "uefi-aarch64", "httpaa64.efi", by_http=True),
)


def config(site: Site, settings: Settings, folder: str, files: str) -> str:
    """The main file. folder: where the files beside it lie. files: root of TFTP."""
    lines = [
        *(f"interface={name}" for name in settings["interfaces"]),
        "bind-dynamic",
        "except-interface=lo",
        f"pid-file={PID}",
        "no-resolv",
        "no-hosts",
    ]
    lines += _dns(site, folder) if settings["dns"] else ["port=0"]
    if settings["dhcp"]:
        lines += [*_dhcp(site, settings), *_leases(site)]
    if settings["pxe"]:
        lines += ["enable-tftp", f"tftp-root={files}"]
    if settings["pxe"] and settings["dhcp"]:
        lines += _boot(site, settings)
    return "\n".join([entries.HEADER.rstrip(), *lines, *settings["dnsmasq_extra"], ""])


def hosts(site: Site) -> str:
    """Names by address. Of several names of one address the first is that of the reverse record, so machines come before their clusters' names."""
    lines = [f"{machine.address} {site.fqdn(machine)}" for machine in site.machines]
    for cluster in site.clusters:
        both = [address for address in cluster.api if address in cluster.api_int]
        lines += [f"{address} api.{cluster.domain} api-int.{cluster.domain}" for address in both]
        lines += [f"{address} api.{cluster.domain}" for address in cluster.api if address not in both]
        lines += [f"{address} api-int.{cluster.domain}" for address in cluster.api_int if address not in both]
    return "\n".join([entries.HEADER.rstrip(), *lines, ""])


def extra_hosts(site: Site) -> str:
    return "\n".join(
        [entries.HEADER.rstrip(), *(f"{address} {' '.join(names)}" for address, names in site.extra_hosts), ""]
    )


def boot_kinds(machine: Machine) -> tuple[Boot, ...]:
    """How the machine may boot."""
    return tuple(one for one in BOOTS if one.machine in _tags(machine))


def _tags(machine: Machine) -> tuple[str, ...]:
    if machine.architecture == machines.AARCH64:
        return ("uefi-aarch64",)
    return (machine.firmware,) if machine.firmware else (machines.BIOS, machines.UEFI)


def _dns(site: Site, folder: str) -> list[str]:
    lines = [
        "domain-needed",
        "bogus-priv",
        "localise-queries",
        f"addn-hosts={folder}/{HOSTS}",
        f"addn-hosts={folder}/{EXTRA_HOSTS}",
        *(f"server={address}" for address in site.forwarders),
    ]
    for cluster in site.clusters:
        lines += _cluster(site, cluster)
    return lines


def _cluster(site: Site, cluster: Cluster) -> list[str]:
    apps = f"/apps.{cluster.domain}/"
    # Without local= for the wildcard's own name the answer for AAAA would be that there is no such name at all.
    lines = [f"local=/{cluster.domain}/", *(f"address={apps}{address}" for address in cluster.ingress), f"local={apps}"]
    if cluster.srv:
        masters = [one for one in site.machines if one.cluster == cluster.name and one.role == machines.MASTER]
        lines += [f"srv-host=_etcd-server-ssl._tcp.{cluster.domain},{site.fqdn(one)},2380,0,10" for one in masters]
    return lines


def _leases(site: Site) -> list[str]:
    """A line for each machine: its MAC, address and name. A firmware and the system after it tell themselves by different identifiers: the MAC alone counts.

    Not in a file beside the main one: dnsmasq 2.90 that has given an address by a line with tags there ends with SIGSEGV when it reads that file again.
    """
    lines = []
    for machine in site.machines:
        if machine.address.version == 4:
            tags = ",".join(f"set:{tag}" for tag in ("machine", *_tags(machine)))
            lines.append(f"dhcp-host={machine.mac},id:*,{tags},{machine.address},{machine.name}")
    return lines


def _dhcp(site: Site, settings: Settings) -> list[str]:
    lines = [
        "dhcp-authoritative",
        "log-dhcp",
        # A name that a machine nobody knows tells of itself is not believed.
        "dhcp-ignore-names=tag:!known",
        *_domains(site),
    ]
    if not any(subnet.pool for subnet in site.subnets):
        lines.append("dhcp-ignore=tag:!known")
    for number, subnet in enumerate(site.subnets):
        if subnet.network.version == 4:
            lines += _subnet(site, settings, subnet, f"net{number}")
    return lines


def _subnet(site: Site, settings: Settings, subnet: Subnet, tag: str) -> list[str]:
    mask = subnet.network.netmask
    # A network of a relay is none of this server's own interfaces, so that its mask has to be told.
    lines = [f"dhcp-range=set:{tag},{subnet.network.network_address},static,{mask},{subnet.lease}"]
    if subnet.pool:
        lines.append(f"dhcp-range=set:{tag},{subnet.pool[0]},{subnet.pool[1]},{mask},{subnet.lease}")
    servers = subnet.dns or ((site.address,) if settings["dns"] else ())
    options: tuple[tuple[str, c.Sequence[Address | int]], ...] = (
        ("router", (subnet.router,) if subnet.router else ()),
        ("dns-server", servers),
        ("ntp-server", subnet.ntp),
        ("mtu", (subnet.mtu,) if subnet.mtu else ()),
    )
    for name, values in options:
        told = "".join(f",{value}" for value in values)
        # Without a value the option is not sent: by itself dnsmasq would name this server as router and DNS server.
        if told or name in ("router", "dns-server"):
            lines.append(f"dhcp-option=tag:{tag},option:{name}{told}")
    return lines


def _domains(site: Site) -> list[str]:
    """Domains by address. Where two clusters share a network each machine has a line of its own."""
    lines = []
    for cluster in site.clusters:
        others = [network for one in site.clusters if one is not cluster for network in one.machine_networks]
        alone = bool(cluster.machine_networks) and not any(
            overlap(network, other) for network in cluster.machine_networks for other in others
        )
        if alone or len(site.clusters) == 1:
            lines += [f"domain={cluster.domain},{network}" for network in cluster.machine_networks] or [
                f"domain={cluster.domain}"
            ]
        else:
            mine = [one for one in site.machines if one.cluster == cluster.name]
            lines += [f"domain={cluster.domain},{one.address},{one.address}" for one in mine]
    return lines


def _boot(site: Site, settings: Settings) -> list[str]:
    ipxe, base = settings["ipxe"], entries.http(site, settings["http_port"])
    lines = [f"dhcp-match=set:{boot.tag},option:client-arch,{code}" for boot in BOOTS for code in boot.codes]
    lines.append("dhcp-match=set:ipxe,175")
    for boot in BOOTS:
        tags = f"tag:machine,tag:{boot.machine},tag:{boot.tag}"
        if boot.by_http:
            lines += [f"dhcp-boot={tags},{base}/{boot.file}", f"dhcp-option-force={tags},60,HTTPClient"]
            continue
        first = boot.ipxe_file if ipxe == ALWAYS else boot.file
        if ipxe != NEVER:
            lines.append(f"dhcp-boot={tags},tag:ipxe,{base}/{entries.IPXE}/boot.ipxe")
            tags += ",tag:!ipxe"
        lines.append(f"dhcp-boot={tags},{first},,{site.address}")
    return lines
