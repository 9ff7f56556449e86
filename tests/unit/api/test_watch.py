# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches that continue after faults of networks and servers."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import watch
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import Repeat
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request, Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, status
from ansible_collections.hwaccel.gpu.tests.unit.api.test_client_lists import EXPIRED, NODES


def event(kind: str, name: str, version: str) -> dict:
    return {"type": kind, "object": {"kind": "Node", "metadata": {"name": name, "resourceVersion": version}}}


def test_a_watch_continues_from_the_last_bookmark_after_connection_failures(fake: Fake, client: Client) -> None:
    fake.answers = [
        Answer(stream=[event("ADDED", "a", "11"), event("BOOKMARK", "", "15"), None]),
        Answer(0),
        Answer(stream=[event("MODIFIED", "a", "16"), b'{"type": "MODI\n']),
        status(503),
        Answer(stream=[event("DELETED", "a", "17"), 5]),
    ]
    events = []
    for found in client.watch(NODES, resource_version="10", deadline=time.monotonic() + 60):
        events.append((found.type, found.object["metadata"]["resourceVersion"]))
        if found.type == "DELETED":
            break
    assert events == [("ADDED", "11"), ("BOOKMARK", "15"), ("MODIFIED", "16"), ("DELETED", "17")]
    assert [request.query["resourceVersion"] for request in fake.received] == ["10", "15", "15", "16", "16"]
    assert fake.received[0].query["allowWatchBookmarks"] == "true"
    assert int(fake.received[0].query["timeoutSeconds"]) <= 60


def test_a_line_in_several_chunks_is_one_event(fake: Fake, client: Client) -> None:
    fake.answers = [
        Answer(
            stream=[
                b'{"type": "ADDED", "object": ',
                0.05,
                b'{"metadata": {"name": "a"}}}\n{"type": "DELE',
                b'TED", "object": {}}\n',
            ]
        )
    ]
    found = []
    for entry in client.watch(NODES, resource_version="1", deadline=time.monotonic() + 60):
        found.append(entry.type)
        if len(found) == 2:
            break
    assert found == ["ADDED", "DELETED"]


@pytest.mark.parametrize(
    "answer",
    [
        EXPIRED,
        Answer(
            stream=[{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}]
        ),
    ],
)
def test_a_version_that_is_too_old_is_reported_to_the_caller(fake: Fake, client: Client, answer: Answer) -> None:
    fake.answers = [answer]
    with pytest.raises(e.Gone, match="too old"):
        list(client.watch(NODES, resource_version="1", deadline=time.monotonic() + 60))


def test_a_forbidden_watch_fails_without_a_retry(fake: Fake, client: Client) -> None:
    fake.answers = [
        status(
            403,
            'nodes is forbidden: User "u" cannot watch resource "nodes" in API group "" at the cluster scope',
            "Forbidden",
        )
    ]
    with pytest.raises(e.Forbidden, match=r"allow u to watch nodes \(cluster-wide\)"):
        list(client.watch(NODES, resource_version="1", deadline=time.monotonic() + 60))
    assert len(fake.received) == 1


def test_a_watch_continues_after_a_temporary_error_in_the_stream(fake: Fake, client: Client) -> None:
    fake.answers = [
        Answer(
            stream=[
                event("ADDED", "a", "2"),
                {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is slow"}},
            ]
        ),
        Answer(stream=[event("ADDED", "b", "3"), 5]),
    ]
    found = []
    for entry in client.watch(NODES, resource_version="1", deadline=time.monotonic() + 60):
        found.append(entry.object["metadata"]["name"])
        if len(found) == 2:
            break
    assert found == ["a", "b"]
    assert fake.received[1].query["resourceVersion"] == "2"


def test_a_silent_connection_is_replaced(fake: Fake) -> None:
    fake.answers = [
        Answer(stream=[event("ADDED", "a", "2")], held=True),
        Answer(stream=[event("ADDED", "b", "3")], held=True),
    ]
    transport = Transport(Credentials(fake.host))
    request = Request("GET", "/api/v1/nodes", "watching nodes", repeat=Repeat.ALWAYS)
    found = []
    for entry in watch.events(transport, request, "1", time.monotonic() + 60, silence=0.3):
        found.append(entry.object["metadata"]["name"])
        if len(found) == 2:
            break
    assert found == ["a", "b"]


def test_a_silent_server_does_not_delay_a_watch_past_its_deadline(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(stream=[], held=True)]
    started = time.monotonic()
    assert list(client.watch(NODES, resource_version="1", deadline=started + 0.4)) == []
    assert time.monotonic() - started < watch.SILENCE, "without a deadline, a server may be silent for so long"


def test_a_server_that_ends_every_watch_is_not_flooded_with_requests(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(stream=[])]
    assert list(client.watch(NODES, resource_version="1", deadline=time.monotonic() + 1)) == []
    assert len(fake.received) < 8


def test_no_watch_begins_after_the_deadline(fake: Fake, client: Client) -> None:
    assert list(client.watch(NODES, resource_version="1", deadline=time.monotonic() - 1)) == []
    assert fake.received == []


def test_a_watch_that_never_started_fails(fake: Fake, client: Client) -> None:
    """Otherwise the caller would assume that nothing has happened."""
    fake.answers = [Answer(0)]
    with pytest.raises(e.Unreachable):
        list(client.watch(NODES, resource_version="1", deadline=time.monotonic() + 0.2))
