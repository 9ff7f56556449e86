# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of agent-config. Pure.

Sources: agent_config.go and agenthosts.go in pkg/asset/agent/agentconfig, pkg/validate/validate.go and pkg/types/baremetal/validation of openshift/installer.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import json
import re
import typing as t
import urllib.parse

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import MASTER, WORKER
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import (
    AGENT,
    AGENT_CONFIG,
    Finding,
    Site,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import one_of as one_of_config
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.naming import is_domain

API_VERSION, KIND = "v1beta1", "AgentConfig"
_VERSIONS = (API_VERSION, "v1alpha1")
_MAC = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}")
_BY_PATH = "/dev/disk/by-path/"


def finding(key: str, what: str, why: str = "", next_step: str = "") -> Finding:
    return Finding(key, what, why, next_step, AGENT_CONFIG)


def hosts(site: Site) -> list[tuple[str, c.Mapping[str, t.Any]]]:
    return [(f"hosts[{number}]", host) for number, host in enumerate(site.agent.get("hosts") or [])]


def document(site: Site) -> c.Iterator[Finding]:
    if site.method != AGENT:
        return
    yield from one_of_config("apiVersion", site.agent.get("apiVersion") or "", _VERSIONS, AGENT_CONFIG)
    if site.agent.get("kind") not in (None, KIND):
        yield finding("kind", f"{values.shown(site.agent['kind'])} is not {KIND}", "", f"set {KIND}")


def rendezvous(site: Site) -> c.Iterator[Finding]:
    given = site.agent.get("rendezvousIP")
    if site.method != AGENT:
        return
    if not given:
        yield finding("rendezvousIP", "no address is given", "hosts meet at it", "set the address of a master")
    elif not _is_address(given):
        yield finding("rendezvousIP", f"{values.shown(given)} is not an IP address", "", "give one without a prefix")
        return
    for key, host in hosts(site):
        text = json.dumps(host.get("networkConfig") or {})
        if given and host.get("role") == WORKER and re.search(rf'"{re.escape(given)}"', text):
            why = "the rendezvous host becomes a master"
            yield finding(f"{key}.role", f"the worker {host.get('hostname')} has the rendezvousIP {given}", why)


def interfaces(site: Site) -> c.Iterator[Finding]:
    owners: dict[str, str] = {}
    for key, host in hosts(site):
        if not host.get("interfaces"):
            why = "a host is recognized by the MAC address of one"
            yield finding(f"{key}.interfaces", f"{host.get('hostname')} has no interface", why, "set hwaccel_mac of it")
        for number, one in enumerate(host.get("interfaces") or []):
            where, mac = f"{key}.interfaces[{number}].macAddress", str(one.get("macAddress") or "").lower()
            if not mac:
                yield finding(where, "no MAC address is given", "", "set hwaccel_mac of the machine")
            elif not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1:
                why = "it must be six bytes, and not of a group"
                yield finding(where, f"{values.shown(mac)} is not the MAC address of a machine", why, "correct it")
            elif mac in owners:
                yield finding(where, f"{mac} is that of {owners[mac]}, too", "", "correct hwaccel_mac of one of them")
            owners.setdefault(mac, key)


def hints(site: Site) -> c.Iterator[Finding]:
    for key, host in hosts(site):
        given, where = host.get("rootDeviceHints") or {}, f"{key}.rootDeviceHints"
        for name in ("wwnWithExtension", "wwnVendorExtension"):
            if given.get(name):
                yield finding(f"{where}.{name}", f"{name} is not supported", "", "use wwn or serialNumber")
        device = given.get("deviceName")
        if not device:
            continue
        if not device.startswith("/dev/"):
            yield finding(f"{where}.deviceName", f"{values.shown(device)} is not a device", "", "give one below /dev")
        elif device.startswith("/dev/disk/") and not device.startswith(_BY_PATH):
            why = f"of links to devices, only those in {_BY_PATH} are known to the agent"
            next_step = "set hwaccel_root_device_hints of the machine, such as {wwn: …} or {serialNumber: …}"
            yield finding(f"{where}.deviceName", f"{values.shown(device)} is not supported", why, next_step)


def roles(site: Site) -> c.Iterator[Finding]:
    for key, host in hosts(site):
        if host.get("role"):
            yield from one_of_config(f"{key}.role", host["role"], (MASTER, WORKER), AGENT_CONFIG)


def counts(site: Site) -> c.Iterator[Finding]:
    """As many hosts as replicas: of more the installer makes no image, and for less it waits (testdata/agent/image/validations)."""
    listed = hosts(site)
    if site.method != AGENT or not listed:
        return
    wanted = {
        MASTER: site.at("controlPlane.replicas"),
        WORKER: sum(one["replicas"] for one in site.at("compute")),
    }
    found = {role: sum(host.get("role") == role for _key, host in listed) for role in wanted}
    for role, number in found.items():
        if number > wanted[role]:
            what = f"{number} hosts are {role}s, and {wanted[role]} replicas are set"
            yield finding("hosts", what, "", "remove hosts, or the replicas, which the role sets")
    if len(listed) < sum(wanted.values()):
        what = f"{len(listed)} hosts, and {sum(wanted.values())} replicas are set"
        yield finding("hosts", what, "the installation would wait for the others", "add hosts, or set fewer replicas")


def names(site: Site) -> c.Iterator[Finding]:
    owners: dict[str, str] = {}
    for key, host in hosts(site):
        name = host.get("hostname") or ""
        if name in owners:
            yield finding(
                f"{key}.hostname", f"{name} is that of {owners[name]}, too", "", "give each a name of its own"
            )
        elif name.startswith("localhost"):
            yield finding(f"{key}.hostname", f"{name} is no name of a node", "", "give each a name of its own")
        if name:
            owners.setdefault(name, key)


def time_servers(site: Site) -> c.Iterator[Finding]:
    for number, one in enumerate(site.agent.get("additionalNTPSources") or []):
        if not (_is_address(one) or is_domain(one)):
            what = f"{values.shown(one)} is neither a name nor an address"
            yield finding(f"additionalNTPSources[{number}]", what)


def artifacts(site: Site) -> c.Iterator[Finding]:
    key = "bootArtifactsBaseURL"
    given = site.agent.get(key)
    if not given:
        return
    try:
        read = urllib.parse.urlsplit(given)
    except ValueError:
        read = urllib.parse.SplitResult("", "", "", "", "")
    if read.scheme not in ("http", "https") or not read.netloc:
        yield finding(
            key, f"{values.shown(given)} is not an absolute address", "", "give one such as http://10.0.0.5/agent"
        )


def static(site: Site) -> c.Iterator[Finding]:
    """nmstate finds an interface by the MAC address beside its name, so both must be the same in interfaces and in networkConfig."""
    for key, host in hosts(site):
        given = host.get("networkConfig")
        if given is None:
            continue
        where = f"{key}.networkConfig"
        listed = given.get("interfaces") if isinstance(given, c.Mapping) else None
        if not isinstance(listed, list) or not all(
            isinstance(one, c.Mapping) and isinstance(one.get("name"), str) for one in listed
        ):
            yield finding(where, "it is not a state of nmstate", "", "give interfaces, each with its name")
            continue
        known = {one.get("name") for one in listed}
        for one in host.get("interfaces") or []:
            if one.get("name") not in known:
                what = f"it has no interface {one.get('name')}, which has the MAC address {one.get('macAddress')}"
                yield finding(where, what, "the name stands for the address", "name it as in interfaces")


def _is_address(text: t.Any) -> bool:
    try:
        return isinstance(text, str) and bool(ipaddress.ip_address(text))
    except ValueError:
        return False
