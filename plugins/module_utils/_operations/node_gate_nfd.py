# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nfd-master says of itself, where nodes get no labels though their workers do their part.

It runs once for the cluster, in a namespace of its own, so no node's pods tell. Private to the collection: it can change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import trouble
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import PodFacts, reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

#: NFD's own manifests, ours, and its Helm chart.
_SELECTORS = ("app=nfd-master", "app.kubernetes.io/name=node-feature-discovery,role=master")
_TAIL_LINES = 20


def master(client: Client) -> tuple[str, str]:
    """(what is wrong with nfd-master, the tail of its log)."""
    try:
        pod = _pod(client)
        if pod is None:
            return f"no pod of nfd-master is in the cluster{_event(client)}", ""
        found = trouble.of_pod(pod)
        return f"nfd-master: {found.reason if found else 'it runs' if pod.ready else 'it is not ready'}", _log(client, pod)
    except HwaccelError as error:
        return f"nfd-master could not be asked: {error}", ""


def _pod(client: Client) -> PodFacts | None:
    resource = client.resource("v1", "Pod")
    for selector in _SELECTORS:
        found = [pod for pod in map(reduce_pod, client.list(resource, label_selector=selector).items) if pod.role == parts.NFD_MASTER]
        if found:
            return max(found, key=lambda pod: (not pod.ready, pod.created))
    return None


def _event(client: Client) -> str:
    """Why its Deployment has made no pod."""
    events = client.list(client.resource("v1", "Event"), field_selector="involvedObject.kind=ReplicaSet,type=Warning").items
    told = [event for event in events if "nfd-master" in str((event.get("involvedObject") or {}).get("name"))]
    return f": {' '.join(str(told[-1].get('message')).split())[:400]}" if told else ""


def _log(client: Client, pod: PodFacts) -> str:
    container: t.Any = pod.containers[0] if pod.containers else None
    if container is None:
        return ""
    texts = []
    for previous in (True, False) if container.restarts else (False,):
        try:
            texts.append(client.logs(pod.namespace, pod.name, container.name, previous=previous, tail_lines=_TAIL_LINES).strip())
        except HwaccelError:
            continue
    return "\n".join(texts)
