# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused before a file is published is what Ignition itself refuses."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import pathlib
import typing as t

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import ignition, ignition_schema

VERDICTS = yaml.safe_load((pathlib.Path(__file__).parent / "ignition_verdicts.yml").read_text(encoding="utf-8"))
#: What Ignition accepts and is refused here, with the reason.
STRICTER = {
    "a version that is experimental": "the release that has this version can give its fields another meaning",
    "a user without a name": "nobody is created",
    "a link without a target, 3.2": "no link can be created",
}
#: Where Ignition reports an error at a field that does not exist.
MOVED = {"storage.luks[0].keys": "storage.luks[0].keyFile"}


def faults(config: str) -> list[Fault]:
    try:
        return list(ignition.read(config.encode("utf-8"), "file.ign").faults)
    except HwaccelError as error:
        return list(error.faults)


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case["name"])
def test_the_verdict_is_that_of_ignition(case: dict[str, t.Any]) -> None:
    found = faults(case["config"])
    assert bool(found) == (not case["accepted"] or case["name"] in STRICTER), [str(fault) for fault in found]
    places = {fault.where.removeprefix("file.ign: ").partition(" (")[0] for fault in found}
    expected = [MOVED.get(place, place) for place in case.get("at", ())]
    assert [place for place in expected if not any(one.startswith(place) for one in places)] == [], places


def test_what_is_stricter_has_a_verdict_that_accepts_it() -> None:
    assert {case["name"] for case in VERDICTS if case["accepted"]} >= STRICTER.keys()


def file(**fields: t.Any) -> dict[str, t.Any]:
    return {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a", **fields}]}}


def test_all_faults_are_reported_at_once_with_their_places() -> None:
    config = file(mode=-1, user={"id": 0, "name": "root"}, contents={"source": "ftp://user:planted@h/a"})
    config["systemd"] = {"units": [{"name": "a.foo"}]}
    with pytest.raises(ManyFaults) as caught:
        ignition.checked(json.dumps(config).encode(), "/srv/worker.ign")
    assert {fault.where for fault in caught.value.faults} == {
        "/srv/worker.ign: storage.files[0].mode",
        "/srv/worker.ign: storage.files[0].user",
        "/srv/worker.ign: storage.files[0].contents.source",
        "/srv/worker.ign: systemd.units[0].name",
    }
    assert all(fault.next_step for fault in caught.value.faults)
    assert "planted" not in str(caught.value)


def test_a_valid_file_passes() -> None:
    found = ignition.checked(json.dumps(file(mode=0o600)).encode(), "worker.ign")
    assert (found.version, found.faults, found.warnings) == ("3.2.0", (), ())


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            {"contentss": {}},
            "storage.files[0].contentss is not in version 3.2.0, and Ignition ignores it: did you mean contents?",
        ),
        (
            {"mode": 0o4755},
            "storage.files[0].mode has setuid, setgid or the sticky bit, which are not set before version 3.6.0",
        ),
        (
            {"contents": {"source": "data:,"}, "kernel": 1},
            "storage.files[0].kernel is not in version 3.2.0, and Ignition ignores it",
        ),
    ],
)
def test_what_ignition_ignores_is_a_warning(change: dict[str, t.Any], warning: str) -> None:
    found = ignition.checked(json.dumps(file(**change)).encode(), "worker.ign")
    assert found.warnings == (warning,)


