# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""as_list: answers of surveys are texts, and some of them contain lists."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hwaccel.gpu.plugins.filter.as_list import as_list


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", []),
        (" \n", []),
        ("[]", []),
        ("one", ["one"]),
        ("one, two,three", ["one", "two", "three"]),
        ("one\ntwo\n", ["one", "two"]),
        ('["one", "two"]', ["one", "two"]),
        ("[one, two]", ["one", "two"]),
        ("- one\n- two", ["one", "two"]),
        (' [{"name": "a", "gpu": null}]', [{"name": "a", "gpu": None}]),
        (["one"], ["one"]),
        ({"a": 1}, {"a": 1}),
        (None, None),
    ],
)
def test_texts_become_lists_and_other_values_stay(given: t.Any, expected: t.Any) -> None:
    assert as_list(given) == expected


@pytest.mark.parametrize("given", ['["one", ', "[one]: two", "- one\n two: [\n"])
def test_an_invalid_list_is_reported(given: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"neither JSON nor YAML.*Next: correct it"):
        as_list(given)
