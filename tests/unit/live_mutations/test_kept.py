# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outcomes of interrupted runs."""

from __future__ import annotations

import pathlib

from ansible_collections.hwaccel.gpu.tests.live.mutations import kept, rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import CAUGHT, SURVIVES, Outcome

MUTANTS = rendered.all_mutants(rendered.everything())[:3]


def test_an_interrupted_run_leaves_what_it_has_finished(tmp_path: pathlib.Path) -> None:
    found = [Outcome(MUTANTS[0], CAUGHT, True, "devices", "text\nof two lines"), Outcome(MUTANTS[1], SURVIVES)]
    one = kept.Kept(tmp_path)
    assert one.read(MUTANTS) == []
    for outcome in found:
        one.add(outcome)
    with one.path.open("a", encoding="utf-8") as stream:
        stream.write('{"id": "unfinished')
    assert kept.Kept(tmp_path).read(MUTANTS) == found
    assert kept.Kept(tmp_path).read(MUTANTS[:1]) == found[:1]


def test_another_source_is_another_file_and_the_list_is_no_source(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "tests" / "live" / "mutations"
    folder.mkdir(parents=True)
    first = kept.digest(tmp_path)
    (folder / "survivors.txt").write_text("more")
    assert kept.digest(tmp_path) == first
    (folder / "lanes.py").write_text("more")
    assert kept.digest(tmp_path) != first
