# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of survivors."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered, survivors
from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import CAUGHT, SURVIVES, Outcome

MUTANTS = rendered.all_mutants(rendered.everything())
TEXT = """# words
reason people Labels for people; source.go
driver/ConfigMap/x/metadata/labels/a b emptied,changed people
"""


def test_a_line_is_a_leaf_with_its_changes_and_its_reason() -> None:
    found = survivors.read(TEXT)
    assert found.reasons == {"people": "Labels for people; source.go"}
    assert found.leaves == {
        "driver/ConfigMap/x/metadata/labels/a b emptied": "people",
        "driver/ConfigMap/x/metadata/labels/a b changed": "people",
    }


def test_a_line_needs_a_known_reason() -> None:
    with pytest.raises(ValueError, match="reason others is unknown"):
        survivors.read(TEXT.replace("changed people", "changed others"))


def test_survivors_without_a_line_and_lines_without_a_survivor_are_reported() -> None:
    one, other = MUTANTS[:2]
    listed = survivors.Listed({"why": "because"}, {one.id: "why"})
    assert survivors.unlisted([Outcome(one, SURVIVES), Outcome(other, SURVIVES)], listed) == [other.id]
    assert survivors.mistaken([Outcome(one, CAUGHT), Outcome(other, CAUGHT)], listed) == [one.id]


def test_the_list_names_mutants_that_exist_and_sources() -> None:
    listed = survivors.read(survivors.LIST.read_text(encoding="utf-8"))
    assert sorted(listed.leaves.keys() - {mutant.id for mutant in MUTANTS}) == []
    assert set(listed.reasons) == {survivors.SIMULATOR, *listed.leaves.values()}


def test_the_list_is_short_and_the_simulator_notices_nearly_all() -> None:
    """At most 5 % of the mutants, of which two at most are the simulator's to notice."""
    reasons = [*survivors.read(survivors.LIST.read_text(encoding="utf-8")).leaves.values()]
    assert len(reasons) <= 0.05 * len(MUTANTS)
    assert reasons.count(survivors.SIMULATOR) <= 2