#: Fields that the oldest version does not have: a file with nothing else, and the minor version that has the field first (release notes of Ignition).
LATER: list[tuple[dict[str, t.Any], int]] = [
    ({"kernelArguments": {"shouldExist": ["a"]}}, 3),
    ({"ignition": {"proxy": {"httpProxy": "http://p"}}}, 1),
    ({"storage": {"filesystems": [{"device": "/a", "format": "xfs", "mountOptions": ["a"]}]}}, 1),
    ({"storage": {"disks": [{"device": "/a", "partitions": [{"number": 1, "resize": True}]}]}}, 2),
    ({"passwd": {"users": [{"name": "a", "shouldExist": False}]}}, 2),
    ({"passwd": {"groups": [{"name": "a", "shouldExist": False}]}}, 2),
    ({"storage": {"luks": [{"name": "a", "device": "/a"}]}}, 2),
    ({"storage": {"luks": [{"name": "a", "device": "/a", "discard": True}]}}, 4),
    ({"storage": {"luks": [{"name": "a", "device": "/a", "openOptions": ["a"]}]}}, 4),
    (
        {
            "storage": {
                "luks": [
                    {
                        "name": "a",
                        "device": "/a",
                        "clevis": {"tang": [{"url": "http://t", "thumbprint": "a", "advertisement": "{}"}]},
                    }
                ]
            }
        },
        4,
    ),
    ({"storage": {"luks": [{"name": "a", "device": "/a", "cex": {"enabled": True}}]}}, 5),
]


@pytest.mark.parametrize(("config", "since"), LATER)
def test_a_field_of_a_later_version_names_it(config: dict[str, t.Any], since: int) -> None:
    for minor, expected in ((since - 1, 1), (since, 0)):
        version = {"ignition": {**config.get("ignition", {}), "version": f"3.{minor}.0"}}
        warnings = ignition.checked(json.dumps(config | version).encode(), "worker.ign").warnings
        assert len(warnings) == expected
        assert all(warning.endswith(f"Ignition ignores it: it is there since 3.{since}.0") for warning in warnings)


def test_a_unit_that_cannot_be_enabled_is_a_warning() -> None:
    unit = {"name": "a.service", "enabled": True, "contents": "[Unit]\nA=b\n"}
    config = {"ignition": {"version": "3.2.0"}, "systemd": {"units": [unit]}}
    (warning,) = ignition.read(json.dumps(config).encode(), "worker.ign").warnings
    assert warning == "systemd.units[0].enabled has no effect: the unit has no section [Install]"


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            file(contents={"source": "data:,a", "verification": {"hash": f"sha512-{'0' * 128}"}}),
            "the contents have another hash",
        ),
        (file(path=f"/{'a' * 4096}"), "it has 4096 bytes or more"),
        (file(path="/a\0b"), "it has a null character"),
        (
            {
                "ignition": {"version": "3.2.0"},
                "systemd": {"units": [{"name": "a.service", "contents": f"[Unit]\nA={'x' * 2100}\n"}]},
            },
            "line 2 has 2048 bytes or more",
        ),
    ],
)
def test_what_cannot_work_is_refused(config: dict[str, t.Any], why: str) -> None:
    assert [why in str(fault) for fault in faults(json.dumps(config))] == [True]


def test_the_right_hash_of_compressed_contents_passes() -> None:
    digest = hashlib.sha256(b"contents").hexdigest()
    source = f"data:;base64,{base64.b64encode(gzip.compress(b'contents')).decode()}"
    contents = {"source": source, "compression": "gzip", "verification": {"hash": f"sha256-{digest}"}}
    assert faults(json.dumps(file(contents=contents))) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SECTIONS = sorted(ignition_schema.FIELDS["config"])


@settings(max_examples=50)
@given(section=st.sampled_from(SECTIONS), field=st.sampled_from(sorted(ignition_schema.FIELDS)), value=VALUES)
def test_values_of_any_type_are_faults_at_most(section: str, field: str, value: t.Any) -> None:
    """Each field of each structure with any value: no other exception."""
    inner = {name: [value] if one.many else value for name, one in ignition_schema.FIELDS[field].items()}
    for part in (value, inner, {name: [inner] for name in ignition_schema.FIELDS.get(section, ())}):
        config = {"ignition": {"version": "3.6.0"}, section: part}
        if section == "ignition":
            config = {"ignition": {**(part if isinstance(part, dict) else {}), "version": "3.6.0"}}
        faults(json.dumps(config))
