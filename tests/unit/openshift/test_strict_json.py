# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON within limits, with errors that name the place and none of the values."""

from __future__ import annotations

import json
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import strict_json


def parsed(data: bytes) -> t.Any:
    return strict_json.parse(data, "it cannot be read", "/srv/file", "create it again")


def why(data: bytes) -> str:
    with pytest.raises(HwaccelError) as caught:
        parsed(data)
    (fault, *_more) = caught.value.faults
    assert (fault.what, fault.next_step) == ("it cannot be read", "create it again")
    assert fault.where.startswith("/srv/file")
    return fault.why


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
        max_leaves=20,
    )
)
def test_documents_are_read_as_they_are(value: t.Any) -> None:
    assert parsed(json.dumps(value).encode("utf-8")) == value
    assert parsed(json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8")) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    try:
        parsed(data)
    except HwaccelError as error:
        assert error.faults[0].why


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "it is not valid JSON: line 1, column 2"),
        (b'{"a": 1}\n}', "it is not valid JSON: line 2, column 1"),
        (b'{"a": NaN}', "it is not valid JSON: it has NaN"),
        (b"[-Infinity]", "it is not valid JSON: it has -Infinity"),
        (b'{"a": "\xff"}', "it is not UTF-8: byte 8 is invalid"),
        ('{"a": 1}'.encode("utf-16"), "it is not UTF-8: byte 1 is invalid"),
        (b"\xef\xbb\xbf{}", "it is not valid JSON: line 1, column 1"),
        (b"[" * 65 + b"]" * 65, "its values are nested more than 64 levels deep"),
        (b"[" + b"1," * 400_000 + b"1]", "it has more than 400000 values"),
        (b"[" * 20_000_000, "it has more than 400000 values"),
        (b'{"a": "' + b'\\"' * 3_000_000, "it has more than 400000 values"),
        (b'{"a": ' + b"1" * 5000 + b"}", "it is not valid JSON: it has a number that is too long"),
        (b" " * ((32 << 20) + 1), "it has more than 32 MiB"),
        (b'{"a": "\x00"}', "it is not valid JSON: line 1, column 8"),
        (b"'a'", "it is not valid JSON: line 1, column 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_has_its_reason(data: bytes, expected: str) -> None:
    assert why(data).startswith(expected)


def test_brackets_in_strings_are_no_structure() -> None:
    text = "[{" * 100 + '\\" ,:' * 100
    assert parsed(json.dumps({"a": text}).encode()) == {"a": text}
    deep = b"[" * 64 + b"]" * 64
    assert parsed(deep)


def test_keys_that_occur_twice_are_reported_with_their_places() -> None:
    data = b'{"a": {"b": [1, {"c": 1, "c": 2}]}, "d": 1, "e": 2, "d": 3}'
    with pytest.raises(HwaccelError) as caught:
        parsed(data)
    assert [fault.where for fault in caught.value.faults] == ["/srv/file: a.b[1].c", "/srv/file: d"]
    assert {fault.why for fault in caught.value.faults} == {"an object has this key twice"}


def test_a_key_twice_in_an_object_that_is_replaced_is_an_error_too() -> None:
    assert why(b'{"a": {"b": 1, "b": 2}, "a": 1}') == "an object has this key twice"


def test_errors_have_no_values() -> None:
    for data in (b'{"a": "planted', b'{"a": "planted", "a": "planted"}', b'["planted", NaN]', b'"planted" "planted"'):
        with pytest.raises(HwaccelError) as caught:
            parsed(data)
        assert "planted" not in str(caught.value)
