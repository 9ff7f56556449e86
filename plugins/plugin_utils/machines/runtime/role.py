# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for tasks of the role node_runtime: texts and plain data in, plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Command
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import request as asking

_Data = c.Mapping[str, t.Any]


def requested(settings: _Data) -> host.Request:
    """As request.request documents it."""
    return asking.request(settings)


def planned(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As plan.plan documents it."""
    return plan.plan(host.read(printed), settings)


def restored(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As plan.restored documents it."""
    return plan.restored(host.read(printed), settings)


def judged(
    printed: str, settings: _Data, results: c.Mapping[str, _Data], staged: c.Mapping[str, str]
) -> dict[str, t.Any]:
    """See plan.checked. results: of the module command, by the name of the check."""
    given = {name: Command.of(one) for name, one in results.items()}
    return plan.checked(host.read(printed), settings, given)
