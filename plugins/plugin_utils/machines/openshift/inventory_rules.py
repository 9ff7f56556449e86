# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that compare install-config with the machines of the inventory: the installer knows none of them. Pure."""

from __future__ import annotations

import collections.abc as c
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import BOOTSTRAP, MASTER, WORKER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import networks
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.conversion import OVN
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    AGENT,
    AGENT_CONFIG,
    UPI,
    Finding,
    Site,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.pools import ARCHITECTURES, NONE

#: Names of disks that change with the order in which the kernel finds them (Documentation/admin-guide/devices.txt of Linux).
_UNSTABLE = re.compile(r"/dev/(sd[a-z]+|vd[a-z]+|nvme[0-9]+n[0-9]+|hd[a-z]+|mmcblk[0-9]+)")
#: Seconds. Certificates are valid from the second in which they are made.
_CLOCKS = 60
#: Masters that a cluster usually has, and those that only the agent-based installer is documented for.
_USUAL, _MORE = (1, 3), (4, 5)
#: Bytes of a packet: the least of IPv4 and IPv6 (RFC 791, RFC 8200), and the most.
_LEAST_MTU, _LEAST_MTU_6, _MOST_MTU = 576, 1280, 65535
_ROLES = (BOOTSTRAP, MASTER, WORKER)


def machine_addresses(site: Site) -> c.Iterator[Finding]:
    inside, others = networks.machine_networks(site), networks.cluster_networks(site)
    for machine in site.machines:
        key, address = f"hwaccel_address of {machine.name}", machine.address
        if inside and not any(address in one for one in inside):
            why = f"the machine networks are {', '.join(map(str, inside))}"
            next_step = "set the address, or hwaccel_machine_network to all networks of machines"
            yield Finding(key, f"{address} is in no machine network", why, next_step, "")
        if found := [one for one in others if address in one]:
            why = "pods and Services have its addresses"
            yield Finding(key, f"{address} is in the network {found[0]} of the cluster", why, "change one of them", "")
        for variable, other in site.balancers.items():
            # A cluster of one machine may have no load balancer.
            if address == other and len(site.machines) > 1 and machine.role != BOOTSTRAP:
                why, next_step = "both would answer", "give the load balancer another address"
                yield Finding(key, f"{address} is that of the load balancer ({variable})", why, next_step, "")


def balancer(site: Site) -> c.Iterator[Finding]:
    internal = [
        (f"{name} network", one)
        for (name, _family), one in networks.internal_networks(site).items()
        if site.at("networking.networkType") == OVN
    ]
    named = [("cluster or service network", one) for one in networks.cluster_networks(site)]
    for variable, address in site.balancers.items():
        for what, found in [*named, *internal]:
            if address in found:
                why = "nodes would not reach it"
                yield Finding(variable, f"{address} is in the {what} {found}", why, "give it another address", "")


def masters(site: Site) -> c.Iterator[Finding]:
    there, replicas = len(site.masters), site.at("controlPlane.replicas")
    key = "controlPlane.replicas"
    if there != replicas:
        why = f"the inventory has {there} in control_plane"
        yield Finding(
            key, f"{replicas} masters", why, "remove controlPlane.replicas, which the role sets, or add machines"
        )
    if replicas not in _USUAL and not (replicas in _MORE and site.method == AGENT):
        why = "etcd needs an odd number" if replicas % 2 == 0 else "it is not documented for this method"
        yield Finding(key, f"{replicas} masters", why, "use one or three, or skip the check masters")


def replicas(site: Site) -> c.Iterator[Finding]:
    """On platform none the installer makes no workers, and takes masters for schedulable where there are to be none."""
    workers = sum(one["replicas"] for one in site.at("compute"))
    there = sum(machine.role not in (MASTER, BOOTSTRAP) for machine in site.machines)
    if site.method == AGENT and workers != there:
        why = f"the inventory has {there} machines in workers, and the agent waits for as many as are set"
        yield Finding("compute[0].replicas", f"{workers} workers", why, "remove compute, which the role sets")
    if site.method != AGENT and workers and NONE in (site.at("platform") or {}):
        why = "on platform none workers join by themselves, and the installer ignores the number"
        yield Finding("compute[0].replicas", f"{workers} workers", why, "set 0")


def bootstrap(site: Site) -> c.Iterator[Finding]:
    found = [machine.name for machine in site.machines if machine.role == BOOTSTRAP]
    key = "group bootstrap"
    if site.method == UPI and not found:
        why = "a cluster is started by one, which is free afterwards"
        next_step = "add one, or set cluster_openshift_method: agent, which needs none"
        yield Finding(key, "there is no bootstrap machine", why, next_step, "")
    elif site.method == UPI and len(found) > 1:
        yield Finding(key, f"{len(found)} bootstrap machines ({some(found)})", "a cluster has one", "remove one", "")
    elif site.method != UPI and found:
        why = "the method upi has one only, and load balancers would wait for it"
        yield Finding(key, f"{some(found)} is a bootstrap machine", why, "remove it from the inventory", "")


