# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions for tasks of the role load_balancer: texts and plain data in, plain data out. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import (
    machine,
    places,
    plan,
    verdict,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import (
    request as asking,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import (
    restored as restoring,
)

_Data = c.Mapping[str, t.Any]


def requested(settings: _Data) -> host.Request:
    """As request.request documents it."""
    return asking.request(settings)


def planned(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As plan.plan documents it."""
    return plan.plan(machine.read(printed), settings)


def restored(printed: str, settings: _Data) -> dict[str, t.Any]:
    """As restored.restored documents it."""
    return restoring.restored(machine.read(printed))


def judged(
    printed: str, settings: _Data, results: c.Mapping[str, _Data], staged: c.Mapping[str, str]
) -> dict[str, t.Any]:
    """Problems that HAProxy reports in the desired configuration. results: of `haproxy -c`, by the name haproxy. staged: see plan.plan."""
    result = results["haproxy"]
    said = f"{result.get('stdout', '')}\n{result.get('stderr', '')}".strip() or str(result.get("msg", ""))
    found = verdict.faults(staged[places.STDIN], int(result.get("rc", 1)), said)
    return {"faults": [fault.as_dict() for fault in found], "messages": []}
