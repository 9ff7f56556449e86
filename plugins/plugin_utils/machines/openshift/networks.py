# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of networks in install-config. Pure.

Sources: validateNetworking and what it calls in pkg/types/validation/installconfig.go, and pkg/validate/validate.go, of openshift/installer.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Network
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.conversion import OVN
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import Finding, Site, shown

_MACHINE, _SERVICE, _CLUSTER = "networking.machineNetwork", "networking.serviceNetwork", "networking.clusterNetwork"
_JOIN = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet"
_CIDR = re.compile(r"[0-9a-fA-F:.]+/[0-9]{1,3}")
#: Networks of OVN-Kubernetes inside each node (pkg/validate/validate.go; masquerade as of 4.18).
INTERNAL = {
    ("join", 4): "100.64.0.0/16",
    ("transit", 4): "100.88.0.0/16",
    ("masquerade", 4): "169.254.0.0/17",
    ("join", 6): "fd98::/64",
    ("transit", 6): "fd97::/64",
    ("masquerade", 6): "fd69::/112",
}
#: The largest network of Services, by its family: prefix length, and the recommended one.
_SERVICE_PREFIX = {4: (12, 16), 6: (108, 112)}
#: Prefix length of a node's part of a network of IPv6.
_NODE_PREFIX_6 = 64
#: Addresses of the join network that nodes do not get: its own, the broadcast address and the gateway's.
_RESERVED = 3
_DOCKER = "172.17.0.0/16"
#: Network plugins that this collection knows.
_KNOWN = (OVN,)
_REMOVED = {
    "OpenShiftSDN": "OpenShift has no such plugin since 4.17",
    "Kuryr": "OpenShift has no such plugin since 4.15",
}


def network(text: t.Any) -> Network | None:
    """A network, also one with host bits, None if it is none."""
    try:
        return ipaddress.ip_network(text, strict=False) if isinstance(text, str) and _CIDR.fullmatch(text) else None
    except ValueError:
        return None


def listed(site: Site, path: str) -> list[tuple[str, t.Any, Network | None]]:
    """Key, value and network of each entry."""
    entries = site.at(path) or []
    if path == _SERVICE:
        return [(f"{path}[{number}]", one, network(one)) for number, one in enumerate(entries)]
    end = ".cidr" if path == _CLUSTER else ""
    return [(f"{path}[{number}]{end}", one.get("cidr"), network(one.get("cidr"))) for number, one in enumerate(entries)]


def all_of(site: Site, *paths: str) -> list[Network]:
    return [
        found for path in paths or (_MACHINE, _SERVICE, _CLUSTER) for _key, _text, found in listed(site, path) if found
    ]


def machine_networks(site: Site) -> list[Network]:
    return all_of(site, _MACHINE)


def cluster_networks(site: Site) -> list[Network]:
    """Of pods and Services."""
    return all_of(site, _CLUSTER, _SERVICE)


