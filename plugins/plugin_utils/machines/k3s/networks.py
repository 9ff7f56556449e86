# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of pods and Services of K3s, of one stack or two, and whether a machine can have them. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import itertools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host

Settings = c.Mapping[str, t.Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_VARIABLES = {"pod_network": "network of pods", "service_network": "network of Services"}
#: Bits of addresses of Services (maxCIDRBits in cmd/kube-apiserver/app/options/validation.go of Kubernetes).
_SERVICE_BITS = 20
#: Prefix length of each node's part, by family (cmd/kube-controller-manager/app/core.go), and the argument of the controller manager for another one.
_OF_NODE = {4: 24, 6: 64}
_MASK = "node-cidr-mask-size"


def read(text: str) -> list[Network]:
    """Raises ValueError."""
    return [ipaddress.ip_network(part.strip()) for part in text.split(",")]


def dual(settings: Settings) -> bool:
    """Whether pods have addresses of two families."""
    return "," in settings["pod_network"]


def faults(settings: Settings) -> list[Fault]:
    found, networks = [], {}
    for variable, what in _VARIABLES.items():
        try:
            networks[variable] = read(settings[variable])
        except ValueError as error:
            found.append(Fault(f"the {what} cannot be read", f"cluster_k3s_{variable}", str(error), "correct it"))
    if found:
        return found
    for variable, each in networks.items():
        found += _families(variable, [one.version for one in each])
    pods, services = networks["pod_network"], networks["service_network"]
    if not found and pods[0].version != services[0].version:
        what, why = "pods and Services begin with another family of addresses", "the first one is that of the cluster"
        found.append(Fault(what, "cluster_k3s_service_network", why, "give both in the same order"))
    elif not found and len(services) > len(pods):
        what = "Services have a family of addresses that pods have not"
        found.append(Fault(what, "cluster_k3s_pod_network", "", "give a network of each family to both"))
    return [*found, *_overlaps(pods, services), *_sizes(settings, pods, services)]


def _families(variable: str, versions: list[int]) -> list[Fault]:
    if len(versions) == len(set(versions)):
        return []
    what = f"the {_VARIABLES[variable]} has two parts of the same family"
    return [Fault(what, f"cluster_k3s_{variable}", "", "give one network of IPv4 and one of IPv6")]


def _overlaps(pods: list[Network], services: list[Network]) -> list[Fault]:
    return [
        Fault(
            f"{one} and {other} overlap",
            "cluster_k3s_service_network",
            "pods and Services have addresses of their own",
            "set another network",
        )
        for one, other in itertools.product(pods, services)
        if one.version == other.version and one.overlaps(other)
    ]


def _sizes(settings: Settings, pods: list[Network], services: list[Network]) -> list[Fault]:
    found = []
    for one in services:
        if one.max_prefixlen - one.prefixlen > _SERVICE_BITS:
            next_step = f"set one with a prefix length of {one.max_prefixlen - _SERVICE_BITS} or more, such as {one.network_address}/{one.max_prefixlen - 16}"
            why = f"an API server has no more than 2^{_SERVICE_BITS} addresses for them"
            found.append(
                Fault(f"the network of Services {one} is too large", "cluster_k3s_service_network", why, next_step)
            )
    masks = str(settings["server_configuration"].get("kube-controller-manager-arg", ""))
    for one in pods:
        if one.prefixlen > _OF_NODE[one.version] and _MASK not in masks:
            why = f"each node gets a /{_OF_NODE[one.version]} of it"
            next_step = (
                f"set a larger one, or {_MASK} in kube-controller-manager-arg of cluster_k3s_server_configuration"
            )
            found.append(Fault(f"the network of pods {one} is too small", "cluster_k3s_pod_network", why, next_step))
    return found


def lacking(host: Host, settings: Settings) -> list[Fault]:
    """What a machine lacks to be a node with two stacks. K3s takes its addresses from its default routes (GetHostnameAndIPs in pkg/util/net.go)."""
    if not dual(settings):
        return []
    found = []
    for version, routes in ((4, "routes"), (6, "routes6")):
        if not any(_is_of(address, version) for address in host.addresses):
            what, next_step = (
                f"the machine has no address of IPv{version}",
                "add one, or set networks of one family",
            )
        elif not host.fact(routes):
            what, next_step = f"the machine has no default route of IPv{version}", "add one, which may lead nowhere"
        else:
            continue
        found.append(Fault(what, "ip address", "its node needs addresses of both families", next_step))
    return found


def _is_of(text: str, version: int) -> bool:
    """Whether it is an address of that family that others reach."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return address.version == version and not (address.is_link_local or address.is_loopback)
