# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of manifest_set that every role offers as variables."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
INSTALLS = sorted(
    path for path in (TOP / "roles").glob("*/tasks/install.yml") if "manifest_set" in path.read_text(encoding="utf-8")
)


def set_of(path: pathlib.Path) -> dict[str, t.Any]:
    tasks = yaml.safe_load(path.read_text(encoding="utf-8"))
    return next(task["hwaccel.gpu.manifest_set"] for task in tasks if "hwaccel.gpu.manifest_set" in task)


def test_there_are_installs() -> None:
    assert len(INSTALLS) >= 3


@pytest.mark.parametrize("path", INSTALLS, ids=lambda path: path.parts[-3])
def test_limits_are_variables_of_the_role_that_messages_name(path: pathlib.Path) -> None:
    role, options = path.parts[-3], set_of(path)
    for option in ("adopt", "max_prune"):
        assert options.get(option) == f"{{{{ {role}_{option} }}}}"
        assert options.get("option_variables", {}).get(option) == f"{role}_{option}"
    assert options["patches"] == f"{{{{ {role}_patches }}}}"
