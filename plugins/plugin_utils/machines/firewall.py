# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that firewalls of machines have to open. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: Firewalls that roles can change, each with the collection that has a module for it.
COLLECTIONS = {"firewalld": "ansible.posix", "ufw": "community.general"}
Opening = dict[str, t.Any]


def opening(port: int, source: str = "", protocol: str = "tcp") -> Opening:
    """source: the network that may connect, empty for all."""
    return {"port": port, "source": source, "protocol": protocol}


def merged(sources: c.Iterable[str]) -> list[str]:
    """The same addresses, in as few networks as they fit: a firewall takes about a second for each rule. Sources that could not be read are left out."""
    networks = [ipaddress.ip_network(one) for one in sources if one]
    four = ipaddress.collapse_addresses(one for one in networks if isinstance(one, ipaddress.IPv4Network))
    six = ipaddress.collapse_addresses(one for one in networks if isinstance(one, ipaddress.IPv6Network))
    return [*map(str, four), *map(str, six)]


def distinct(desired: c.Iterable[Opening]) -> tuple[Opening, ...]:
    """Without duplicates, in the given order."""
    return tuple({tuple(sorted(one.items())): one for one in desired}.values())


def changes(
    firewalls: c.Collection[str], desired: c.Sequence[Opening], before: c.Sequence[Opening]
) -> list[dict[str, t.Any]]:
    """For each running firewall, what is opened, and what an earlier run has opened and is closed now."""
    # Records of earlier versions have no protocol.
    gone = [one for one in (opening(**made) for made in before) if one not in desired]
    return [
        {"firewall": name, "open": opened, "rule": rich_rule(one), **one}
        for name in COLLECTIONS
        if name in firewalls
        for opened, group in ((True, desired), (False, gone))
        for one in group
    ]


def rich_rule(desired: Opening) -> str:
    """Rich rule of firewalld for an opening with a source, otherwise empty."""
    if not desired["source"]:
        return ""
    family = f"ipv{ipaddress.ip_network(desired['source']).version}"
    return f'rule family="{family}" source address="{desired["source"]}" port port="{desired["port"]}" protocol="{desired["protocol"]}" accept'


def messages(firewalls: c.Collection[str], desired: c.Sequence[Opening]) -> list[str]:
    """nftables runs with a custom ruleset, which the role cannot extend."""
    if "nftables" not in firewalls or "firewalld" in firewalls or "ufw" in firewalls:
        return []
    ports = ", ".join(
        f"{one['port']}/{one['protocol']}" + (f" from {one['source']}" if one["source"] else "") for one in desired
    )
    return [f"nftables runs with this machine's own rules: make sure that they allow {ports}"]


def needed(firewalls: c.Collection[str]) -> dict[str, str]:
    """Collections that these firewalls need, with the reason."""
    return {
        collection: f"{name} runs and has to allow clients"
        for name, collection in COLLECTIONS.items()
        if name in firewalls
    }


def lacking(what: str, collections: c.Mapping[str, str], installed: c.Collection[str]) -> list[Fault]:
    """Problems of missing collections. what: cannot be done without them. collections: each with the reason."""
    step = "ansible-galaxy collection install -r requirements-metal.yml"
    missing = {name: why for name, why in collections.items() if name not in installed}
    return [
        Fault(what, f"collection {name}", f"it is not installed on the controller, and {why}", step)
        for name, why in missing.items()
    ]
