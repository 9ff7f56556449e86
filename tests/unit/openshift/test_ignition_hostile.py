# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are broken, or written to harm the program that reads them: each a clear error, with its place, the cause and the next step."""

from __future__ import annotations

import base64
import collections.abc as c
import gzip
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

BOOTSTRAP = i.written(i.Installation().bootstrap())
SECRET = "planted-secret"


def config(source: str, path: str = "/a", **resource: t.Any) -> bytes:
    return files({"path": path, "contents": {"source": source, **resource}})


def files(*entries: t.Any) -> bytes:
    return i.written({"ignition": {"version": "3.2.0"}, "storage": {"files": list(entries)}})


def packed(data: bytes) -> bytes:
    return config(f"data:;base64,{base64.b64encode(data).decode()}", compression="gzip")


def certificates(text: str) -> bytes:
    return config(i.source(text), f"{i.TLS}/a.crt")


def bombs() -> bytes:
    """Each of them is within the limit of a file, and all together are not."""
    source = f"data:;base64,{base64.b64encode(gzip.compress(bytes(17 << 20))).decode()}"
    entries = [{"path": f"/{number}", "contents": {"source": source, "compression": "gzip"}} for number in range(4)]
    return files(*entries)


ONE = i.certificate("aggregator", i.NOW, i.DAY)

