# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the networks of install-config.yaml (section 2.1 of behaviours.yml, and 0 for OVN's own networks)."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import invalid, required

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: OVN-Kubernetes' own networks: what they are called in an error.
OVN = {
    "default internal subnet": "100.64.0.0/16",
    "default transit subnet": "100.88.0.0/16",
    "default masquerade subnet": "169.254.0.0/17",
}
_JOIN = "default internal subnet"
_REFUSED_TYPES = ("OpenShiftSDN", "Kuryr")
#: Of IPv4: longest prefix of a service network that is large enough for the installer to object to; /16 is what it recommends.
_LARGEST_SERVICE = 12
_IPV6_HOST_PREFIX = 64


def _network(text: str, path: str, errors: list[str]) -> Network | None:
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        errors.append(invalid(path, text, f"invalid CIDR address: {text}"))
        return None
    if "/" not in text:
        errors.append(invalid(path, text, f"invalid CIDR address: {text}"))
        return None
    network: Network = interface.network
    if interface.ip != network.network_address:
        errors.append(invalid(path, text, f"invalid network address. got {text}, expecting {network}"))
    return network


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


class Networks:
    """The networks of a configuration with its defaults, and what is wrong with them."""

    def __init__(self, networking: c.Mapping[str, t.Any]) -> None:
        self.errors: list[str] = []
        self._given = networking
        at = "networking"
        clusters = networking["clusterNetwork"]
        self.clusters = [
            _network(one.get("cidr", ""), f"{at}.clusterNetwork[{number}].cidr", self.errors)
            for number, one in enumerate(clusters)
        ]
        self.services = [
            _network(one, f"{at}.serviceNetwork[{number}]", self.errors)
            for number, one in enumerate(networking["serviceNetwork"])
        ]
        self.machines = [
            _network(one.get("cidr", ""), f"{at}.machineNetwork[{number}]", self.errors)
            for number, one in enumerate(networking["machineNetwork"])
        ]

    def check(self) -> list[str]:
        kind = self._given["networkType"]
        if kind in _REFUSED_TYPES:
            text = f"networkType {kind} is not supported, please use OVNKubernetes"
            self.errors.append(invalid("networking.networkType", kind, text))
        if mtu := self._given.get("clusterNetworkMTU"):
            text = "cluster network MTU is allowed only in AWS deployments"
            self.errors.append(invalid("networking.clusterNetworkMTU", mtu, text))
        self._check_services()
        self._check_clusters()
        self._check_machines()
        self._check_stacks()
        if kind == "OVNKubernetes":
            self._check_ovn()
        return self.errors

    def _check_services(self) -> None:
        found = [one for one in self.services if one]
        versions = [one.version for one in found]
        if not self.services:
            self.errors.append(required("networking.serviceNetwork", "a service network is required"))
        if len(versions) != len(set(versions)):
            text = ", ".join(map(str, found))
            self.errors.append(invalid("networking.serviceNetwork", text, "only one service network can be specified"))
        for number, one in enumerate(self.services):
            path = f"networking.serviceNetwork[{number}]"
            if not one:
                continue
            if one.version == 4 and one.prefixlen < _LARGEST_SERVICE:
                text = "subnet size for IPv4 service network must be /12 or greater (/16 is recommended)"
                self.errors.append(invalid(path, str(one), text))
            if any(machine and _overlap(one, machine) for machine in self.machines):
                text = "service network must not overlap with any of the machine networks"
                self.errors.append(invalid(path, str(one), text))

    def _check_clusters(self) -> None:
        if not self.clusters:
            self.errors.append(required("networking.clusterNetwork", "cluster network required"))
        for number, one in enumerate(self.clusters):
            if one:
                self._check_cluster(f"networking.clusterNetwork[{number}]", number, one)

    def _check_cluster(self, path: str, number: int, one: Network) -> None:
        if any(machine and _overlap(one, machine) for machine in self.machines):
            text = "cluster network must not overlap with any of the machine networks"
            self.errors.append(invalid(f"{path}.cidr", str(one), text))
        for place, service in enumerate(self.services):
            if service and _overlap(one, service):
                text = f"cluster network must not overlap with service network {place}"
                self.errors.append(invalid(f"{path}.cidr", str(one), text))
        for place, other in enumerate(self.clusters[:number]):
            if other and _overlap(one, other):
                text = f"cluster network must not overlap with cluster network {place}"
                self.errors.append(invalid(f"{path}.cidr", str(one), text))
        prefix = self._given["clusterNetwork"][number].get("hostPrefix", 0)
        if prefix < one.prefixlen:
            text = f"cluster network host subnetwork prefix must not be larger size than CIDR {one}"
            self.errors.append(invalid(f"{path}.hostPrefix", prefix, text))
        elif one.version == 6 and prefix != _IPV6_HOST_PREFIX:
            text = "cluster network host subnetwork prefix must be 64 for IPv6 networks"
            self.errors.append(invalid(f"{path}.hostPrefix", prefix, text))

    def _check_machines(self) -> None:
        for number, one in enumerate(self.machines):
            for place, other in enumerate(self.machines[:number]):
                if one and other and _overlap(one, other):
                    text = f"machine network must not overlap with machine network {place}"
                    self.errors.append(invalid(f"networking.machineNetwork[{number}]", str(one), text))

    def _check_stacks(self) -> None:
        kinds = {"clusterNetwork": self.clusters, "machineNetwork": self.machines, "serviceNetwork": self.services}
        present = {one.version for networks in kinds.values() for one in networks if one}
        if present != {4, 6}:
            return
        for name, networks in kinds.items():
            for version in sorted(present - {one.version for one in networks if one}):
                text = f"dual-stack IPv4/IPv6 requires an IPv{version} network in this list"
                self.errors.append(invalid(f"networking.{name}", ", ".join(map(str, networks)), text))

    def _check_ovn(self) -> None:
        reserved = {name: ipaddress.ip_network(text) for name, text in OVN.items()}
        path = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet"
        given = self._given.get("ovnKubernetesConfig", {}).get("ipv4", {}).get("internalJoinSubnet")
        join = _network(given, path, self.errors) if given else None
        if given:
            del reserved[_JOIN]
        if join and 2 ** (join.max_prefixlen - join.prefixlen) < self._most_nodes():
            text = "ipv4InternalJoinSubnet is not large enough for the maximum number of nodes which can be supported by ClusterNetwork"
            self.errors.append(invalid(path, str(join), text))
        kinds = {"machineNetwork": self.machines, "serviceNetwork": self.services, "clusterNetwork": self.clusters}
        for kind, networks in kinds.items():
            for number, one in enumerate(networks):
                place = f"networking.{kind}[{number}]" + ".cidr" * (kind == "clusterNetwork")
                for name, network in reserved.items():
                    if one and _overlap(one, network):
                        text = f"must not overlap with OVNKubernetes {name} {network}"
                        self.errors.append(invalid(place, str(one), text))
                if one and join and _overlap(one, join):
                    self.errors.append(invalid(path, str(join), f"must not overlap with {kind} {one}"))

    def _most_nodes(self) -> int:
        found = zip(self.clusters, self._given["clusterNetwork"], strict=True)
        prefixes = [(one, given.get("hostPrefix", 0)) for one, given in found if one and one.version == 4]
        return sum(2 ** max(min(prefix, one.max_prefixlen) - one.prefixlen, 0) for one, prefix in prefixes)