def overlaps(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def addresses(site: Site) -> c.Iterator[Finding]:
    """Each is a network without host bits."""
    for path in (_MACHINE, _SERVICE, _CLUSTER):
        for key, text, found in listed(site, path):
            if found is None:
                example = "give one such as 10.0.0.0/24"
                yield Finding(key, f"{shown(key, text)} is not a network" if text else "cidr is missing", "", example)
            elif found.network_address.is_unspecified:
                yield Finding(key, f"{text} has no address", "", "give one such as 10.0.0.0/24")
            elif ipaddress.ip_address(text.partition("/")[0]) != found.network_address:
                yield Finding(key, f"{text} has host bits set", "", f"write {found}")


def apart(site: Site) -> c.Iterator[Finding]:
    """Networks that overlap are reported at the one that the installer names."""
    machine, service, cluster = listed(site, _MACHINE), listed(site, _SERVICE), listed(site, _CLUSTER)
    yield from _overlapping(machine, machine, "machine network", same=True)
    yield from _overlapping(service, machine, "machine network")
    yield from _overlapping(service, service, "service network", same=True)
    yield from _overlapping(cluster, machine, "machine network")
    yield from _overlapping(cluster, service, "service network")
    yield from _overlapping(cluster, cluster, "cluster network", same=True)


def _overlapping(
    mine: list[tuple[str, t.Any, Network | None]],
    others: list[tuple[str, t.Any, Network | None]],
    what: str,
    *,
    same: bool = False,
) -> c.Iterator[Finding]:
    for number, (key, text, found) in enumerate(mine):
        for other in [one for _key, _text, one in (others[:number] if same else others) if one and found]:
            if overlaps(t.cast("Network", found), other):
                yield Finding(key, f"{text} overlaps with the {what} {other}", "an address would be of both")


def service_size(site: Site) -> c.Iterator[Finding]:
    for key, text, found in listed(site, _SERVICE):
        if found and found.prefixlen < _SERVICE_PREFIX[found.version][0]:
            least, usual = _SERVICE_PREFIX[found.version]
            yield Finding(
                key, f"{text} is too large", f"a network of Services is /{least} or smaller, usually /{usual}"
            )


def families(site: Site) -> c.Iterator[Finding]:
    """One stack or two, as the networks of Services say."""
    of = {
        path: [found for _key, _text, found in listed(site, path) if found] for path in (_MACHINE, _SERVICE, _CLUSTER)
    }
    stacks = {found.version for found in of[_SERVICE]}
    if len(stacks) < 2:
        if len(of[_SERVICE]) > 1 and stacks == {4}:
            yield Finding(_SERVICE, f"{len(of[_SERVICE])} service networks", "a cluster has one of each family")
        return
    if len(of[_SERVICE]) != 2:
        yield Finding(_SERVICE, f"{len(of[_SERVICE])} service networks", "with two stacks there is one of each family")
    for path, found in of.items():
        versions = [one.version for one in found]
        lacking = stacks - set(versions)
        text = ", ".join(map(str, found))
        if versions and lacking:
            yield Finding(path, f"{text}: no network of IPv{lacking.pop()}", "the cluster has two stacks", "add one")
        elif versions and versions[0] != 4 and "none" in (site.at("platform") or {}):
            yield Finding(path, f"{text}: IPv6 comes first", "on this platform IPv4 does", "change their order")


def one_family(site: Site) -> c.Iterator[Finding]:
    """With one stack, which the networks of Services decide. The installer accepts others, and the network operator does not."""
    stacks = {found.version for _key, _text, found in listed(site, _SERVICE) if found}
    if len(stacks) != 1:
        return
    (stack,) = stacks
    for key, text, found in listed(site, _CLUSTER):
        if found and found.version != stack:
            why = "the network operator wants pods and Services to have addresses of the same family"
            yield Finding(key, f"{text} is not a network of IPv{stack}", why, "correct it, or the network of Services")
    machines = {found.version for _key, _text, found in listed(site, _MACHINE) if found}
    if machines and stack not in machines:
        why = f"Services have addresses of IPv{stack}, and so have nodes"
        yield Finding(
            _MACHINE, f"there is no machine network of IPv{stack}", why, "add one, or correct those of Services"
        )


def host_prefix(site: Site) -> c.Iterator[Finding]:
    """Size of a node's part of the cluster network."""
    first: int | None = None
    for number, one in enumerate(site.at(_CLUSTER) or []):
        key, prefix, found = f"{_CLUSTER}[{number}].hostPrefix", one.get("hostPrefix") or 0, network(one.get("cidr"))
        if found is None or (prefix == 0 and site.at("networking.networkType") != OVN):
            continue
        if prefix < found.prefixlen:
            what = f"a node's network of /{prefix} is larger than {found}" if prefix else "hostPrefix is not set"
            yield Finding(key, what, "", f"set a number above {found.prefixlen}, such as 23 (64 for IPv6)")
        elif found.version == 6 and prefix != _NODE_PREFIX_6:
            yield Finding(key, f"/{prefix} is not the size of a node's network of IPv6", "", f"set {_NODE_PREFIX_6}")
        elif found.version == 4 and first is not None and prefix != first:
            yield Finding(key, f"/{prefix} differs from /{first}", "nodes have parts of one size", f"set {first}")
        first = prefix if found.version == 4 and first is None else first


def node_prefix(site: Site) -> c.Iterator[Finding]:
    """Of a /33 the installer does not complain, and no node gets a network."""
    for number, one in enumerate(site.at(_CLUSTER) or []):
        found, prefix = network(one.get("cidr")), one.get("hostPrefix") or 0
        if found and found.version == 4 and prefix > 30:
            why = "pods have no addresses in it"
            key = f"{_CLUSTER}[{number}].hostPrefix"
            yield Finding(key, f"/{prefix} is too small for a node's network", why, "set a number up to 30, such as 23")


def node_networks(site: Site) -> c.Iterator[Finding]:
    nodes = sum(machine.role != "bootstrap" for machine in site.machines)
    for version in (4, 6):
        parts = [
            2 ** (prefix - found.prefixlen)
            for one in site.at(_CLUSTER) or []
            if (found := network(one.get("cidr"))) and found.version == version
            if found.prefixlen <= (prefix := one.get("hostPrefix") or 0) <= found.max_prefixlen
        ]
        if parts and sum(parts) < nodes:
            what = f"the cluster network has parts for {sum(parts)} nodes, and the inventory has {nodes}"
            yield Finding(_CLUSTER, what, "each node gets one", "set a larger network, or a larger hostPrefix")


def plugin(site: Site) -> c.Iterator[Finding]:
    key, name = "networking.networkType", site.at("networking.networkType")
    if name in _REMOVED:
        yield Finding(key, f"{name} is not supported", _REMOVED[name], f"use {OVN}")


def known_plugin(site: Site) -> c.Iterator[Finding]:
    """The installer takes any name. Of another plugin its manifests must be given."""
    key, name = "networking.networkType", site.at("networking.networkType")
    if name not in (*_KNOWN, *_REMOVED):
        why = "this collection knows nothing of it, and the installer takes any name"
        next_step = f"use {OVN}, or skip the check network_type and give its manifests (cluster_openshift_manifests)"
        yield Finding(key, f"{shown(key, name)} is an unknown network plugin", why, next_step)


def mtu(site: Site) -> c.Iterator[Finding]:
    key, given = "networking.clusterNetworkMTU", site.at("networking.clusterNetworkMTU")
    if given and "aws" not in (site.at("platform") or {}):
        next_step = "set cluster_openshift_network_mtu, which becomes a manifest of the network operator"
        yield Finding(key, f"{given} is set", "it is allowed on AWS only", next_step)


def _given(site: Site) -> dict[tuple[str, int], Network]:
    """Networks of OVN-Kubernetes that a user has set, by name and family."""
    found: dict[tuple[str, int], Network] = {(name, one.version): one for name, one in site.internal.items()}
    joining = network(site.at(_JOIN))
    return {**found, **({("join", joining.version): joining} if joining else {})}


def internal_networks(site: Site) -> dict[tuple[str, int], Network]:
    """All of OVN-Kubernetes, by name and family."""
    return {**{key: ipaddress.ip_network(text) for key, text in INTERNAL.items()}, **_given(site)}


def ovn_defaults(site: Site) -> c.Iterator[Finding]:
    if str(site.at("networking.networkType")).casefold() != OVN.casefold():
        return
    given = _given(site)
    for path in (_MACHINE, _SERVICE, _CLUSTER):
        for key, text, found in listed(site, path):
            for (name, version), inside in INTERNAL.items():
                if found and (name, version) not in given and overlaps(found, ipaddress.ip_network(inside)):
                    why = "OVN-Kubernetes uses it inside each node"
                    next_step = f"set another network, or {name} of cluster_openshift_internal_networks"
                    yield Finding(key, f"{text} overlaps with the {name} network {inside}", why, next_step)


def join(site: Site) -> c.Iterator[Finding]:
    """The join network that a user has set."""
    text = site.at(_JOIN)
    if not text:
        return
    found, name = network(text), site.at("networking.networkType")
    if str(name).casefold() != OVN.casefold():
        yield Finding(
            "networking.networkType",
            f"{shown(_JOIN, name)} has no ovnKubernetesConfig",
            "that is of OVNKubernetes",
            "remove it",
        )
    if found is None or found.version != 4:
        yield Finding(_JOIN, f"{shown(_JOIN, text)} is not a network of IPv4")
    elif ipaddress.ip_address(text.partition("/")[0]) != found.network_address:
        yield Finding(_JOIN, f"{text} has host bits set", "", f"write {found}")
    else:
        for other in all_of(site):
            if overlaps(found, other):
                yield Finding(_JOIN, f"{text} overlaps with {other}", "OVN-Kubernetes uses it inside each node")
        yield from _join_size(site, found)


def _join_size(site: Site, found: Network) -> c.Iterator[Finding]:
    nodes = sum(
        2 ** (prefix - one.prefixlen)
        for entry in site.at(_CLUSTER) or []
        if (one := network(entry.get("cidr"))) and one.version == 4
        if one.prefixlen <= (prefix := entry.get("hostPrefix") or 0) <= one.max_prefixlen
    )
    if nodes >= found.num_addresses - _RESERVED:
        why = f"the cluster network has parts for {nodes} nodes, and each node needs an address of it"
        yield Finding(_JOIN, f"{found} is too small", why, "set a larger network")


def internal(site: Site) -> c.Iterator[Finding]:
    """Transit and masquerade networks that a user has set are in a manifest of the network operator, which the installer does not read."""
    used = {str(found): found for found in all_of(site)}
    for name, found in site.internal.items():
        key = f"cluster_openshift_internal_networks.{name}"
        for text, other in used.items():
            if name != "join" and overlaps(found, other):
                why = "OVN-Kubernetes uses it inside each node"
                yield Finding(key, f"{found} overlaps with {text}", why, "set another network", "")
        used[f"the {name} network {found}"] = found


def docker_bridge(site: Site) -> c.Iterator[Finding]:
    for path in (_MACHINE, _SERVICE, _CLUSTER):
        for key, text, found in listed(site, path):
            if found and overlaps(found, ipaddress.ip_network(_DOCKER)):
                why = "a program in a container of docker does not reach it, such as a load balancer"
                yield Finding(key, f"{text} overlaps with docker's bridge {_DOCKER}", why)
