# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a firewall has to let in. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._metal.load_balancer.services import Service

#: Firewalls that the role can open, by the collection that has a module for them.
COLLECTIONS = {"firewalld": "ansible.posix", "ufw": "community.general"}
Opening = dict[str, t.Any]


def openings(services: c.Iterable[Service]) -> tuple[Opening, ...]:
    """port, and source where only that network may connect."""
    found = [{"port": service.port, "source": source} for service in services for source in service.sources or ("",)]
    return tuple({(opening["port"], opening["source"]): opening for opening in found}.values())


def changes(firewalls: c.Collection[str], wanted: c.Sequence[Opening], before: c.Sequence[Opening]) -> list[dict[str, t.Any]]:
    """By firewall that runs: what is opened, and what an earlier run has opened and is not wanted any more."""
    gone = [opening for opening in before if opening not in wanted]
    return [
        {"firewall": name, "open": opened, "rule": rich_rule(opening), **opening}
        for name in COLLECTIONS if name in firewalls for opened, group in ((True, wanted), (False, gone)) for opening in group
    ]  # fmt: skip


def rich_rule(opening: Opening) -> str:
    """firewalld's, for an opening with a source."""
    if not opening["source"]:
        return ""
    family = f"ipv{ipaddress.ip_network(opening['source']).version}"
    return f'rule family="{family}" source address="{opening["source"]}" port port="{opening["port"]}" protocol="tcp" accept'


def told(firewalls: c.Collection[str], wanted: c.Sequence[Opening]) -> list[str]:
    """Rules of nftables are a text of somebody's, into which nothing can be added from outside."""
    if "nftables" not in firewalls or "firewalld" in firewalls or "ufw" in firewalls:
        return []
    ports = ", ".join(f"{opening['port']}/tcp" + (f" from {opening['source']}" if opening["source"] else "") for opening in wanted)
    return [f"nftables runs with rules of this machine's own: see that they let in {ports}"]
