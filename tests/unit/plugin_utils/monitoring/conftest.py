# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""promtool, which checks and tests rules of Prometheus."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import typing as t

import pytest
import yaml


@pytest.fixture
def promtool(tmp_path: pathlib.Path) -> t.Callable[..., str]:
    """Runs promtool on these rules and tests. Returns its output if it fails, else an empty text."""
    found = shutil.which("promtool")
    if not found:
        pytest.skip("promtool is not on PATH: Debian's package prometheus has it")

    def run(verb: str, groups: list[dict[str, t.Any]], *tests: dict[str, t.Any]) -> str:
        (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
        (tmp_path / "tests.yml").write_text(
            yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": list(tests)}),
            encoding="utf-8",
        )
        command = [found, verb, "rules", {"check": "rules.yml", "test": "tests.yml"}[verb]]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
        )
        return done.stdout if done.returncode else ""

    return run
