# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machines may become nodes, and under which names and addresses: the inventory in place of Machine objects. Pure."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

#: RFC 1123 subdomain, as the API server requires of the name of a Node (apimachinery, pkg/util/validation: IsDNS1123Subdomain).
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_NAME = 253
_KEYS = ("name", "ip_addresses", "dns_names")
_FORMAT = "give each node as name, ip_addresses and dns_names"


@dataclasses.dataclass(frozen=True)
class NodeIdentity:
    """One machine. name: as its reverse record has it, in lower case without a trailing dot. addresses: in their canonical form."""

    name: str
    addresses: frozenset[str] = frozenset()
    dns_names: frozenset[str] = frozenset()

    @property
    def short(self) -> str:
        return self.name.partition(".")[0]

    @property
    def node_names(self) -> frozenset[str]:
        """Names that its Node may have. The kubelet takes the host name, which is the reverse record or its first label."""
        return frozenset((self.name, self.short))

    @property
    def names(self) -> frozenset[str]:
        """DNS names that its serving certificate may have."""
        return self.node_names | self.dns_names


class ExpectedNodes:
    """The machines that are expected, by the names that their Nodes may have."""

    def __init__(self, identities: c.Iterable[NodeIdentity]) -> None:
        self.identities = tuple(identities)
        self._by_name: dict[str, list[NodeIdentity]] = collections.defaultdict(list)
        for identity in self.identities:
            for name in identity.node_names:
                self._by_name[name].append(identity)

    def __len__(self) -> int:
        return len(self.identities)

    def find(self, node: str) -> tuple[NodeIdentity | None, str]:
        """The machine of a node, and why there is none. A first label that two machines share names neither of them."""
        known = self._by_name.get(node, [])
        full = [identity for identity in known if identity.name == node]
        if len(full or known) == 1:
            return (full or known)[0], ""
        if known:
            return None, f"{', '.join(sorted(identity.name for identity in known))} have this first label"
        return None, "no expected node has this name"


def is_node_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(text))


def plain(name: str) -> str:
    """A known DNS name for comparisons: in lower case, without a trailing dot."""
    return name.lower().removesuffix(".")


def parse(entries: c.Sequence[c.Mapping[str, t.Any]]) -> tuple[ExpectedNodes, list[Fault]]:
    """The inventory of the option `expected_nodes`, and all problems of it."""
    faults: list[Fault] = []
    identities = [_identity(entry, f"expected_nodes[{place}]", faults) for place, entry in enumerate(entries)]
    known = [identity for identity in identities if identity is not None]
    faults += _shared(known)
    return ExpectedNodes(known), faults


def _identity(entry: c.Mapping[str, t.Any], where: str, faults: list[Fault]) -> NodeIdentity | None:
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    if unknown:
        why = f"known ones are {', '.join(_KEYS)}"
        faults.append(Fault(f"unknown keys {', '.join(unknown)}", where, why, "correct the spelling"))
    given = entry.get("name")
    name = plain(given) if isinstance(given, str) else ""
    if not _is_machine(name):
        why = "it is not a DNS name of a machine in lower-case letters, digits, hyphens and dots"
        faults.append(Fault(f"expected node {given!r} cannot be used", f"{where}.name", why, _FORMAT))
        return None
    addresses, names = set(), set()
    for field, text in _texts(entry, "ip_addresses", where, name, faults):
        if why := _address_problem(text):
            faults.append(
                Fault(f"{name}: address {text!r} cannot be used", field, why, "give addresses of the machine")
            )
        else:
            addresses.add(str(ipaddress.ip_address(text)))
    for field, text in _texts(entry, "dns_names", where, name, faults):
        if _is_machine(plain(text)):
            names.add(plain(text))
        else:
            why = "it is not a DNS name that only this machine has"
            faults.append(Fault(f"{name}: name {text!r} cannot be used", field, why, "give names of the machine"))
    return NodeIdentity(name, frozenset(addresses), frozenset(names))


def _texts(
    entry: c.Mapping[str, t.Any], key: str, where: str, name: str, faults: list[Fault]
) -> c.Iterator[tuple[str, str]]:
    """Field and text of each entry of a list. YAML can make numbers of addresses, and one text of a list."""
    values = entry.get(key)
    if values is not None and not isinstance(values, list):
        why = f"it is {type(values).__name__}, not a list"
        faults.append(
            Fault(f"{name}: {key} cannot be used", f"{where}.{key}", why, f"give a list, such as {key}: [...]")
        )
        return
    for place, value in enumerate(values or ()):
        field = f"{where}.{key}[{place}]"
        if isinstance(value, str):
            yield field, value
        else:
            why = f"it is {type(value).__name__}, not a text"
            faults.append(Fault(f"{name}: {value!r} cannot be used", field, why, "put it in quotes"))


def _is_machine(name: str) -> bool:
    return is_node_name(name) and name != "localhost" and _address(name) is None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _address_problem(text: str) -> str:
    address = _address(text)
    if address is None:
        return "it is not an IP address"
    if getattr(address, "scope_id", None) or getattr(address, "ipv4_mapped", None):
        return "it has a zone, or is an IPv4 address in IPv6 form"
    # A certificate for such an address would be valid on every machine.
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return "it is not an address of one machine"
    return ""


def _shared(identities: c.Iterable[NodeIdentity]) -> list[Fault]:
    """Names and addresses of two machines: a certificate of one would be valid for the other."""
    owners: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for identity in identities:
        for name in identity.dns_names | {identity.name}:
            owners["name", name].append(identity.name)
        for address in identity.addresses:
            owners["address", address].append(identity.name)
    return [
        Fault(
            f"{kind} {value} belongs to {len(names)} expected nodes",
            "expected_nodes",
            f"those are {', '.join(sorted(names))}",
            f"leave the {kind} to the machine that has it",
        )
        for (kind, value), names in sorted(owners.items())
        if len(names) > 1
    ]
