# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Contents of data URLs, plain, percent-encoded, in base64 and compressed, within their limit. Verdicts of Ignition are in ignition_verdicts.yml."""

from __future__ import annotations

import base64
import gzip
import urllib.parse
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import data_urls


def encoded(data: bytes) -> str:
    return f"data:;base64,{base64.b64encode(data).decode('ascii')}"


@given(st.binary())
def test_all_encodings_have_the_same_contents(data: bytes) -> None:
    assert data_urls.decoded(encoded(data)) == data
    assert data_urls.decoded(f"data:,{urllib.parse.quote_from_bytes(data, safe='')}") == data
    assert data_urls.decoded(encoded(gzip.compress(data)), "gzip") == data


@given(st.text(alphabet="a%41é+ ;,", max_size=30))
def test_plain_data_is_decoded_or_refused(text: str) -> None:
    try:
        assert data_urls.decoded(f"data:,{text}") == urllib.parse.unquote_to_bytes(text)
    except data_urls.Undecodable:
        assert any(character in text for character in "%é ")


@pytest.mark.parametrize("size", [65_533, 65_534, 65_535, 65_536, 65_537, 200_000])
def test_escapes_at_the_end_of_a_piece_are_not_torn_apart(size: int) -> None:
    for text in ("a" * size + "%41" * 3, "%41" * size, "a%41" * size):
        assert data_urls.decoded(f"data:,{text}") == urllib.parse.unquote_to_bytes(text)


def why(url: str, compression: str = "", **limits: int) -> str:
    with pytest.raises(data_urls.Undecodable) as caught:
        data_urls.decoded(url, compression, **limits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h", "it is not a data URL"),
        (f"data:{'a' * 2000},b", "it is not a data URL"),
        ("data:;base64,YQ=", "its base64 is not valid"),
        ("data:;base64,Y\nQ==", "its base64 is not valid"),
        ("data:;base64,é", "its base64 is not valid"),
        ("data:,%4", "it has a character that has to be percent-encoded"),
        ("data:,planted secret", "it has a character that has to be percent-encoded"),
    ],
)
def test_what_cannot_be_decoded_has_its_reason_and_no_contents(url: str, expected: str) -> None:
    assert why(url).startswith(expected)
    assert "planted" not in why(url)


WHOLE = gzip.compress(b"contents" * 100)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "it is not valid gzip: it is empty"),
        (b"contents", "it is not valid gzip"),
        (WHOLE[:-1], "its gzip data is truncated"),
        (WHOLE[:20], "its gzip data is truncated"),
        (WHOLE[:-8] + b"\0" * 8, "it is not valid gzip"),
        (WHOLE + b"x", "its gzip data is truncated"),
        (WHOLE + b"contents", "it is not valid gzip"),
        (zlib.compress(b"contents"), "it is not valid gzip"),
        (gzip.compress(b"") * 1000, "its gzip data has more than 16 members"),
        (gzip.compress(bytes((32 << 20) + 1)), "its contents, or those of the file together, are too large"),
        (gzip.compress(bytes(20 << 20)) * 2, "its contents, or those of the file together, are too large"),
    ],
)
def test_compressed_contents_are_whole_and_limited(data: bytes, expected: str) -> None:
    assert why(encoded(data), "gzip").startswith(expected)


def test_members_are_one_after_the_other() -> None:
    assert data_urls.decoded(encoded(gzip.compress(b"a") * 16), "gzip") == b"a" * 16


def test_the_limit_is_the_size_that_is_left() -> None:
    url = encoded(gzip.compress(bytes(1000)))
    assert data_urls.decoded(url, "gzip", 1000) == bytes(1000)
    assert "too large" in why(url, "gzip", most=999)
