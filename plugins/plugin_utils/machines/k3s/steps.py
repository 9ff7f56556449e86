# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rotations of K3s share: results in plain data, and steps. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some

RESTART = "restart"
NOTHING: dict[str, t.Any] = {
    "faults": [],
    "lines": [],
    "old": "",
    "owner": "",
    "begins": [],
    "steps": [],
    "acts": False,
    "changes": [],
}


def refused(faults: c.Iterable[Fault]) -> dict[str, t.Any]:
    return {**NOTHING, "faults": [fault.as_dict() for fault in faults]}


def step(do: str, hosts: c.Sequence[str], text: str) -> dict[str, t.Any]:
    """text: with {} for the hosts."""
    return {"do": do, "hosts": list(hosts), "text": text.format(some(hosts))}
