# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module sandbox before a start: all problems are reported at once, and nothing is changed."""

from __future__ import annotations

import importlib.util
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.sandbox import run, settings_of

SOURCES = pathlib.Path(__file__).parents[3] / "roles" / "sandbox" / "files"


#: A fleet with a fault, and the expected message.
WRONG, MESSAGE = {"pools": [{"name": "a", "count": "many"}]}, "'many' is not a whole number from 0 to 20000"
MISSING = "the sandbox needs cryptography urllib3 PyYAML"


def faults(folder: pathlib.Path, *, check_mode: bool, **options: t.Any) -> list[str]:
    params = {
        "state": "started",
        "name": "unit",
        "state_dir": str(folder / "state"),
        "sources": str(SOURCES),
        "component_sources": ["cache"],
        **options,
    }
    try:
        failure = run(settings_of(params), check_mode=check_mode, deadline=None, resume={}).failure
    except HwaccelError as error:
        failure = error
    assert failure is not None
    assert not (folder / "state").exists()
    return [fault.what for fault in failure.faults]


def test_check_mode_reports_all_problems_at_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = faults(tmp_path, check_mode=True, fleet=WRONG, components=str(tmp_path / "none"))
    assert found == [MESSAGE, MISSING, "the folder of the components does not exist"]


def test_a_start_reports_known_problems_before_it_gets_components(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert faults(tmp_path, check_mode=False, fleet=WRONG) == [MESSAGE, MISSING]


def test_check_mode_reports_that_components_are_not_available(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("HWACCEL_COMPONENTS", raising=False)
    monkeypatch.delenv("HWACCEL_COMPONENT_SOURCES", raising=False)
    assert faults(tmp_path, check_mode=True)[1:] == [
        "the cache has no components",
        "the source release is not allowed",
        "the source build is not allowed",
    ]
