# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelled variables are reported with the one that is meant, and variables of other projects are not."""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _misspelled, _variables

HERE = pathlib.Path(__file__).parent
TOP = HERE.parents[2]
TYPED: dict[str, str] = yaml.safe_load((HERE / "misspelled.yml").read_text(encoding="utf-8"))
FOREIGN: dict[str, str] = yaml.safe_load((HERE / "foreign_variables.yml").read_text(encoding="utf-8"))


def unknown(names: c.Iterable[str]) -> dict[str, str]:
    return _misspelled.unknown(names, _variables.public(), _variables.options())


def test_nearly_every_misspelled_name_is_reported_with_the_one_that_is_meant() -> None:
    assert len(TYPED) >= 60
    assert set(TYPED.values()) <= _variables.public()
    found = unknown(TYPED)
    # All are reported. The names that these were probably meant to be share fewer letters with them than others do.
    assert found.keys() == TYPED.keys()
    assert {name for name, meant in TYPED.items() if found[name] != meant} == {
        "hwaccel_conn",
        "hwaccel_mac_address",
        "hwaccel_node_pools",
        "hwaccel_vm_ram",
    }


@pytest.mark.parametrize("project", FOREIGN)
def test_no_variable_of_another_project_is_reported(project: str) -> None:
    names = FOREIGN[project].split()
    assert len(names) > 10
    assert unknown(names) == {}


def keys(value: t.Any) -> c.Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


def test_no_name_in_our_examples_is_reported() -> None:
    paths = sorted((TOP / "examples").rglob("*.yml"))
    assert len(paths) > 3
    for path in paths:
        names = {name for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) for name in keys(document)}
        assert unknown(names - _variables.facts()) == {}, path


@pytest.mark.parametrize(
    ("name", "meant"),
    [("hwaccel_zzz", ""), ("hwaccel_pools", None), ("driver_firmware_of_the_vendor", None), ("ansible_hwaccel", None)],
)
def test_a_name_with_our_own_prefix_is_always_reported(name: str, meant: str | None) -> None:
    assert unknown([name]).get(name) == meant
