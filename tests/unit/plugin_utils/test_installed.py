# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detection of installed collections and their versions, without a traceback."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils._installed import installed, version


def test_installed_collections_are_found_and_missing_ones_are_no_error() -> None:
    assert installed("hwaccel.nothing", "hwaccel.gpu", "missing.nothing") == ["hwaccel.gpu"]


def test_a_collection_that_is_not_installed_has_no_version() -> None:
    assert version("missing.anything") == ""
    assert version("hwaccel.anything") == ""


def test_the_version_of_a_collection_is_that_of_its_manifest(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ansible_collections" / "vendor" / "tools"
    folder.mkdir(parents=True)
    (folder / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": "1.2.3"}}), encoding="utf-8")
    parent = sys.modules["ansible_collections"]
    monkeypatch.setattr(parent, "__path__", [*parent.__path__, str(tmp_path / "ansible_collections")])
    assert version("vendor.tools") == "1.2.3"
