# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an installation: written, read again, and refused where somebody has changed it."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, Tool, path_of

TOOL = Tool("4.20.1", "quay.io/openshift-release-dev/ocp-release@sha256:abc", "amd64")
RECORD = Record(
    inputs=Inputs.of({"install-config.yaml": {"metadata": {"name": "dgxpod"}, "pullSecret": "planted"}}, "salt"),
    salt="salt",
    tool=TOOL,
    checksums={"bootstrap.ign": "a" * 64, "worker.ign": "b" * 64},
    infrastructure="dgxpod-x7k2p",
    created="2026-11-30T06:00:00Z",
)


def read(body: t.Any) -> Record:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Record.from_json(data, "/srv/dgxpod.hwaccel-gpu.json")


def test_it_is_beside_the_folder() -> None:
    assert path_of("/srv/dgxpod") == path_of("/srv/dgxpod/") == "/srv/dgxpod.hwaccel-gpu.json"


def test_it_is_read_as_it_was_written() -> None:
    text = RECORD.to_json()
    assert read(text.encode()) == RECORD
    assert "planted" not in text
    assert text.splitlines()[1:3] == ['  "checksums": {', f'    "bootstrap.ign": "{"a" * 64}",']
    assert read(text.encode()).to_json() == text
    installed = dataclasses.replace(RECORD, installed="2026-11-30T07:00:00Z")
    assert read(installed.to_json().encode()) == installed


def test_the_fingerprint_is_that_of_inputs_and_tool() -> None:
    same = dataclasses.replace(RECORD, created="2026-12-01T06:00:00Z", installed="2026-12-01T07:00:00Z", checksums={})
    assert same.fingerprint == RECORD.fingerprint
    newer = dataclasses.replace(TOOL, version="4.20.2")
    others = [dataclasses.replace(RECORD, tool=newer), dataclasses.replace(RECORD, inputs=Inputs({"a: b": 1}))]
    assert len({RECORD.fingerprint, *(one.fingerprint for one in others)}) == 3


BODY = json.loads(RECORD.to_json())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 2}, "its format is 2, and this version of the collection reads 1"),
        ({"format": None}, "its format is None"),
        ({"inputs": {"a": []}}, "a field is missing or invalid: inputs"),
        ({"inputs": None, "salt": 1}, "a field is missing or invalid: inputs, salt"),
        ({"checksums": {"a": 1}}, "a field is missing or invalid: checksums"),
        ({"tool": {"version": "4"}}, "a field is missing or invalid: tool"),
        ({"created": "yesterday"}, "a field is missing or invalid: created"),
        ({"created": "2026-11-30T06:00:00"}, "a field is missing or invalid: created"),
        ({"installed": 5}, "a field is missing or invalid: installed"),
        ({"more": 5}, "a field is missing or invalid: checksums"),
        ({"inputs": {"install-config.yaml: metadata.name": "other"}}, "its fingerprint is not that of its inputs"),
        ({"fingerprint": "0"}, "its fingerprint is not that of its inputs"),
    ],
)
def test_a_changed_record_is_refused(change: dict[str, t.Any], why: str) -> None:
    with pytest.raises(HwaccelError) as caught:
        read(BODY | change)
    (fault,) = caught.value.faults
    assert (fault.what, fault.where) == (
        "the record of the installation cannot be read",
        "/srv/dgxpod.hwaccel-gpu.json",
    )
    assert fault.why.startswith(why)
    assert fault.next_step


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"null", b"\xff", b'{"format": 1, "format": 1}', b"{}"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(HwaccelError):
        read(data)


@settings(max_examples=50)
@given(st.sampled_from(sorted(BODY)), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.none()))
def test_fields_of_any_type_are_errors_at_most(name: str, value: t.Any) -> None:
    try:
        assert read(BODY | {name: value}).to_json()
    except HwaccelError as error:
        assert error.faults[0].next_step


def test_each_field_that_is_missing_is_named() -> None:
    for name in BODY:
        with pytest.raises(HwaccelError):
            read({key: value for key, value in BODY.items() if key != name})
