# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field sets: parsing and unparsing are inverse, and set operations agree with the paths."""

from __future__ import annotations

import json
import typing as t

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets

FIELDS = {
    "f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"c"}': {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}}},
                    }
                }
            }
        },
    },
    "f:finalizers": {'v:"a/b"': {}},
}

elements = st.one_of(
    st.text(min_size=1, max_size=8).map(lambda name: f"f:{name}"),
    st.dictionaries(
        st.sampled_from(["name", "port"]), st.one_of(st.text(max_size=4), st.integers(), st.none()), min_size=1
    ).map(lambda keys: "k:" + json.dumps(keys, sort_keys=True, separators=(",", ":"))),
    st.text(max_size=4).map(lambda value: f"v:{json.dumps(value)}"),
    st.integers(0, 9).map(lambda index: f"i:{index}"),
)
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
sets = st.frozensets(paths, max_size=12)


def test_members_of_a_real_tree() -> None:
    members = fieldsets.parse(FIELDS)
    assert {fieldsets.text(path) for path in members} == {
        "metadata.labels.app.kubernetes.io/name",
        "spec.replicas",
        'spec.template.spec.containers[name="c"]',
        'spec.template.spec.containers[name="c"].name',
        'spec.template.spec.containers[name="c"].image',
        'spec.template.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]',
        'finalizers[="a/b"]',
    }


@given(sets)
def test_parse_undoes_unparse(members: fieldsets.FieldSet) -> None:
    assert fieldsets.parse(fieldsets.unparse(members)) == members


@given(sets, paths)
def test_contains_is_membership_of_the_path_or_of_something_above(
    members: fieldsets.FieldSet, path: fieldsets.Path
) -> None:
    assert fieldsets.contains(members, path) == any(path[: len(member)] == member for member in members)


@given(sets)
def test_topmost_covers_all_and_none_lies_below_another(members: fieldsets.FieldSet) -> None:
    top = fieldsets.topmost(members)
    assert set(top) <= members
    assert all(fieldsets.contains(frozenset(top), path) for path in members)
    assert not any(one != other and other[: len(one)] == one for one in top for other in top)


@settings(max_examples=200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    paths,
)
def test_paths_into_anything_find_a_value_or_none(value: t.Any, path: fieldsets.Path) -> None:
    fieldsets.value_at(value, path)
    assert isinstance(fieldsets.text(path), str)


def test_value_and_removal_by_path() -> None:
    obj = {"spec": {"containers": [{"name": "a"}, {"name": "c", "image": "x"}]}}
    path = ("f:spec", "f:containers", 'k:{"name":"c"}', "f:image")
    assert fieldsets.value_at(obj, path) == "x"
    assert fieldsets.without_path(obj, path)
    assert obj == {"spec": {"containers": [{"name": "a"}, {"name": "c"}]}}
    assert not fieldsets.without_path(obj, path)


def test_a_manager_owns_what_all_of_its_entries_say() -> None:
    entries = [
        {"manager": "us", "operation": "Apply", "fieldsV1": {"f:a": {}}},
        {"manager": "us", "operation": "Apply", "subresource": "scale", "fieldsV1": {"f:b": {}}},
        {"manager": "us", "operation": "Update", "fieldsV1": {"f:c": {}}},
        {"manager": "them", "operation": "Apply", "fieldsV1": {"f:d": {}}},
    ]
    assert fieldsets.of_object({"metadata": {"managedFields": entries}}, "us") == {("f:a",), ("f:b",)}
