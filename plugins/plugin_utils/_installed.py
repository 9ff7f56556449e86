# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which collections are installed on the controller. Private to the collection: it can change in any release."""

from __future__ import annotations

import importlib.util


def installed(*collections: str) -> list[str]:
    """Those that are there."""
    return [name for name in collections if _is_there(name)]


def _is_there(collection: str) -> bool:
    try:
        return importlib.util.find_spec(f"ansible_collections.{collection}.plugins") is not None
    except ModuleNotFoundError:
        return False
