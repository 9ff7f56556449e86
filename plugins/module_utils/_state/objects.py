# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness of all objects that are not workloads."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._state import expressions
from ansible_collections.hwaccel.gpu.plugins.module_utils._state.verdicts import (
    READY,
    Verdict,
    broken,
    condition,
    message,
    waiting,
)

Obj = c.Mapping[str, t.Any]


def claim(obj: Obj) -> Verdict:
    phase = (obj.get("status") or {}).get("phase")
    if phase == "Bound":
        return READY
    if phase == "Lost":
        return broken("its volume is lost")
    return waiting(f"it is {phase or 'without status'}")


def crd(obj: Obj) -> Verdict:
    names = condition(obj, "NamesAccepted")
    if names.get("status") == "False":
        return broken(message(names, "its names are already in use"))
    established = condition(obj, "Established")
    return READY if established.get("status") == "True" else waiting(message(established, "it is not established yet"))


def api_service(obj: Obj) -> Verdict:
    available = condition(obj, "Available")
    return READY if available.get("status") == "True" else waiting(message(available, "it is not available yet"))


def node(obj: Obj) -> Verdict:
    ready = condition(obj, "Ready")
    return READY if ready.get("status") == "True" else waiting(message(ready, "it has not reported yet"))


def namespace(obj: Obj) -> Verdict:
    if (obj.get("status") or {}).get("phase") == "Terminating" or (obj.get("metadata") or {}).get("deletionTimestamp"):
        return waiting("it is being deleted")
    return READY


def service(obj: Obj) -> Verdict:
    spec = obj.get("spec") or {}
    if spec.get("type") == "LoadBalancer" and not ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        return waiting("its load balancer has no address yet")
    return READY


def endpoints_ready(slices: c.Iterable[Obj]) -> bool:
    """Whether a Service has at least one ready endpoint; an unknown readiness counts as ready (as defined by the API)."""
    for entry in slices:
        for endpoint in entry.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                return True
    return False


def custom(obj: Obj, expression: str) -> Verdict:
    """Readiness of a custom resource by a JMESPath expression that must yield something true."""
    result, fault = expressions.evaluate(expression, obj)
    if fault:
        return waiting(fault)
    if result is True or (result and result not in ("False", "false", "Unknown")):
        return READY
    return waiting(f"{expression} is {_short(result)}")


def _short(value: t.Any) -> str:
    return "not set yet" if value is None else f"{value!r:.80}"
