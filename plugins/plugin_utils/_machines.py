# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters of host roles share: lines of a look at a machine, and settings as variables have them."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils import _computing as computing
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import host


def computed(
    name: str, compute: t.Callable[..., dict[str, t.Any]], lines: list[str], *given: t.Any
) -> dict[str, t.Any]:
    """What compute makes of the machine and what else was given. name: the filter.

    Raises AnsibleFilterError for lines that look.sh has not written to their end, and with the sentences of a HwaccelError.
    """
    return t.cast("dict[str, t.Any]", computing.computed(name, lambda: compute(host.read(lines), *given)))
