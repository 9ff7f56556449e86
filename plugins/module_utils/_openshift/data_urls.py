# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Contents of data URLs, as Ignition decodes them, within a limit of their size. Pure.

Ignition reads them with github.com/vincent-petithory/dataurl, which follows RFC 2397 with the media types of RFC 2045. No error has any of the contents.
"""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse
import zlib

#: Bytes of contents after decompression.
LARGEST = 32 << 20
#: Programs write one member, and the time grows with the square of their number.
_MOST_MEMBERS = 16
_LONGEST_HEADER = 1024
_PIECE = 1 << 16

_TOKEN = r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]"
_HEADER = re.compile(
    f"data:(?:(?:(?:text|image|audio|video|application|message|multipart){_TOKEN}*|[xX]-{_TOKEN}*)/{_TOKEN}*)?"
    rf'(?:;{_TOKEN}+=(?:{_TOKEN}+|"(?:[^"\\]|\\.)*"))*(;base64)?,',
    re.ASCII,
)
#: Characters of a URL (RFC 2396, 2.4.3 excludes the others), and "%" only before two hexadecimal digits.
_PLAIN = re.compile(r"(?:[!$&'()*+,\-./0-9:;=?@A-Z_a-z~]|%[0-9A-Fa-f]{2})*+", re.ASCII)


class Undecodable(ValueError):
    """Contents that cannot be decoded. Its text says why."""


def decoded(url: str, compression: str = "", most: int = LARGEST) -> bytes:
    """Contents of a data URL. compression: "gzip" or ""; most: bytes that they may have after decompression. Raises Undecodable."""
    head = _HEADER.match(url, 0, _LONGEST_HEADER)
    if head is None:
        raise Undecodable("it is not a data URL (RFC 2397)")
    data = _base64(url[head.end() :]) if head[1] else _plain(url, head.end())
    return _decompressed(data, most) if compression == "gzip" else data


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Undecodable("its base64 is not valid") from None


def _plain(url: str, start: int) -> bytes:
    valid = _PLAIN.match(url, start)
    if valid is None or valid.end() < len(url):
        raise Undecodable("it has a character that has to be percent-encoded, or a percent sign without its two digits")
    parts = []
    while start < len(url):
        # Decoded in pieces, because each escape sequence is an object while it is decoded.
        end = min(start + _PIECE, len(url))
        cut = url.rfind("%", max(start, end - 2), end)
        end = cut if cut > start and end < len(url) else end
        parts.append(urllib.parse.unquote_to_bytes(url[start:end]))
        start = end
    return b"".join(parts)


def _decompressed(data: bytes, most: int) -> bytes:
    """All members of a gzip file (RFC 1952), as Go's reader takes them."""
    parts: list[bytes] = []
    size = 0
    while data:
        if len(parts) == _MOST_MEMBERS:
            raise Undecodable(f"its gzip data has more than {_MOST_MEMBERS} members")
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            parts.append(member.decompress(data, most - size + 1))
        except zlib.error:
            raise Undecodable("it is not valid gzip") from None
        size += len(parts[-1])
        if size > most:
            raise Undecodable("its contents, or those of the file together, are too large after decompression")
        if not member.eof:
            raise Undecodable("its gzip data is truncated")
        data = member.unused_data
    if not parts:
        raise Undecodable("it is not valid gzip: it is empty")
    return b"".join(parts)