def roles(site: Site) -> c.Iterator[Finding]:
    for machine in site.machines:
        if machine.role not in _ROLES and site.method == AGENT:
            why = "the agent-based installer has masters and workers"
            next_step = "remove hwaccel_role, and label the node later"
            yield Finding(f"hwaccel_role of {machine.name}", f"{machine.role} is not supported", why, next_step, "")


def architectures(site: Site) -> c.Iterator[Finding]:
    """A release is of one architecture, or a multi release of all."""
    of_release = site.release.architecture
    pool = site.at("controlPlane.architecture")
    if of_release not in ("", "multi", pool):
        key = "controlPlane.architecture"
        yield Finding(
            key, f"{pool} is not that of the release", f"it is of {of_release}", "use an installer of a multi release"
        )
    for machine in site.machines:
        own = ARCHITECTURES[machine.architecture]
        key = f"hwaccel_architecture of {machine.name}"
        if of_release not in ("", "multi", own) or (machine.role != WORKER and own != pool):
            why = f"the release is of {of_release}" if of_release not in ("", "multi", own) else f"masters have {pool}"
            yield Finding(key, f"{own} does not fit", why, "use a multi release, or machines of one architecture", "")


def install_disks(site: Site) -> c.Iterator[Finding]:
    for machine, device in _unstable(site):
        if machine in site.several_disks:
            why = "the machine has several disks, and another one may get this name"
            next_step = "give a path below /dev/disk/by-path or /dev/disk/by-id"
            yield Finding(f"hwaccel_install_device of {machine}", f"{device} is no stable name", why, next_step, "")


def install_disks_unknown(site: Site) -> c.Iterator[Finding]:
    for machine, device in _unstable(site):
        if machine not in site.several_disks and machine not in site.on_hypervisor:
            why = "with more than one disk, another one may get this name"
            next_step = "give a path below /dev/disk/by-path, unless the machine has one disk"
            yield Finding(f"hwaccel_install_device of {machine}", f"{device} is no stable name", why, next_step, "")


def _unstable(site: Site) -> c.Iterator[tuple[str, str]]:
    for machine in site.machines:
        device = str(machine.more.get("install_device") or "")
        if _UNSTABLE.fullmatch(device):
            yield machine.name, device


def clocks(site: Site) -> c.Iterator[Finding]:
    if site.clock_offset is not None and abs(site.clock_offset) > _CLOCKS:
        what = f"clocks of this host and of the boot server differ by {abs(site.clock_offset):.0f} s"
        why = "certificates are valid from the second in which they are made, and machines take the time from there"
        yield Finding("clock", what, why, "synchronize both by NTP", "")


def registry_storage(site: Site) -> c.Iterator[Finding]:
    if NONE in (site.at("platform") or {}) and "vsphere" not in site.at("platform"):
        what, why = "the image registry has no storage", "platform none has none, so its operator removes the registry"
        next_step = "give configs.imageregistry.operator.openshift.io/cluster storage after the install, where drivers are built"
        yield Finding("image registry", what, why, next_step, "")


def mtu(site: Site) -> c.Iterator[Finding]:
    key = "cluster_openshift_network_mtu"
    least = _LEAST_MTU_6 if any(one.version == 6 for one in networks.all_of(site)) else _LEAST_MTU
    if site.mtu and not least <= site.mtu <= _MOST_MTU:
        yield Finding(
            key, f"{site.mtu} is not the MTU of a network", "", f"set a number from {least} to {_MOST_MTU}", ""
        )
    elif site.mtu and site.at("networking.networkType") != OVN:
        yield Finding(key, f"{site.mtu} is set", f"it is an option of {OVN}", "give the manifests of the plugin", "")


def rendezvous(site: Site) -> c.Iterator[Finding]:
    """The rendezvous host starts the cluster and becomes a master."""
    given = site.agent.get("rendezvousIP")
    if site.method != AGENT or not given or not site.machines:
        return
    owner = next((machine for machine in site.machines if str(machine.address) == given), None)
    if owner is None or owner.role != MASTER:
        whose = f"it is that of the {owner.role} {owner.name}" if owner else "no machine of the inventory has it"
        yield Finding("rendezvousIP", f"{given} is not the address of a master", whose, "", AGENT_CONFIG)
