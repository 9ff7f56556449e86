# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of sentences that several messages share. Pure. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c


def some(names: c.Iterable[str], most: int = 3) -> str:
    """The first names in order, and how many more there are: "gpu-1, gpu-2, gpu-3 and 9 more"."""
    listed = sorted(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
