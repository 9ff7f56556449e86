# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DER (ITU-T X.690) as far as certificates need it.

Names are encoded here because a real one has 73 characters, which Python's cryptography refuses to write, and in the order and with the string
types of Go's crypto/x509.
"""

from __future__ import annotations

import collections.abc as c
import datetime
import ipaddress
import re

SEQUENCE, SET = 0x30, 0x31
#: Characters of PrintableString; others make a UTF8String.
PRINTABLE = re.compile(r"[A-Za-z0-9 '()+,./:=?-]*")
#: Times from this year on are GeneralizedTime (RFC 5280, 4.1.2.5).
GENERALIZED_FROM = 2050


def value(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def sequence(*parts: bytes) -> bytes:
    return value(SEQUENCE, *parts)


def integer(number: int) -> bytes:
    return value(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def octets(content: bytes) -> bytes:
    return value(0x04, content)


def bits(content: bytes, unused: int = 0) -> bytes:
    return value(0x03, bytes((unused,)), content)


def identifier(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    encoded = bytes((first * 40 + second,))
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(0x80 | number & 0x7F)
        encoded += bytes(reversed(groups))
    return value(0x06, encoded)


def text(content: str) -> bytes:
    return value(0x13 if PRINTABLE.fullmatch(content) else 0x0C, content.encode())


def moment(at: datetime.datetime) -> bytes:
    at = at.astimezone(datetime.UTC)
    if at.year >= GENERALIZED_FROM:
        return value(0x18, f"{at:%Y%m%d%H%M%SZ}".encode())
    return value(0x17, f"{at:%y%m%d%H%M%SZ}".encode())


def name(*attributes: tuple[str, c.Sequence[str]]) -> bytes:
    """Attributes (identifier, values) in their order; several values of one make one relative name, as Go writes them."""
    relative = [
        value(SET, *sorted(sequence(identifier(kind), text(one)) for one in values))
        for kind, values in attributes
        if values
    ]
    return sequence(*relative)


def extension(dotted: str, content: bytes, critical: bool = False) -> bytes:
    return sequence(identifier(dotted), *((value(0x01, b"\xff"),) if critical else ()), octets(content))


def alternative_names(names: c.Iterable[str]) -> bytes:
    """DNS names first, then addresses."""
    dns, addresses = [], []
    for one in names:
        try:
            addresses.append(value(0x87, ipaddress.ip_address(one).packed))
        except ValueError:
            dns.append(value(0x82, one.encode()))
    return sequence(*dns, *addresses)
