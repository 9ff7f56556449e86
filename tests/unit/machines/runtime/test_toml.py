# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML that is written from data, and changed as text."""

from __future__ import annotations

import random
import tomllib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import toml
from ansible_collections.hwaccel.gpu.tests.unit.machines.runtime.machines import EDITED, lines_added

PATH = "/etc/containerd/conf.d/99-hwaccel-gpu.toml"
WORDS = ("a", "b c", 'd"e', "f.g", "h\\i", "é\n", "\x7f", "")


def any_value(chance: random.Random, depth: int) -> t.Any:
    kind = chance.randrange(7 if depth else 5)
    if kind == 5:
        return {
            f"{chance.choice(WORDS)}{number}": any_value(chance, depth - 1) for number in range(chance.randrange(4))
        }
    if kind == 6:
        return [any_value(chance, depth - 1) for _item in range(chance.randrange(3))]
    return [
        chance.choice(WORDS),
        chance.randrange(-(2**62), 2**62),
        chance.random() * 1e9,
        chance.random() < 0.5,
        float("inf"),
    ][kind]


@pytest.mark.parametrize("seed", range(200))
def test_written_data_can_be_read_again(seed: int) -> None:
    chance = random.Random(seed)
    data = {f"k{number}": any_value(chance, 4) for number in range(5)}
    assert tomllib.loads(toml.dump(data)) == data


@pytest.mark.parametrize(
    ("before", "added"),
    [
        (EDITED, f'imports = ["{PATH}"]\n'),
        ("version = 2\r\n# c\r\n", f'imports = ["{PATH}"]\r\n'),
        ("root = '/r'\n[a]\nb = 1\n", f'imports = ["{PATH}"]\n'),
    ],
)
def test_one_line_is_added_to_a_file_without_imports(before: str, added: str) -> None:
    after = toml.with_import(before, PATH, 2, "f")
    assert lines_added(before, after) == [added]
    assert toml.without_import(after, PATH) == before
    assert toml.with_import(after, PATH, 2, "f") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("imports = []\n", f'imports = ["{PATH}"]\n'),
        ("imports = ['/a'] # c\n", f"imports = ['/a', \"{PATH}\"] # c\n"),
        (
            'version = 2\nimports = [\n  "/a", # "no" ]\n  "/b",\n]\n[x]\n',
            f'version = 2\nimports = [\n  "/a", # "no" ]\n  "/b", "{PATH}",\n]\n[x]\n',
        ),
    ],
)
def test_an_existing_list_of_imports_is_extended(before: str, after: str) -> None:
    assert toml.with_import(before, PATH, 2, "f") == after
    assert tomllib.loads(toml.without_import(after, PATH)).get("imports", []) == tomllib.loads(before)["imports"]


def test_a_version_without_a_line_end_and_an_empty_file() -> None:
    assert toml.with_import("version = 2", PATH, 2, "f") == f'version = 2\nimports = ["{PATH}"]\n'
    assert toml.with_import("# only words\n", PATH, 3, "f") == f'version = 3\nimports = ["{PATH}"]\n# only words\n'


@pytest.mark.parametrize("text", ['"imports" = ["/a"]\n', 'a = """\nversion = 2\n"""\n[t]\n'])
def test_a_file_that_cannot_be_changed_as_text_is_reported(text: str) -> None:
    with pytest.raises(HwaccelError, match=r"Next: add .* to it manually"):
        toml.with_import(text, PATH, 2, "f")


def test_a_file_that_is_not_toml_is_reported_with_the_position() -> None:
    with pytest.raises(HwaccelError, match=r"not TOML \(/etc/x\): .*(line 1|end of document)"):
        toml.parse("a = [", "/etc/x")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[t]\nmode = "cdi"\n'),
        ("[a]\nb = 1", '[a]\nb = 1\n[t]\nmode = "cdi"\n'),
        (
            '# c\n[t]\nlog = 1\n  mode = "auto"  # which\n[u]\nmode = "x"\n',
            '# c\n[t]\nlog = 1\n  mode = "cdi"  # which\n[u]\nmode = "x"\n',
        ),
        ("[t]\nlog = 1\n[t.u]\nmode = 1\n", '[t]\nmode = "cdi"\nlog = 1\n[t.u]\nmode = 1\n'),
        ('[t]\nmode = "cdi"\n', '[t]\nmode = "cdi"\n'),
    ],
)
def test_one_value_is_set_and_the_rest_is_kept(before: str, after: str) -> None:
    assert toml.with_value(before, "t", "mode", "cdi", "f") == after
    assert tomllib.loads(after)["t"]["mode"] == "cdi"


def test_an_existing_value_does_not_change_the_file() -> None:
    text = "# mine\n[t]\n mode='cdi'   # as before\n"
    assert toml.with_value(text, "t", "mode", "cdi", "f") == text
