# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""agent-config.yaml, and what the agent's commands check beside the other checks of install-config.yaml (section 6 of behaviours.yml)."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.install_config import InstallConfig
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import (
    ANY,
    MAP,
    Refused,
    forbidden,
    invalid,
    read,
    required,
    together,
    typed,
    unsupported,
)
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.values import SUBDOMAIN

FILE = "agent-config.yaml"
_VERSIONS = ("v1beta1", "v1alpha1")
_PLATFORMS = ("baremetal", "vsphere", "none", "external", "nutanix")
_SINGLE_PLATFORMS = ("none", "external")
_REPLICAS = (5, 4, 3, 1)
_WITH_ARBITER = 2
_ROLES = ("master", "worker")
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")
_WWN_EXTENSIONS = ("wwnWithExtension", "wwnVendorExtension")
AGENT_CONFIG: dict[str, t.Any] = {
    "apiVersion": str,
    "kind": str,
    "metadata": MAP,
    "rendezvousIP": str,
    "additionalNTPSources": [str],
    "bootArtifactsBaseURL": str,
    "minimalISO": bool,
    "hosts": [
        {
            "hostname": str,
            "role": str,
            "rootDeviceHints": MAP,
            "interfaces": [{"name": str, "macAddress": str}],
            "networkConfig": MAP,
            "bmc": ANY,
        }
    ],
}
Config = c.Mapping[str, t.Any]


def check_install_config(config: InstallConfig) -> None:
    """Raises Refused with all errors."""
    content, errors = config.content, []
    platforms = list(content["platform"])
    errors += [unsupported("Platform", one, _PLATFORMS) for one in platforms if one not in _PLATFORMS]
    arbiters = content.get("arbiter", {}).get("replicas", 0)
    if config.masters not in _REPLICAS and not (config.masters == _WITH_ARBITER and arbiters):
        text = f"ControlPlane.Replicas can only be set to 5, 4, 3, or 1. Found {config.masters}"
        errors.append(invalid("ControlPlane.Replicas", config.masters, text))
    if config.masters == 1:
        errors += _single(config, platforms)
    if found := content.get("featureSet"):
        errors.append(forbidden("FeatureSet", f"the feature set {found} is not supported, only the default one is"))
    if errors:
        raise Refused(f"invalid install-config configuration: {together(errors)}")


def _single(config: InstallConfig, platforms: c.Iterable[str]) -> list[str]:
    errors = []
    if config.workers:
        text = (
            "Total number of Compute.Replicas must be 0 when ControlPlane.Replicas is 1 for platform none or external"
        )
        errors.append(required("Compute.Replicas", f"{text}. Found {config.workers}"))
    for one in platforms:
        if one not in _SINGLE_PLATFORMS:
            text = "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"
            errors.append(invalid("Platform", one, text))
    kind = config.content["networking"]["networkType"]
    if kind != "OVNKubernetes":
        text = "Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster"
        errors.append(invalid("Networking.NetworkType", kind, text))
    return errors


def load(text: str) -> dict[str, t.Any]:
    """Raises Refused with all errors of the file by itself."""
    found: dict[str, t.Any] = typed(read(text) or {}, AGENT_CONFIG, "AgentConfig", "", [])
    errors = []
    version = found.get("apiVersion", "")
    if version not in _VERSIONS:
        errors.append(unsupported("apiVersion", version, _VERSIONS))
    if (address := found.get("rendezvousIP")) and not _address(address):
        errors.append(invalid("rendezvousIP", address, f'"{address}" is not a valid IP'))
    if (base := found.get("bootArtifactsBaseURL")) and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/]+(/.*)?", base):
        errors.append(invalid("bootArtifactsBaseURL", base, f'invalid URI "{base}" (no scheme)'))
    for number, source in enumerate(found.get("additionalNTPSources", ())):
        if not _address(source) and not re.fullmatch(SUBDOMAIN, source):
            path = f"AdditionalNTPSources[{number}]"
            errors.append(invalid(path, source, "NTP source is not a valid domain name nor a valid IP"))
    if errors:
        raise Refused(f"invalid Agent Config configuration: {together(errors)}")
    return {**found, "apiVersion": _VERSIONS[0]}


def check_hosts(agent: Config, config: InstallConfig) -> list[str]:
    """Warnings. Raises Refused with all errors of the hosts."""
    hosts = agent.get("hosts", [])
    errors: list[str] = []
    known: set[str] = set()
    for number, host in enumerate(hosts):
        errors += _host(f"Hosts[{number}]", host, known, agent.get("rendezvousIP", ""))
    if not agent.get("rendezvousIP") and not any(host.get("networkConfig") for host in hosts):
        errors.append(
            "missing rendezvousIP in agent-config, at least one host networkConfig, or at least one NMStateConfig manifest"
        )
    warnings = []
    for role, what, wanted in (("master", "ControlPlane", config.masters), ("worker", "Compute", config.workers)):
        count = len([host for host in hosts if host.get("role", "master") == role])
        text = f"the number of {role} hosts defined ({count}) {{0}} the configured {what} replicas ({wanted})"
        if count > wanted:
            errors.append(forbidden("Hosts", text.format("exceeds")))
        elif hosts and count < wanted:
            warnings.append(text.format("is less than"))
    if errors:
        raise Refused(f"invalid Hosts configuration: {together(errors)}")
    return warnings


def _host(path: str, host: Config, known: set[str], rendezvous: str) -> list[str]:
    errors = []
    interfaces = host.get("interfaces", [])
    if not interfaces:
        errors.append(required(f"{path}.Interfaces", "at least one interface must be defined for each node"))
    for number, one in enumerate(interfaces):
        errors += _mac(f"{path}.Interfaces[{number}].macAddress", one.get("macAddress", ""), known)
    role = host.get("role", "")
    if role and role not in _ROLES:
        text = "host role has incorrect value. Role must either be 'master' or 'worker'"
        errors.append(forbidden(f"{path}.Host", text))
    hints = host.get("rootDeviceHints", {})
    errors += [
        forbidden(f"{path}.rootDeviceHints.{name}", "WWN extensions are not supported in root device hints")
        for name in _WWN_EXTENSIONS
        if name in hints
    ]
    if role == "worker" and rendezvous and rendezvous in _addresses(host.get("networkConfig")):
        text = (
            f"Host {host.get('hostname', '')} has role 'worker' and has the rendezvousIP assigned to it. "
            "The rendezvousIP must be assigned to a control plane host."
        )
        errors.append(forbidden(f"{path}.Host", text))
    return errors


def _mac(path: str, address: str, known: set[str]) -> list[str]:
    if not address:
        return [required(path, "each interface must have a MAC address defined")]
    if not _MAC.fullmatch(address):
        return [invalid(path, address, f"address {address}: invalid MAC address")]
    if int(address[:2], 16) & 1:
        return [invalid(path, address, "expected unicast mac address, found multicast")]
    plain = address.lower().replace("-", ":")
    if plain in known:
        return [invalid(path, address, "duplicate MAC address found")]
    known.add(plain)
    return []


def _addresses(network_config: t.Any) -> set[str]:
    """Addresses in a configuration of nmstate."""
    if isinstance(network_config, list):
        return set().union(*map(_addresses, network_config))
    if not isinstance(network_config, dict):
        return set()
    own = {str(network_config["ip"])} if "ip" in network_config else set()
    return own.union(*map(_addresses, network_config.values()))


def _address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
