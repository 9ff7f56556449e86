# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions that a wave must wait for before the next one can start."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.steps import Step
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import objects

_ESTABLISHED_SECONDS = 30.0
_PAUSE = 0.2


def await_established(client: Client, clock: Clock, crds: c.Sequence[Step]) -> list[Fault]:
    """Errors of the CRDs that are not served within half a minute."""
    end = clock.monotonic() + _ESTABLISHED_SECONDS
    pending = list(crds)
    faults: list[Fault] = []
    while pending:
        lagging = []
        for step in pending:
            try:
                verdict = objects.crd(client.get(step.resource, step.key.name))
            except NotFound:
                lagging.append((step, "it was deleted"))
                continue
            if verdict.failed:
                faults.append(
                    Fault(
                        f"{step.key.short} is not served",
                        step.member.origin if step.member else "",
                        verdict.reason,
                        "rename its kind or plural",
                    )
                )
            elif not verdict.ready:
                lagging.append((step, verdict.reason))
        pending = [step for step, _reason in lagging]
        if pending and clock.monotonic() >= end:
            step_on = "check the API server, and run again"
            return faults + [
                Fault(f"{step.key.short} is not established after 30 s", "", reason, step_on)
                for step, reason in lagging
            ]
        if pending:
            clock.sleep(_PAUSE)
    return faults


def services_lagging(client: Client, bodies: c.Sequence[dict[str, t.Any]]) -> list[str]:
    """Services behind APIServices and webhooks that have no ready endpoint."""
    services = sorted({service for body in bodies for service in _services(body)})
    if not services:
        return []
    resource = client.resource("discovery.k8s.io/v1", "EndpointSlice")
    lagging = []
    for namespace, name in services:
        slices = client.list(resource, namespace, label_selector=f"kubernetes.io/service-name={name}").items
        if not objects.endpoints_ready(slices):
            lagging.append(f"Service {namespace}/{name}")
    return lagging


def _services(body: dict[str, t.Any]) -> c.Iterator[tuple[str, str]]:
    """Services that receive requests because of this object."""
    hooks = body.get("webhooks")
    referrers = (
        [hook.get("clientConfig") for hook in hooks if isinstance(hook, dict)]
        if isinstance(hooks, list)
        else [body.get("spec")]
    )
    for referrer in referrers:
        service = referrer.get("service") if isinstance(referrer, dict) else None
        if isinstance(service, dict) and service.get("name"):
            yield str(service.get("namespace") or "default"), str(service["name"])
