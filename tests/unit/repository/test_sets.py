# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of manifest_set that every role offers as variables."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs.table import STAGES

TOP = pathlib.Path(__file__).resolve().parents[3]


def options(stage: str) -> dict[str, t.Any]:
    variables = yaml.safe_load((TOP / "roles" / stage / "vars" / "main.yml").read_text(encoding="utf-8"))
    found: dict[str, t.Any] = variables[f"__{stage}_apply"]
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_limits_are_variables_of_the_role_that_messages_name(stage: str) -> None:
    found = options(stage)
    for option in ("adopt", "max_prune"):
        assert found.get(option) == f"{{{{ {stage}_{option} }}}}"
        assert found.get("option_variables", {}).get(option) == f"{stage}_{option}"
    assert found["patches"] == f"{{{{ {stage}_patches }}}}"
