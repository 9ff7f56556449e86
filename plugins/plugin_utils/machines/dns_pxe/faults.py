# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a site as a whole, before anything is changed. Pure."""

from __future__ import annotations

import collections.abc as c
import itertools

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import answers, dnsmasq, entries, latch
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.model import (
    Cluster,
    Settings,
    Site,
    Subnet,
    overlap,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe.reading import listed
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Address, Machine

#: Names that a cluster uses itself.
_RESERVED = ("api", "api-int", "apps")


def found(site: Site, settings: Settings) -> list[Fault]:
    faults = [*_clusters(site), *_subnets(site), *_machines(site, settings)]
    if settings["dhcp"] and not site.subnets:
        next_step = "add the network of the machines, or set dns_pxe_dhcp to false"
        faults.append(Fault("no network for DHCP is declared", "dns_pxe_networks", "", next_step))
    if not site.clients:
        next_step = "set it, dns_pxe_networks or the machine networks of clusters"
        faults.append(
            Fault("no client would be answered", "dns_pxe_clients", "no network of clients is declared", next_step)
        )
    if settings["pxe"]:
        faults += [*_boots(site), *_by_tftp(site, settings)]
    faults += latch.faults(site.machines, listed(settings["install_again"]))
    return [*faults, *_refused(site)]


def _clusters(site: Site) -> c.Iterator[Fault]:
    for key, values in (
        ("name", [one.name for one in site.clusters]),
        ("domain", [one.domain for one in site.clusters]),
    ):
        for value in sorted({one for one in values if values.count(one) > 1}):
            yield Fault(
                f"{values.count(value)} clusters have the {key} {value}",
                "dns_pxe_clusters",
                "",
                f"give each a unique {key}",
            )
    for cluster in site.clusters:
        yield from _overlaps(cluster)


def _overlaps(cluster: Cluster) -> c.Iterator[Fault]:
    kinds = {
        "machine": cluster.machine_networks,
        "cluster": cluster.cluster_networks,
        "service": cluster.service_networks,
    }
    named = [(kind, network) for kind, networks in kinds.items() for network in networks]
    for (kind, network), (other_kind, other) in itertools.combinations(named, 2):
        if overlap(network, other):
            what = f"cluster {cluster.name}: {kind} network {network} and {other_kind} network {other} overlap"
            why = "packets to one of them would not leave the node, which has the other"
            yield Fault(
                what,
                "dns_pxe_clusters",
                why,
                "use separate networks; those of pods and services can be any unused networks",
            )


def _subnets(site: Site) -> c.Iterator[Fault]:
    for one, other in itertools.combinations(site.subnets, 2):
        if overlap(one.network, other.network):
            yield Fault(
                f"networks {one.network} and {other.network} overlap", "dns_pxe_networks", "", "remove one of them"
            )
    for subnet in site.subnets:
        where = f"dns_pxe_networks: {subnet.network}"
        for name, address in (("router", subnet.router), *(("end of the pool", one) for one in subnet.pool)):
            if address is not None and address not in subnet.network:
                yield Fault(
                    f"{name} {address} is outside {subnet.network}",
                    where,
                    "machines could not reach it",
                    f"use an address of {subnet.network}",
                )
        if len(subnet.pool) == 2 and int(subnet.pool[0]) > int(subnet.pool[1]):
            yield Fault(
                f"the pool ends before it begins: {subnet.pool[0]} to {subnet.pool[1]}",
                where,
                "",
                "write the first address first",
            )


def _machines(site: Site, settings: Settings) -> c.Iterator[Fault]:
    taken = _taken(site)
    names = [cluster.name for cluster in site.clusters]
    for machine in site.machines:
        where = f"dns_pxe_machines: {machine.name}"
        cluster = site.cluster(machine.cluster)
        if site.clusters and cluster is None:
            reported = f"its cluster is {machine.cluster}" if machine.cluster else "it has no cluster"
            next_step = f"set its hwaccel_cluster to one of {some(names)}"
            yield Fault(f"machine {machine.name} belongs to no known cluster", where, reported, next_step)
        if machine.name in _RESERVED:
            yield Fault(
                f"machine {machine.name} has a name that its cluster uses",
                where,
                "",
                f"use a name other than {', '.join(_RESERVED)}",
            )
        if machine.address in taken:
            what = f"address {machine.address} of machine {machine.name} is also that of {taken[machine.address]}"
            yield Fault(what, where, "", "give the machine a unique address")
        yield from _place(site, machine, cluster, where, bool(settings["dhcp"]))


def _place(site: Site, machine: Machine, cluster: Cluster | None, where: str, dhcp: bool) -> c.Iterator[Fault]:
    """Problems of the machine's address in its cluster and its subnet."""
    address = machine.address
    subnet = next((one for one in site.subnets if address in one.network), None)
    if cluster and cluster.machine_networks and not any(address in network for network in cluster.machine_networks):
        networks = ", ".join(map(str, cluster.machine_networks))
        what = f"address {address} of machine {machine.name} is outside the machine network {networks}"
        yield Fault(what, where, "", f"correct the address, or hwaccel_machine_network of {cluster.name}")
    elif dhcp and subnet is None:
        known = some([str(one.network) for one in site.subnets])
        what = f"address {address} of machine {machine.name} is in no network of dns_pxe_networks ({known})"
        yield Fault(what, where, "", "correct the address, or add its network to dns_pxe_networks")
    if subnet is None:
        return
    if (
        address.version == 4
        and subnet.network.prefixlen < 31
        and address in (subnet.network.network_address, subnet.network.broadcast_address)
    ):
        yield Fault(
            f"address {address} of machine {machine.name} is the network or broadcast address of {subnet.network}",
            where,
            "",
            "use another",
        )
    if _in_pool(address, subnet):
        what = f"address {address} of machine {machine.name} is in the pool {subnet.pool[0]} to {subnet.pool[1]}"
        yield Fault(
            what,
            where,
            "an unknown machine could get it first",
            "use an address outside the pool, or reduce the pool",
        )


def _in_pool(address: Address, subnet: Subnet) -> bool:
    return len(subnet.pool) == 2 and int(subnet.pool[0]) <= int(address) <= int(subnet.pool[1])


def _taken(site: Site) -> dict[Address, str]:
    """Addresses that machines cannot have. Those of load balancers are allowed, because a single-node cluster may have its load balancer on the node."""
    return {
        **{one.router: f"the router of {one.network}" for one in site.subnets if one.router},
        site.address: "this boot server",
    }


def _refused(site: Site) -> c.Iterator[Fault]:
    """Machines that would be wiped, and then not let in by their cluster: who has the name of a node that exists may be somebody else."""
    for machine in site.machines:
        cluster = site.cluster(machine.cluster)
        if cluster is None or cluster.rejoins is None or (machine.cluster, machine.name) not in site.decision.replaced:
            continue
        node = site.fqdn(machine)
        if not {machine.name, node} & {one.lower() for one in cluster.rejoins}:
            why = f"Node {node} exists, so that the certificate request of the machine would not be approved, and it would not join"
            next_step = (
                f"add {node} to cluster_openshift_allow_rejoin of {cluster.name} until it has joined, or delete the Node "
                f"(oc delete node {node})"
            )
            yield Fault(f"{machine.name} cannot be installed again", "dns_pxe_install_again", why, next_step)


def _boots(site: Site) -> c.Iterator[Fault]:
    artifacts = {one.path for one in site.artifacts}
    ignitions = {one.path for one in site.ignitions}
    for kind, paths in (
        ("artifacts", [one.path for one in site.artifacts]),
        ("ignitions", [one.path for one in site.ignitions]),
    ):
        for path in sorted({one for one in paths if paths.count(one) > 1}):
            yield Fault(f"{path} is declared {paths.count(path)} times", f"dns_pxe_{kind}", "", "keep one of them")
    for number, profile in enumerate(site.profiles):
        for key, path in (("kernel", profile.kernel), ("initramfs", profile.initramfs), ("rootfs", profile.rootfs)):
            if path and path not in artifacts:
                what = f"{key} {path} of the profile of {profile.role} is missing"
                why = f"dns_pxe_artifacts has {some(artifacts)}" if artifacts else "dns_pxe_artifacts is empty"
                yield Fault(what, f"dns_pxe_profiles[{number}]", why, "add it there, with source and checksum")
        if profile.ignition and profile.ignition not in ignitions:
            what = f"ignition file {profile.ignition} of the profile of {profile.role} is missing"
            yield Fault(what, f"dns_pxe_profiles[{number}]", "", "add it to dns_pxe_ignitions, with its source")
    for machine in site.machines:
        yield from _boot(site, machine)


def _by_tftp(site: Site, settings: Settings) -> c.Iterator[Fault]:
    """Machines that could get what holds keys by TFTP only."""
    if settings["ipxe"] != dnsmasq.NEVER:
        return
    for machine in filter(site.boots_keys, site.machines):
        kinds = dnsmasq.boot_kinds(machine)
        if (
            not any(one.by_http and one.file in settings["loaders"] for one in kinds)
            or machine.firmware != machines.UEFI
        ):
            what = f"machine {machine.name} cannot boot files that hold keys"
            why = "these are served by HTTP only, as TFTP would give them to everybody, and its boot loader has no HTTP"
            next_step = "set dns_pxe_ipxe to clients or always; or hwaccel_firmware to uefi, and a loader for HTTP boot in dns_pxe_loaders"
            yield Fault(what, f"dns_pxe_machines: {machine.name}", why, next_step)


def _boot(site: Site, machine: Machine) -> c.Iterator[Fault]:
    where = f"dns_pxe_machines: {machine.name}"
    if machine.architecture == machines.AARCH64 and machine.firmware == machines.BIOS:
        yield Fault(
            f"machine {machine.name} cannot boot", where, "there is no BIOS on aarch64", "set hwaccel_firmware to uefi"
        )
    if not site.to_be_installed(machine):
        return
    profile = site.profile(machine)
    if profile is None:
        what = f"machine {machine.name} has to be installed, but has no profile"
        why = (
            f"no profile matches role {machine.role}, cluster {machine.cluster} and architecture {machine.architecture}"
        )
        yield Fault(what, where, why, "add one to dns_pxe_profiles")
        return
    if profile.answer and not answers.DEVICE.fullmatch(profile.device(machine)):
        what = f"machine {machine.name} has to be installed by an answer file, but has no disk for this"
        next_step = "set install_device of its profile, or hwaccel_install_device, to the path of a disk in /dev"
        yield Fault(what, where, f"it is {profile.device(machine) or 'not set'}", next_step)
    try:
        if "'" in entries.arguments(site, machine, profile, ""):
            what, why = (
                f"kernel arguments of machine {machine.name} contain a single quote",
                "GRUB would execute the text after it as commands",
            )
            yield Fault(what, "dns_pxe_profiles", why, "remove it from arguments and install_device")
    except (KeyError, ValueError, IndexError) as error:
        what = f"kernel arguments of machine {machine.name} cannot be completed"
        next_step = f"use one of {', '.join(sorted(entries.PLACEHOLDERS))} in braces, and double literal braces"
        yield Fault(what, "dns_pxe_profiles", str(error), next_step)
