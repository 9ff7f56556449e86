# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds collections that are installed on the controller."""

from __future__ import annotations

import importlib.util
import json
import pathlib


def installed(*collections: str) -> list[str]:
    """The installed ones of these collections."""
    return [name for name in collections if _folders(f"{name}.plugins")]


def version(collection: str) -> str:
    """Version of a collection, empty if it is not installed or its version is unknown."""
    for folder in _folders(collection):
        if (manifest := pathlib.Path(folder) / "MANIFEST.json").is_file():
            return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return ""


def _folders(package: str) -> list[str]:
    try:
        found = importlib.util.find_spec(f"ansible_collections.{package}")
    except ModuleNotFoundError:
        # No collection of its namespace is installed.
        return []
    return list(found.submodule_search_locations or ()) if found else []
