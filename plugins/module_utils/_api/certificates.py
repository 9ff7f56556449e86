# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expiry of a certificate, read with the standard library: a bastion may lack `cryptography`, and `ssl` cannot read client certificates.

Pure.
"""

from __future__ import annotations

import collections.abc as c
import datetime
import re
import ssl

_FIRST = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
#: Tags of DER (X.690): a time with a two-digit year, and the explicit version at the start of all but the oldest certificates.
_UTC_TIME, _VERSION = 0x17, 0xA0


def expired(pem: str, now: float | None) -> str:
    """notAfter of the first certificate if it has expired, in ISO 8601 and UTC; "" if it has not, or cannot be read.

    now: in seconds since 1970 by the server's clock, None if unknown.
    """
    try:
        end = _not_after(pem)
    except (ValueError, IndexError):
        return ""
    return end.isoformat() if now is not None and end.timestamp() <= now else ""


def _not_after(pem: str) -> datetime.datetime:
    """By RFC 5280, 4.1. Raises ValueError or IndexError if this is not a certificate."""
    block = _FIRST.search(pem)
    if block is None:
        raise ValueError("no certificate")
    (_tag, certificate), *_more = _elements(ssl.PEM_cert_to_DER_cert(block.group()))
    (_tag, signed), *_more = _elements(certificate)
    fields = [content for tag, content in _elements(signed) if tag != _VERSION]
    # The fields before it are serial number, signature algorithm and issuer.
    _not_before, (tag, end) = _elements(fields[3])
    text = end.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC)


def _elements(der: bytes) -> c.Iterator[tuple[int, bytes]]:
    """Tag and content of each element of a sequence."""
    place = 0
    while place < len(der):
        tag, length = der[place], der[place + 1]
        place += 2
        if length >= 0x80:
            size = length - 0x80
            length, place = int.from_bytes(der[place : place + size], "big"), place + size
        yield tag, der[place : place + length]
        place += length
