# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The joined result of all slices of a task."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._slices import Slices, without_internal


def test_results_of_slices_are_joined() -> None:
    slices = Slices()
    slices.add(
        {
            "changed": True,
            "pending": {"a": 1},
            "progress": ["one\nline"],
            "warnings": ["w"],
            "diff": {"before": "1"},
            "only": "first",
        }
    )
    assert slices.pending == {"a": 1}
    assert slices.progress == ["one line"]
    slices.add(
        {
            "changed": False,
            "warnings": ["w", "v"],
            "diff": [{"before": "2"}],
            "invocation": {"module_args": {"wait_slice": 10, "name": "x"}},
        }
    )
    assert slices.pending is None
    assert slices.result() == {
        "changed": True,
        "warnings": ["w", "v"],
        "diff": [{"before": "1"}, {"before": "2"}],
        "invocation": {"module_args": {"name": "x"}},
    }


def test_a_failed_slice_is_the_last_even_if_it_is_pending() -> None:
    for end in ({"failed": True}, {"unreachable": True}):
        slices = Slices()
        slices.add({"pending": {"a": 1}, **end})
        assert slices.pending is None


def test_an_empty_state_is_pending() -> None:
    slices = Slices()
    slices.add({"pending": {}})
    assert slices.pending == {}


def test_internal_options_are_removed() -> None:
    assert without_internal({"name": "x", "wait_resume": {}, "wait_slice": 1}) == {"name": "x"}


def test_the_last_slice_does_not_repeat_the_previous_progress() -> None:
    slices = Slices()
    slices.add({"pending": {}, "progress": ["2 of 3"]})
    assert slices.progress == ["2 of 3"]
    slices.add({"pending": {}, "progress": ["2 of 3"]})
    assert slices.progress == ["2 of 3"], "an intermediate slice repeats its progress"
    slices.add({"pending": {}})
    slices.add({"failed": True, "progress": ["2 of 3", "2 of 3, 1 failed"]})
    assert slices.progress == ["2 of 3, 1 failed"]


def test_a_run_with_nothing_to_change_and_to_wait_for_is_no_news() -> None:
    for result, news in (
        ({"progress": ["done"]}, False),
        ({"progress": ["done"], "changed": True}, True),
        ({"progress": ["done"], "failed": True}, True),
        ({"progress": ["waiting"], "pending": {}}, True),
    ):
        slices = Slices()
        slices.add(result)
        assert slices.is_news is news
    slices = Slices()
    for result in ({"progress": ["waiting"], "pending": {}}, {"progress": ["done"]}):
        slices.add(result)
        shown = slices.progress
    assert (slices.is_news, shown) == (True, ["done"])