#: Name: the file, and a part of the message.
HOSTILE: dict[str, tuple[c.Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "it is empty"),
    "blank": (lambda: b"\n\n", "it is empty"),
    "zeros": (lambda: bytes(4096), "it is not valid JSON"),
    "too large": (lambda: b'{"a":"' + b"a" * (32 << 20) + b'"}', "it has more than 32 MiB"),
    "cut off": (lambda: BOOTSTRAP[: len(BOOTSTRAP) // 2], "it is not valid JSON: line 1, column"),
    "twice": (lambda: BOOTSTRAP * 2, "it is not valid JSON: line 1, column"),
    "YAML": (lambda: b"ignition:\n  version: 3.2.0\n", "it is not valid JSON"),
    "HTML of a proxy": (lambda: b"<html><body>403</body></html>", "it is not valid JSON: line 1, column 1"),
    "UTF-16": (lambda: BOOTSTRAP.decode().encode("utf-16"), "it is not UTF-8"),
    "Latin-1": (lambda: '{"é": 1}'.encode("latin-1"), "it is not UTF-8: byte 3 is invalid"),
    "byte order mark": (lambda: b"\xef\xbb\xbf" + BOOTSTRAP, "it is not valid JSON"),
    "compressed": (lambda: gzip.compress(BOOTSTRAP), "it is not UTF-8"),
    "a list": (lambda: b"[]", "this is not an ignition file"),
    "a string": (lambda: b'"ignition"', "this is not an ignition file"),
    "another object": (lambda: b'{"kind": "MachineConfig"}', "this is not an ignition file"),
    "specification 2": (lambda: b'{"ignition": {"version": "2.2.0"}}', "version of the ignition file is not supported"),
    "a later version": (lambda: b'{"ignition": {"version": "3.7.0"}}', "version of the ignition file is not supported"),
    "a long version": (lambda: i.written({"ignition": {"version": "3" * 5000}}), "is not supported"),
    "deep lists": (lambda: b"[" * 1_000_000 + b"]" * 1_000_000, "it has more than 400000 values"),
    "deep objects": (lambda: b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested more than 64 levels"),
    "many values": (lambda: b"[" + b"{}," * 500_000 + b"{}]", "it has more than 400000 values"),
    "many quotes": (lambda: b'"' + b'\\"' * 2_000_000, "it has more than 400000 values"),
    "a key twice": (
        lambda: b'{"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a", "path": "/b"}]}}',
        "storage.files[0].path): an object has this key twice",
    ),
    "NaN": (lambda: b'{"ignition": {"version": "3.2.0"}, "a": NaN}', "it has NaN"),
    "a long number": (lambda: b'{"a": ' + b"9" * 100_000 + b"}", "a number that is too long"),
    "a mode without end": (
        lambda: files({"path": "/a", "mode": 10**400}),
        "the number is too large (/srv/bootstrap.ign: storage.files[0].mode)",
    ),
    "wrong types": (
        lambda: i.written({"ignition": {"version": "3.2.0"}, "storage": [], "systemd": {"units": {"a": SECRET}}}),
        "systemd.units): it has to be a list, and is an object",
    ),
    "null in a list": (lambda: files(None), "storage.files[0]): it has to be an object, and is null"),
    "wrong base64": (lambda: config(f"data:;base64,{SECRET}"), "its base64 is not valid"),
    "wrong escapes": (lambda: config(f"data:,{SECRET}%zz"), "a percent sign without its two digits"),
    "no data URL": (lambda: config(f"data:{SECRET}"), "it is not a data URL"),
    "cut off gzip": (lambda: packed(gzip.compress(b"contents")[:-4]), "its gzip data is truncated"),
    "no gzip": (lambda: packed(SECRET.encode()), "it is not valid gzip"),
    "a wrong sum in gzip": (lambda: packed(gzip.compress(b"a")[:-8] + bytes(8)), "it is not valid gzip"),
    "a bomb": (lambda: packed(gzip.compress(bytes((32 << 20) + 1))), "too large after decompression"),
    "many bombs": (bombs, "too large after decompression"),
    "a bomb of members": (lambda: packed(gzip.compress(b"") * 100_000), "more than 16 members"),
    "another hash": (
        lambda: config("data:,a", verification={"hash": f"sha512-{'0' * 128}"}),
        "the contents have another hash",
    ),
    "a certificate that is cut off": (lambda: certificates(ONE[:-40]), "the block of a certificate is not complete"),
    "a certificate of zeros": (
        lambda: certificates("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        "certificate 1 cannot be read",
    ),
    "a key in place of a certificate": (lambda: certificates(i.private_key()), "there is none in the file"),
    "10,000 certificates": (lambda: certificates(ONE * 10_000), "there are more than 2000"),
    "unknown fields": (
        lambda: i.written({"ignition": {"version": "3.2.0", "x": 1}, "storage": {"files": [{"mode": 1}] * 9}}),
        "storage.files[8].path)",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_is_a_clear_error(name: str) -> None:
    made, expected = HOSTILE[name]
    with pytest.raises(HwaccelError) as caught:
        ignition.read(made(), "/srv/bootstrap.ign")
    assert expected in str(caught.value)
    assert SECRET not in str(caught.value)
    for fault in caught.value.faults:
        assert (bool(fault.what), fault.where[:18], bool(fault.next_step)) == (True, "/srv/bootstrap.ign", True)
        assert len(str(fault)) < 1000


def test_there_are_at_least_30_kinds() -> None:
    assert len(HOSTILE) >= 30


def test_a_file_cannot_fill_a_log() -> None:
    with pytest.raises(HwaccelError) as caught:
        ignition.read(files(*({"path": 1} for _number in range(10_000))), "/srv/a.ign")
    assert len(caught.value.faults) == 51
    assert caught.value.faults[-1].what == "there are 9950 more errors"
    strange = {"ignition": {"version": "3.2.0"}, **{f"field-{number}": 1 for number in range(10_000)}}
    assert len(ignition.read(i.written(strange), "/srv/a.ign").warnings) == 50


def test_what_a_file_names_cannot_control_a_terminal() -> None:
    with pytest.raises(HwaccelError) as caught:
        ignition.read(files({"path": "/a\x1b[2J\x07", "contents": {"source": "data:;base64,="}}), "/srv/a.ign")
    assert "\x1b" not in str(caught.value)
    assert "\x07" not in str(caught.value)


@pytest.mark.parametrize("seed", range(200))
def test_damaged_bytes_are_read_or_refused(seed: int) -> None:
    """One byte of the file changes: no other exception."""
    place = seed * 7919 % len(BOOTSTRAP)
    damaged = BOOTSTRAP[:place] + bytes([(BOOTSTRAP[place] + 1 + seed) % 256]) + BOOTSTRAP[place + 1 :]
    try:
        ignition.read(damaged, "/srv/bootstrap.ign")
    except HwaccelError as error:
        assert json.dumps([str(fault) for fault in error.faults])
