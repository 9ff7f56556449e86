# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules together."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import judge
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules.manifests import Manifests
from ansible_collections.hwaccel.gpu.tests.unit.live_mutations.rules import sets

MUTANTS = {mutant.id: mutant for mutant in rendered.all_mutants(sets.SOUND)}


@pytest.mark.parametrize("rule", judge.RULES, ids=lambda rule: f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}")
def test_no_rule_has_anything_to_say_of_our_manifests(rule: judge.Rule) -> None:
    assert list(rule(Manifests(sets.SOUND))) == []


def test_a_mutant_is_found_by_what_is_wrong_with_the_whole_set() -> None:
    found = MUTANTS["driver/RoleBinding/nvidia-validator/subjects/1/namespace changed"]
    assert "subjects[1].namespace" in judge.of_mutant(sets.SOUND, found)


def test_the_hash_of_a_mutated_configmap_tells_nothing() -> None:
    """The collection would have computed it from the mutated content."""
    found = MUTANTS["driver/ConfigMap/nvidia-validator-scripts/data/cuda.sh changed"]
    assert judge.of_mutant(sets.SOUND, found) == ""


def test_of_incomplete_objects_a_rule_says_nothing() -> None:
    objects = copy.deepcopy(sets.SOUND)
    del objects["driver"][0]["metadata"]
    assert isinstance(judge.judged(objects), list)
