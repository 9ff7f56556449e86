# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared types of the container engines."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content

#: Folder of staged files for the service's own checker.
STAGING = "/var/lib/hwaccel-gpu/node_runtime/staging"
HEADER = "# Written by the role hwaccel.gpu.node_runtime, which writes it anew: changes are lost.\n"


@dataclasses.dataclass(frozen=True)
class RuntimeSettings:
    """default: whether it is the default runtime. binary: path of nvidia-container-runtime. handler: its name, which the RuntimeClass refers to."""

    default: bool = False
    cdi: bool = True
    binary: str = "/usr/bin/nvidia-container-runtime"
    handler: str = "nvidia"


@dataclasses.dataclass(frozen=True)
class Check:
    """A command that validates a staged configuration before the service reads it."""

    name: str
    command: tuple[str, ...]

    def as_dict(self) -> dict[str, t.Any]:
        return {"name": self.name, "argv": list(self.command), "stdin": "", "environment": {}}


@dataclasses.dataclass
class Rendered:
    """Files of one engine. staged: only for `checks`. loaded: files in addition to `contents` that the service reads at its start.

    stale: what the service lacks if it was started before the runtime was installed.
    """

    contents: list[Content] = dataclasses.field(default_factory=list)
    absent: list[str] = dataclasses.field(default_factory=list)
    staged: list[Content] = dataclasses.field(default_factory=list)
    checks: list[Check] = dataclasses.field(default_factory=list)
    loaded: list[str] = dataclasses.field(default_factory=list)
    stale: str = ""
    messages: list[str] = dataclasses.field(default_factory=list)
    faults: list[Fault] = dataclasses.field(default_factory=list)
