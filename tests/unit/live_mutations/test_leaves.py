# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutations of leaves."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import leaves
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import CHANGED, DROPPED, EMPTIED, OTHER, mutated

ITEM: dict[str, t.Any] = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "one"},
    "spec": {"count": 3, "on": True, "a/b": ["x", {"imagePullPolicy": "Never"}], "none": ""},
}


def of(item: dict[str, t.Any]) -> list[leaves.Mutant]:
    return leaves.mutants("role", [item], lambda found: str(found["metadata"]["name"]))


def test_every_leaf_has_all_its_mutations_in_the_order_of_the_object() -> None:
    found = [mutant.id.removeprefix("role/Thing/one") for mutant in of(ITEM) if mutant.path[0] == "spec"]
    assert found == [
        "/spec/count changed",
        "/spec/count dropped",
        "/spec/on changed",
        "/spec/on dropped",
        "/spec/a~1b/0 emptied",
        "/spec/a~1b/0 changed",
        "/spec/a~1b/0 dropped",
        "/spec/a~1b/1/imagePullPolicy emptied",
        "/spec/a~1b/1/imagePullPolicy changed",
        "/spec/a~1b/1/imagePullPolicy other",
        "/spec/a~1b/1/imagePullPolicy dropped",
        "/spec/a~1b/1 dropped",
        "/spec/a~1b dropped",
        "/spec/none changed",
        "/spec/none dropped",
        "/spec dropped",
    ]


def test_ids_are_unique_and_what_makes_an_object_an_object_is_not_dropped() -> None:
    found = of(ITEM)
    assert len({mutant.id for mutant in found}) == len(found)
    assert {mutant.path for mutant in found if mutant.change == DROPPED}.isdisjoint(
        {("apiVersion",), ("kind",), ("metadata",)}
    )


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        (("spec", "count"), CHANGED, 4),
        (("spec", "on"), CHANGED, False),
        (("spec", "a/b", 0), EMPTIED, ""),
        (("spec", "a/b", 1, "imagePullPolicy"), OTHER, "Always"),
    ],
)
def test_a_mutation_changes_one_leaf(path: leaves.Path, change: str, expected: t.Any) -> None:
    (mutant,) = [one for one in of(ITEM) if (one.path, one.change) == (path, change)]
    made = mutated(ITEM, mutant)
    assert leaves.at(made, path) == expected
    leaves.at(made, path[:-1])[path[-1]] = leaves.at(ITEM, path)
    assert made == ITEM


def test_a_dropped_element_leaves_the_others() -> None:
    (mutant,) = [one for one in of(ITEM) if one.path == ("spec", "a/b", 0) and one.change == DROPPED]
    assert mutated(ITEM, mutant)["spec"]["a/b"] == [{"imagePullPolicy": "Never"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/run/nvidia", "/run/nvidiax"),
        ("#!/bin/sh\n# why\nexit 1\n", "#!/bin/sh\n# why\nexit 1x\n"),
        ("a: 1\nb: 2\n", "a: 1x\nb: 2\n"),
        ("# only words\n# of comment\n", "# only words\n# of comment\nx"),
    ],
)
def test_a_text_is_changed_where_it_has_a_meaning(text: str, expected: str) -> None:
    assert leaves.changed(text) == expected


def test_a_seed_draws_the_same_sample_in_order() -> None:
    found = of(ITEM)
    drawn = leaves.sample(found, 5, 17)
    assert drawn == leaves.sample(found, 5, 17) == sorted(drawn, key=found.index)
    assert len(drawn) == 5
    assert leaves.sample(found, 5, 18) != drawn
    assert leaves.sample(found, 10**6, 17) == found
