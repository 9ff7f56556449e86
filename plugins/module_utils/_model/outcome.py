# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a module, independent of Ansible."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError


@dataclasses.dataclass
class Outcome:
    """What an operation observed and did."""

    changed: bool = False
    values: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)
    #: [{before, after, before_header, after_header}], with secrets already removed.
    diff: list[dict[str, t.Any]] | None = None
    #: The task fails, and returns the values nevertheless.
    failure: HwaccelError | None = None
    #: State for the next slice, which gets it as `resume`, if the operation is not finished. Plain JSON.
    pending: dict[str, t.Any] | None = None
    #: Lines for the action plugin to print, without the host's name.
    progress: list[str] = dataclasses.field(default_factory=list)
