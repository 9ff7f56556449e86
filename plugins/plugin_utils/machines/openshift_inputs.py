# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of variables of cluster_openshift whose type says too little: entries of lists and dictionaries, paths and limits. Pure.

What depends on other variables, and on the rules of the installer, is validated by openshift/rules.py.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import checks

_TEXTS = checks.or_one(values.text, "texts")
_POOL = values.matching(re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"), "not the name of a pool", "worker")
_PROXY = {"http": values.text, "https": values.text, "no_proxy": _TEXTS}
_MIRROR = {
    "source": values.text,
    "mirrors": _TEXTS,
    "policy": values.choice("AllowContactingSource", "NeverContactSource"),
}
_SERVER = values.matching(
    re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]{0,252}[A-Za-z0-9])?"), "neither an address nor a name", "ntp.example.com"
)
_STATIC = {
    "network": checks.network,
    "router": checks.address,
    "dns": checks.or_one(checks.address, "addresses"),
    "mtu": values.number(576, 65535, whole=True),
}
_INTERNAL = dict.fromkeys(("join", "transit", "masquerade"), checks.network)
_DISK = {
    "device": values.text,
    "mount": values.text,
    "filesystem": values.choice("xfs", "ext4"),
    "label": values.text,
    "start_mib": values.number(0, whole=True),
    "size_mib": values.number(0, whole=True),
}


_STATIC_NETWORK = values.fields(_STATIC, "a network", ("network",))


def _static(value: t.Any, where: str) -> list[Fault]:
    """A machine reaches its router directly."""
    faults = _STATIC_NETWORK(value, where)
    if faults or values.unset(value.get("router")):
        return faults
    network = ipaddress.ip_network(str(value["network"]).strip())
    router = ipaddress.ip_address(str(value["router"]).strip())
    if router in network or (router.is_link_local and router.version == network.version):
        return []
    return [Fault(f"{router} is not in {network}", f"{where}.router", "", "give the address of the router in it")]


def _document(value: t.Any, where: str) -> list[Fault]:
    """A dictionary, or YAML text, which is read where its contents are checked."""
    if isinstance(value, (str, c.Mapping)):
        return []
    return [Fault(f"{values.shown(value)} is neither a dictionary nor YAML", where, "", "give keys with their values")]


def _secret(value: t.Any, where: str) -> list[Fault]:
    """Text, or what Ansible makes of JSON in a variable. Messages do not show it."""
    if isinstance(value, (str, c.Mapping)):
        return []
    return [Fault("the pull secret is neither text nor a dictionary", where, "", "give it as it is, in single quotes")]


def _lines(value: t.Any, where: str) -> list[Fault]:
    """Texts of one or more lines."""
    each = value if isinstance(value, (list, tuple)) else [value]
    return [
        Fault(f"{values.shown(one)} is not a string", f"{where}[{number}]", "", "give the line of a public key")
        for number, one in enumerate(each)
        if not isinstance(one, str)
    ]


def _bundle(value: t.Any, where: str) -> list[Fault]:
    if isinstance(value, str):
        return []
    return [Fault(f"{values.shown(value)} is not a string", where, "", "give certificates in PEM, one after the other")]


_PROGRAM = values.matching(
    checks.PATH, "neither an absolute path nor an archive", "/usr/local/bin/openshift-install", 4096
)
_ARCHIVE = values.fields(
    {
        **dict.fromkeys(("url", "signature"), checks.WEB_ADDRESS),
        "checksum": checks.SHA256,
        "keyring": checks.FILE,
    },
    "an archive of openshift-install",
    ("url", "checksum"),
)


def _installer(value: t.Any, where: str) -> list[Fault]:
    return (_ARCHIVE if isinstance(value, c.Mapping) else _PROGRAM)(value, where)


#: A limit of 0 would end before anything has happened.
_LIMIT = values.number(1, what="not a number of seconds above 0")

#: By the name of a variable without that of the role.
CHECKS: dict[str, values.Check] = {
    "host_prefix": values.number(1, 30, whole=True),
    "network_mtu": values.number(0, 65535, whole=True, what="not the MTU of a network"),
    "internal_networks": values.fields(_INTERNAL, "the internal networks"),
    "pull_secret": _secret,
    "ssh_keys": _lines,
    "trust_bundle": _bundle,
    "proxy": values.fields(_PROXY, "the proxy"),
    "mirrors": values.listed(values.fields(_MIRROR, "a mirror", ("source", "mirrors")), "mirrors"),
    "capabilities": values.fields({"baseline": values.text, "additional": _TEXTS}, "the capabilities"),
    "rendezvous_address": checks.address,
    "static_networks": values.listed(_static, "networks"),
    "time_servers": values.listed(_SERVER, "addresses and names"),
    "kernel_arguments": values.mapping(_TEXTS, "arguments by the names of pools", _POOL),
    "disks": values.mapping(
        values.listed(values.fields(_DISK, "a disk", ("device", "mount")), "disks"),
        "disks by the names of pools",
        _POOL,
    ),
    "manifests": values.listed(_document, "manifests"),
    "machine_configs": values.listed(_document, "MachineConfigs"),
    "install_config": _document,
    "agent_config": _document,
    "folder": values.matching(checks.PATH, "not an absolute path", "/srv/installations/ocp", 4096),
    "installer": _installer,
    "artifacts_mirror": checks.WEB_ADDRESS,
    "margin": values.seconds(),
    **dict.fromkeys((f"{name}timeout" for name in ("", "api_", "bootstrap_", "nodes_", "install_")), _LIMIT),
    "release": values.fields(dict.fromkeys(("version", "image", "architecture"), values.text), "the release"),
}
