# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of variables of the role whose type says too little: entries of lists and dictionaries. Pure.

What depends on other variables, and on the rules of the installer, is validated by rules.py.
"""

from __future__ import annotations

import collections.abc as c
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
    "static_networks": values.listed(values.fields(_STATIC, "a network", ("network",)), "networks"),
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
}
