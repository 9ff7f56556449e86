# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the kernel that a machine had before it became a node, and gets back. Pure."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import prerequisites
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.contents import settings_before
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host

#: By the fact that has them all.
_NAMES = {
    "ip_forward": ("net.ipv4.ip_forward",),
    "ipv6_forward": ("net.ipv6.conf.all.forwarding", "net.ipv6.conf.default.forwarding"),
    "inotify": ("fs.inotify.max_user_instances",),
}


def _now(host: Host) -> dict[str, str]:
    return {name: host.fact(fact) for fact, names in _NAMES.items() for name in names if host.fact(fact)}


def changing(host: Host, *, ipv6: bool) -> str:
    """Those that the role sets to something else, with spaces between them."""
    facts = {
        "ip_forward": host.fact("ip_forward") == "0",
        "ipv6_forward": ipv6 and host.fact("ipv6_forward") == "0",
        "inotify": prerequisites.few_instances(host),
    }
    now = _now(host)
    return " ".join(
        f"{name}={now[name]}" for fact, names in _NAMES.items() for name in names if facts[fact] and name in now
    )


def restored(host: Host, before: str) -> list[str]:
    """Those to write, so that they are as they were."""
    return settings_before(_now(host), before)
