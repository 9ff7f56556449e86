# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of addresses, networks and names in variables of machines. Pure."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines

PATH = re.compile(r"/[^\x00-\x1f]*")
FILE = values.matching(PATH, "not an absolute path", "/var/log/nginx/access.log", 4096)
WEB_ADDRESS = values.matching(
    re.compile(r"https?://[^\s/]+(/\S*)?"), "not the address of a web server", "https://mirror.example.com/packages"
)
SHA256 = values.matching(re.compile(r"sha256:[0-9a-fA-F]{64}"), "not a checksum", f"sha256:{'0123456789abcdef' * 4}")


def address(value: t.Any, where: str) -> list[Fault]:
    try:
        ipaddress.ip_address(str(value).strip() if values.scalar(value) and not isinstance(value, (int, float)) else "")
    except ValueError:
        return [
            Fault(
                f"{values.shown(value)} is not an IP address",
                where,
                "",
                "give one such as 10.0.0.5, in quotes and without a prefix length",
            )
        ]
    return []


def network(value: t.Any, where: str) -> list[Fault]:
    try:
        ipaddress.ip_network(str(value).strip() if isinstance(value, str) else "")
    except ValueError as error:
        why = "it has host bits set" if "host bits" in str(error) else ""
        return [Fault(f"{values.shown(value)} is not a network", where, why, "give one such as 10.0.0.0/24")]
    return []


def with_prefix(value: t.Any, where: str) -> list[Fault]:
    try:
        ipaddress.ip_interface(str(value).strip() if isinstance(value, str) and "/" in value else "")
    except ValueError:
        return [
            Fault(
                f"{values.shown(value)} is not an address with a prefix length",
                where,
                "",
                "give one such as 10.0.0.5/24",
            )
        ]
    return []


def dns_name(value: t.Any, where: str) -> list[Fault]:
    if values.scalar(value) and machines.is_name(str(value).strip()):
        return []
    return [
        Fault(
            f"{values.shown(value)} is not a DNS name",
            where,
            "",
            "use lower-case letters, digits and hyphens, with dots between labels",
        )
    ]


def or_one(each: values.Check, what: str) -> values.Check:
    """A list, or a single entry instead of it."""

    def check(value: t.Any, where: str) -> list[Fault]:
        return values.listed(each, what)(value, where) if isinstance(value, (list, tuple)) else each(value, where)

    return check
