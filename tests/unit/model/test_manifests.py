# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests: any input becomes objects with a key, or faults with a location."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=10,
)
object_like = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["v1", "apps/v1", "", "a/b/c"]) | odd,
        "kind": st.sampled_from(["ConfigMap", "List", "ConfigMapList", "Node", "../x"]) | odd,
        "metadata": st.fixed_dictionaries(
            {}, optional={"name": st.sampled_from(["a", "..", "a/b", ""]) | odd, "namespace": odd, "labels": odd}
        )
        | odd,
        "items": st.lists(odd, max_size=2) | odd,
    },
)


@settings(max_examples=300, deadline=None)
@given(odd | object_like | st.lists(object_like | odd, max_size=3) | st.text(max_size=60))
def test_nothing_that_is_given_raises(definition: t.Any) -> None:
    found, faults = manifests.load(definition)
    for manifest in found:
        assert manifest.key == ObjectKey.of(manifest.body)
        assert "/" not in manifest.key.name
        assert manifest.key.name not in ("", ".", "..")
    for fault in faults:
        assert fault.what
        assert fault.where


def test_lists_are_taken_apart_and_typed_items_get_their_type() -> None:
    text = """
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n}}
  - apiVersion: v1
    kind: ConfigMapList
    items:
      - metadata: {name: b, namespace: n}
---
# nothing
---
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: n}}
"""
    found, faults = manifests.load(text)
    assert faults == []
    assert [manifest.key.name for manifest in found] == ["a", "b", "c"]
    assert {manifest.key.kind for manifest in found} == {"ConfigMap"}


def test_errors_tell_file_document_and_line() -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    found, faults = manifests.load(
        None, [("x.yml", f"{good}---\nkind: [\n"), ("y.yml", f"{good}---\napiVersion: v1\nkind: Secret\n")]
    )
    assert len(found) == 2
    told = [str(fault) for fault in faults]
    assert "x.yml, document 2, line 6" in told[0]
    assert "y.yml, document 2, line 5" in told[1]
    assert "defined 2 times" in told[2]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {day: 2024-01-01}", "it is a date"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {1: x}", "the key 1 is not a string"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: .inf}", "not a finite number"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}", "generateName would create another object"),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: a}", "a Node belongs to its kubelet"),
        ("a: &a [*a]", "aliases"),
        (
            "a: &a [x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]",
            "aliases",
        ),
    ],
)
def test_what_json_cannot_say_is_named(text: str, why: str) -> None:
    found, faults = manifests.load(text)
    assert found == []
    assert len(faults) == 1
    assert why in f"{faults[0].what} {faults[0].why}"


def test_duplicates_are_found_across_versions() -> None:
    body = {"kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}}
    _found, faults = manifests.load([body | {"apiVersion": "apps/v1"}, body | {"apiVersion": "apps/v1beta1"}])
    assert [fault.what for fault in faults] == ["Deployment n/a is defined 2 times"]
    assert "entry 1" in faults[0].where
    assert "entry 2" in faults[0].where


SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: n}, %s}"


@pytest.mark.parametrize(
    ("values", "whys"),
    [
        ("stringData: {pin: 48151623}", ["stringData.pin is a number"]),
        ("data: {pin: 48151623.5}", ["data.pin is a number"]),
        (
            "stringData: {a: x, b: yes, c: [48151623], d: {x: 48151623}}",
            [f"stringData.{what}" for what in ("b is a boolean", "c is a list", "d is a mapping")],
        ),
        ("data: [48151623]", ["data is a list"]),
        ("stringData: '48151623'", ["stringData is a string"]),
        ("data: 48151623, stringData: {pin: 48151623}", ["data is a number", "stringData.pin is a number"]),
    ],
)
@pytest.mark.parametrize("text", [SECRET, f"{{apiVersion: v1, kind: List, items: [{SECRET}]}}", f"[{SECRET}]"])
def test_values_of_a_secret_that_are_no_text_are_named_but_not_shown(text: str, values: str, whys: list[str]) -> None:
    _found, faults = manifests.load(text % values)
    assert len(faults) == len(whys)
    for fault, why in zip(faults, whys, strict=True):
        assert "Secret n/s" in fault.what
        assert "document 1" in fault.where
        assert fault.why.startswith(why)
        assert fault.next_step
        assert "48151623" not in str(fault)


def test_items_of_a_secret_list_are_secrets() -> None:
    _found, faults = manifests.load(
        "{apiVersion: v1, kind: SecretList, items: [{metadata: {name: s}, stringData: {pin: 48151623}}]}"
    )
    assert [fault.what for fault in faults] == ["Secret s has a value that is not a string"]


@pytest.mark.parametrize(
    ("api_version", "kind", "body", "wrong"),
    [
        ("v1", "ConfigMap", {"data": {"port": 80}}, True),
        ("v1", "ConfigMap", {"data": {"port": "80", "empty": None}, "binaryData": None}, False),
        ("v1", "Secret", {"data": None, "stringData": {"empty": None, "a": ""}}, False),
        ("example.com/v1", "Secret", {"data": {"port": 80}}, False),
        ("v1", "Service", {"data": {"port": 80}}, False),
    ],
)
def test_only_what_the_server_would_refuse_is_a_fault(
    api_version: str, kind: str, body: dict[str, t.Any], wrong: bool
) -> None:
    _found, faults = manifests.load({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **body})
    assert bool(faults) is wrong
