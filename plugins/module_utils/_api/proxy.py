# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which hosts are connected to without the proxy. Pure."""

from __future__ import annotations

import ipaddress
import urllib.parse


def bypassed(host: str, no_proxy: str) -> bool:
    """no_proxy: comma separated names, domains (.example.com), addresses, networks (10.0.0.0/8), or *; a port may follow a name."""
    entries = (part.strip().lower() for part in no_proxy.split(","))
    return any(_matches(host.lower().strip("[]"), entry) for entry in entries if entry)


def _matches(host: str, entry: str) -> bool:
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    name = entry.partition(":")[0].removeprefix("*").lstrip(".")
    return bool(name) and (host == name or host.endswith("." + name))


def without_userinfo(url: str) -> tuple[str, str]:
    """(URL without user and password, "user:password" or "")."""
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    userinfo, _separator, location = parts.netloc.rpartition("@")
    return urllib.parse.urlunsplit(parts._replace(netloc=location)), urllib.parse.unquote(userinfo)
