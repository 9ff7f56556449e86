# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phrases that several messages share. Pure."""

from __future__ import annotations

import collections.abc as c


def some(names: c.Iterable[str], most: int = 3) -> str:
    """The first names in order, and the number of the others: "gpu-1, gpu-2, gpu-3 and 9 more"."""
    listed = sorted(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def table(header: c.Sequence[str], rows: c.Iterable[c.Sequence[str]]) -> list[str]:
    """Lines of a table for a terminal: the header, a rule below it and the rows, each column as wide as its widest cell."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
