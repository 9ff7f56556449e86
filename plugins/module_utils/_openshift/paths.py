# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths on a machine, as Ignition takes them. Pure."""

from __future__ import annotations

import collections.abc as c
import posixpath

#: Bytes, with the end, that Linux takes (limits.h, PATH_MAX).
_LONGEST = 4096


def fault(path: str) -> str:
    """Why a path is refused, "" if it is not."""
    if len(path.encode("utf-8", "replace")) >= _LONGEST:
        return f"it has {_LONGEST} bytes or more"
    if "\0" in path:
        return "it has a null character"
    if not path.startswith("/"):
        return "it is not absolute"
    # normpath keeps two slashes at the start.
    return "" if posixpath.normpath(path) == path and not path.startswith("//") else "it is not in its shortest form"


def folders(path: str) -> c.Iterator[str]:
    """Those above a path without a fault, the nearest one first."""
    while path.strip("/") and not fault(path):
        path = posixpath.dirname(path)
        yield path
