# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of a cause from the cluster: events and logs, made safe to show."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

#: A kind that every Kubernetes has, so that no discovery is needed.
_EVENT = Resource("", "v1", "Event", "events", True)
#: Credentials in URLs of proxies and package mirrors in logs.
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_HASH = re.compile(r'"?\b[0-9a-f]{32,64}\b"?')
#: The kubelet warns about its DNS settings at every start of a pod, without preventing it (kubernetes v1.36, pkg/kubelet/network/dns/dns.go).
_HARMLESS = frozenset({"DNSConfigForming", "MissingClusterDNS"})


def masked(log: str) -> str:
    return _URL_CREDENTIALS.sub("***", log)


def event_of(client: Client, namespace: str, uid: str) -> str:
    """The newest warning about an object, "" if there is none."""
    return newest(client.list(_EVENT, namespace, field_selector=f"involvedObject.uid={uid},type=Warning").items)


def newest(events: list[dict[str, t.Any]]) -> str:
    """Reason and message of the last event that reports a problem, in one line."""

    def when(event: dict[str, t.Any]) -> str:
        return str(event.get("lastTimestamp") or event.get("eventTime") or "")

    telling = [event for event in events if event.get("reason") not in _HARMLESS]
    if not telling:
        return ""
    event = max(telling, key=when)
    # Pod sandboxes have a new id at each attempt, which is removed so that equal faults have equal messages.
    message = _HASH.sub("…", " ".join(str(event.get("message") or "").split()))
    return f"{event.get('reason')}: {message[:400]}"
