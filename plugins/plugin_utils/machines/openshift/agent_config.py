# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""agent-config.yaml, from settings and machines, with static networks as states of nmstate. Pure.

Sources: pkg/types/agent/agent_config_type.go of openshift/installer; https://nmstate.io/devel/yaml_api.html.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import patches
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import BOOTSTRAP, MASTER, Machine, Network
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.agent_rules import API_VERSION, KIND
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import Document

Settings = c.Mapping[str, t.Any]
#: It stands for the MAC address beside it, and the interface keeps its own.
_INTERFACE = "boot0"
#: Routing table main (rt_tables in iproute2).
_MAIN = 254


def rendered(settings: Settings, machines: c.Sequence[Machine], overrides: Document) -> dict[str, t.Any]:
    """overrides: merged key by key, where null removes a key (RFC 7386)."""
    hosts = [machine for machine in machines if machine.role != BOOTSTRAP]
    first = next((str(machine.address) for machine in hosts if machine.role == MASTER), "")
    found: dict[str, t.Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": settings["domain"].partition(".")[0]},
        "rendezvousIP": settings["rendezvous_address"] or first,
        "hosts": [_host(settings, machine) for machine in hosts],
    }
    if settings["time_servers"]:
        found["additionalNTPSources"] = list(settings["time_servers"])
    if settings["boot_artifacts_url"]:
        found["bootArtifactsBaseURL"] = settings["boot_artifacts_url"]
    return t.cast("dict[str, t.Any]", patches.merge(found, overrides))


def _host(settings: Settings, machine: Machine) -> dict[str, t.Any]:
    name = str(machine.more.get("interface") or _INTERFACE)
    device = machine.more.get("install_device")
    hints = machine.more.get("hints") or ({"deviceName": str(device)} if device else {})
    state = machine.more.get("network") or _state(settings, machine, name)
    found: dict[str, t.Any] = {
        "hostname": machine.name,
        "role": machine.role,
        "interfaces": [{"name": name, "macAddress": machine.mac}] if machine.mac else [],
    }
    if hints:
        found["rootDeviceHints"] = hints
    if state:
        found["networkConfig"] = state
    return found


def _state(settings: Settings, machine: Machine, interface: str) -> dict[str, t.Any]:
    """Of a machine with a static network, empty if DHCP gives it its address."""
    for given in settings["static_networks"]:
        network = ipaddress.ip_network(given["network"])
        if machine.address in network:
            return _static(given, network, machine, interface)
    return {}


def _static(given: c.Mapping[str, t.Any], network: Network, machine: Machine, interface: str) -> dict[str, t.Any]:
    mine, other = (("ipv4", "ipv6"), ("ipv6", "ipv4"))[network.version == 6]
    address = {"ip": str(machine.address), "prefix-length": network.prefixlen}
    addressed = {"enabled": True, "dhcp": False, "address": [address]}
    if network.version == 6:
        addressed["autoconf"] = False
    link: dict[str, t.Any] = {
        "name": interface,
        "type": "ethernet",
        "state": "up",
        "mac-address": machine.mac,
        mine: addressed,
        other: {"enabled": False},
    }
    if given.get("mtu"):
        link["mtu"] = int(given["mtu"])
    found: dict[str, t.Any] = {"interfaces": [link]}
    if given.get("dns"):
        found["dns-resolver"] = {"config": {"server": list(given["dns"])}}
    if given.get("router"):
        route = {
            "destination": "::/0" if network.version == 6 else "0.0.0.0/0",
            "next-hop-address": str(given["router"]),
            "next-hop-interface": interface,
            "table-id": _MAIN,
        }
        found["routes"] = {"config": [route]}
    return found
