# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault has a next step. Calls without one are found in the source, so that no test has to provoke each fault."""

from __future__ import annotations

import ast
import pathlib

import pytest

PLUGINS = pathlib.Path(__file__).resolve().parents[3] / "plugins"
KINDS = ("Fault", "HwaccelError", "NoDriverImage")
POSITION = 3


def without_next_step(source: str) -> list[int]:
    """Lines of calls whose fourth argument, or next_step, is missing or an empty text. Unpacked arguments (*, **) count as given."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in KINDS:
            continue
        passed_on = any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        )
        given = [
            *node.args[POSITION : POSITION + 1],
            *(keyword.value for keyword in node.keywords if keyword.arg == "next_step"),
        ]
        if not passed_on and not any(not isinstance(value, ast.Constant) or value.value for value in given):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("Fault('what')", [1]),
        ("HwaccelError('what', 'where', 'why')", [1]),
        ("Fault('what', '', '', '')", [1]),
        ("Fault('what', next_step='')", [1]),
        ("Fault('what', next_step='do')", []),
        ("Fault('what', '', '', step)", []),
        ("Fault(*arguments)", []),
        ("other('what')", []),
    ],
)
def test_what_counts_as_a_next_step(call: str, lines: list[int]) -> None:
    assert without_next_step(call) == lines


def test_every_fault_has_a_next_step() -> None:
    files = sorted(PLUGINS.rglob("*.py"))
    assert len(files) > 50
    assert [
        f"{path.relative_to(PLUGINS)}:{line}"
        for path in files
        for line in without_next_step(path.read_text(encoding="utf-8"))
    ] == []
