# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a set is written and read back."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import record
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    HwaccelError,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


keys = st.builds(ObjectKey, st.sampled_from(["", "apps"]), texts, texts, texts)


paths = st.lists(texts.map(lambda name: f"f:{name}"), min_size=1, max_size=3).map(tuple)


entries = st.builds(
    record.Entry,
    keys,
    uid=texts,
    ask=texts,
    fields=st.frozensets(paths, max_size=4),
    adopted=st.booleans(),
    fought=st.lists(texts, max_size=2).map(tuple),
)


def stored(found: record.Record) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    parent, parts = record.to_objects(found, "s")
    parent["metadata"] |= {"resourceVersion": "1", "uid": "u"}
    # The objects must survive a conversion to JSON, like on an API server.
    return json.loads(json.dumps(parent)), json.loads(json.dumps(parts))


@settings(max_examples=100)
@given(st.lists(entries, max_size=5), st.sampled_from(["ConfigMap", "Secret"]), st.booleans())
def test_a_record_comes_back_as_it_was_written(members: list[record.Entry], kind: str, held: bool) -> None:
    hold = record.Hold("me", record.stamp(1000.25), record.stamp(1090.5)) if held else None
    before = record.Record(kind, "ns", "s", {entry.key: entry for entry in members}, hold)
    after = record.from_objects(*stored(before))
    assert after.members == before.members
    assert after.hold == hold
    assert after.id == before.id


def test_the_parent_is_an_applyset_that_kubectl_leaves_alone() -> None:
    key = ObjectKey("apps", "DaemonSet", "other", "d")
    parent, parts = record.to_objects(
        record.Record(
            "ConfigMap",
            "ns",
            "s",
            {
                key: record.Entry(key),
                ObjectKey("", "Secret", "ns", "x"): record.Entry(ObjectKey("", "Secret", "ns", "x")),
            },
        ),
        "s",
    )
    expected = base64.urlsafe_b64encode(hashlib.sha256(b"s.ns.ConfigMap.").digest()).decode().rstrip("=")
    assert parent["metadata"]["labels"]["applyset.kubernetes.io/id"] == f"applyset-{expected}-v1"
    assert len(f"applyset-{expected}-v1") <= 63
    annotations = parent["metadata"]["annotations"]
    assert annotations["applyset.kubernetes.io/tooling"] == "hwaccel.gpu/v1"
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == "DaemonSet.apps,Secret"
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == "other"
    assert parts == []


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_enormous_records_are_split_below_the_limit(kind: str) -> None:
    fields = [frozenset({("f:data", f"f:{os.urandom(600).hex()}")}) for _index in range(1500)]
    members = {ObjectKey("", "ConfigMap", "n", f"c{index}"): fields[index] for index in range(1500)}
    before = record.Record(kind, "ns", "s", {key: record.Entry(key, "u", "a", owned) for key, owned in members.items()})
    parent, parts = stored(before)
    assert len(parts) >= 1
    assert all(len(json.dumps(obj)) < 900 * 1024 for obj in (parent, *parts))
    assert record.part_names(parent) == [part["metadata"]["name"] for part in parts]
    assert record.from_objects(parent, parts).members == before.members


def test_a_foreign_or_damaged_object_at_the_place_of_the_record() -> None:
    parent, _parts = stored(record.Record("ConfigMap", "ns", "s"))
    with pytest.raises(HwaccelError, match="cannot be read"):
        record.from_objects(parent | {"data": {"format": "1", "members": "{", "fields": ""}}, [])
    with pytest.raises(HwaccelError, match="cannot be read"):
        record.from_objects(parent | {"data": parent["data"] | {"format": "9"}}, [])
    parent["metadata"]["annotations"] = {}
    with pytest.raises(HwaccelError, match="is not a record of this collection"):
        record.from_objects(parent, [])
