# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches: RFC 7396 and RFC 6902 on matching objects, and faults for everything else."""

from __future__ import annotations

import copy
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests, patches

BODY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "n"},
    "data": {"x": "1", "y": "2"},
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


def apply(raw: t.Any) -> tuple[list[manifests.Manifest], list[t.Any]]:
    found, wrong = manifests.load([copy.deepcopy(BODY)])
    assert not wrong
    wishes, faults = patches.read(raw)
    result, more = patches.apply_all(found, wishes)
    return result, faults + more


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ({"data": {"x": "3", "y": None}}, {"x": "3"}),
        ([{"op": "replace", "path": "/data/x", "value": "3"}, {"op": "remove", "path": "/data/y"}], {"x": "3"}),
    ],
)
def test_both_kinds_of_patches(patch: t.Any, data: dict[str, str]) -> None:
    result, faults = apply([{"target": {"kind": "ConfigMap", "name": "a*", "namespace": ""}, "patch": patch}])
    assert faults == []
    assert result[0].body["data"] == data
    assert result[0].origin.startswith("definition")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"target": {"kind": "Secret"}, "patch": {"a": 1}}, "matches no object"),
        ({"target": {"name": "a"}, "patch": {"a": 1}}, "target has no kind"),
        ({"target": {"kind": "ConfigMap", "version": "v1"}, "patch": {"a": 1}}, "unknown key 'version'"),
        ({"target": {"kind": "ConfigMap"}, "patch": "x"}, "neither a mapping"),
        (
            {"target": {"kind": "ConfigMap"}, "patch": [{"op": "test", "path": "/data/x", "value": "9"}]},
            "cannot be applied",
        ),
        (
            {"target": {"kind": "ConfigMap"}, "patch": [{"op": "add", "path": "/nowhere/x", "value": "9"}]},
            "cannot be applied",
        ),
        ({"target": {"kind": "ConfigMap"}, "patch": {"metadata": None}}, "makes ConfigMap n/a invalid"),
        ({"target": {"kind": "ConfigMap"}, "patch": {"kind": "Secret"}}, "it changes the kind"),
    ],
)
def test_patches_that_cannot_be_used(entry: t.Any, why: str) -> None:
    _result, faults = apply([entry])
    assert len(faults) == 1
    assert why in str(faults[0])


def test_a_patch_that_renames_onto_another_object_makes_a_duplicate() -> None:
    found, _faults = manifests.load([BODY, BODY | {"metadata": {"name": "b", "namespace": "n"}}])
    wishes, _wrong = patches.read(
        [{"target": {"kind": "ConfigMap", "name": "b"}, "patch": {"metadata": {"name": "a"}}}]
    )
    _result, faults = patches.apply_all(found, wishes)
    assert [fault.what for fault in faults] == ["ConfigMap n/a is defined 2 times"]


@given(json_values, json_values)
def test_merge_patch_follows_rfc_7396(target: t.Any, patch: t.Any) -> None:
    before = copy.deepcopy((target, patch))
    result = patches.merge(target, patch)
    assert (target, patch) == before
    if not isinstance(patch, dict):
        assert result == patch
        return
    base = target if isinstance(target, dict) else {}
    assert set(result) == {key for key in {**base, **patch} if key not in patch or patch[key] is not None}
    assert all(result[key] == base[key] for key in result if key not in patch)


@settings(max_examples=200)
@given(
    st.lists(
        json_values
        | st.fixed_dictionaries({"target": json_values | st.just({"kind": "ConfigMap"}), "patch": json_values}),
        max_size=3,
    )
)
def test_no_patch_raises(raw: t.Any) -> None:
    result, faults = apply(raw)
    assert len(result) == 1
    assert len(raw) == 0 or faults or result[0].body is not None


@pytest.mark.parametrize(
    "operation",
    [{"op": "test", "path": "/stringData/pin", "value": "x"}, {"op": "add", "path": "/nowhere/x", "value": "x"}],
)
def test_what_a_patch_finds_in_a_secret_is_not_shown(operation: dict[str, str]) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": "n"},
        "stringData": {"pin": "planted"},
    }
    wishes, _faults = patches.read([{"target": {"kind": "Secret"}, "patch": [operation]}])
    _result, faults = patches.apply_all(manifests.load([secret])[0], wishes)
    assert [fault.what for fault in faults] == ["a patch cannot be applied to Secret n/a"]
    assert "planted" not in str(faults[0])
