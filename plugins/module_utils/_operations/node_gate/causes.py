# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details of a cause beyond the facts of a gate: events, and the tails of logs. Each needs a request."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import PodFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads import evidence

_TAIL_LINES = 20
_LONGEST_TAIL = 4000


def log_tail(client: Client, pod: PodFacts | None, container: str) -> str:
    """The last lines of a container, and of its previous run if it was restarted; "" without a container."""
    if pod is None or not container:
        return ""
    facts = next((item for item in (*pod.inits, *pod.containers) if item.name == container), None)
    texts = []
    for previous in (True, False) if facts is not None and facts.restarts else (False,):
        try:
            text = client.logs(pod.namespace, pod.name, container, previous=previous, tail_lines=_TAIL_LINES).strip()
        except HwaccelError as error:
            # The log of a previous run is often gone already. Any other error comes again with that of the present one.
            text = "" if previous else f"(no log: {error})"
        if text and text not in texts:
            texts.append(text)
    return evidence.masked("\n--- next run ---\n".join(texts))[-_LONGEST_TAIL:]


def event_of_pod(client: Client, pod: PodFacts) -> str:
    return evidence.event_of(client, pod.namespace, pod.uid)


def event_of_replica_sets(client: Client, deployment: str, namespace: str = "") -> str:
    """Why a Deployment has created no pod. The names of its ReplicaSets start with its own name."""
    return _latest_of(client, namespace, "ReplicaSet", lambda owner: str(owner.get("name")).startswith(deployment))


def _latest_of(client: Client, namespace: str, kind: str, fits: c.Callable[[dict[str, t.Any]], bool]) -> str:
    found = client.list(
        client.resource("v1", "Event"), namespace, field_selector=f"involvedObject.kind={kind},type=Warning"
    ).items
    return evidence.newest([event for event in found if fits(event.get("involvedObject") or {})])
