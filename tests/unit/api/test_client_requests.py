# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Retries of requests, their delays, and requests without an answer."""

from __future__ import annotations

import email.utils
import socket
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import retry, transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, ReceivedRequest, status

MAPS = Resource("", "v1", "ConfigMap", "configmaps", True)
NODES = Resource("", "v1", "Node", "nodes", False)


def config_map(**more: object) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, **more}


def test_requests_have_credentials_and_use_one_connection(fake: Fake, client: Client) -> None:
    for _attempt in range(3):
        client.get(MAPS, "a", "n")
    assert {request.headers["Authorization"] for request in fake.received} == {"Bearer a-token"}
    assert fake.received[0].headers["User-Agent"].startswith("hwaccel.gpu/")
    assert client.requests == 3
    assert fake.connections == 1


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_reads_are_retried_with_increasing_delays(fake: Fake, client: Client, sleeps: list[float], code: int) -> None:
    fake.answers = [status(code), status(code), status(code), Answer(body=config_map())]
    assert client.get(MAPS, "a", "n")["kind"] == "ConfigMap"
    assert len(sleeps) == 3
    assert 0.125 <= sleeps[0] <= 0.25 and 0.25 <= sleeps[1] <= 0.5 and 0.5 <= sleeps[2] <= 1.0


def test_retry_after_is_respected(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [Answer(429, {"kind": "Status"}, {"Retry-After": "7"}), Answer(body=config_map())]
    client.get(MAPS, "a", "n")
    assert sleeps == [7.0]


@pytest.mark.parametrize("minutes", [-10, 0, 10], ids=["clock behind", "clocks agree", "clock ahead"])
def test_a_retry_after_with_a_date_uses_the_servers_clock(minutes: int) -> None:
    now = time.time() + 60 * minutes
    date, until = (email.utils.formatdate(moment, usegmt=True) for moment in (now, now + 20))
    assert retry.retry_after(until, date) == 20
    assert retry.retry_after(date, until) == 0
    assert retry.retry_after(until, None) is None


def test_the_server_time_is_that_of_its_last_answer(fake: Fake, client: Client) -> None:
    assert client.server_time() is None
    fake.answers = [Answer(body=config_map())]
    client.get(MAPS, "a", "n")
    server_time = client.server_time()
    assert server_time is not None
    assert abs(server_time - time.time()) < 60


def test_a_retry_after_that_is_too_long_is_reported(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [Answer(503, {"kind": "Status", "message": "maintenance"}, {"Retry-After": "3600"})]
    with pytest.raises(e.Overloaded, match="the server answers 503: maintenance"):
        client.get(MAPS, "a", "n")
    assert sleeps == []


def test_a_request_fails_after_six_attempts(fake: Fake, client: Client) -> None:
    fake.answers = [status(503, "overloaded")]
    with pytest.raises(e.Overloaded) as caught:
        client.get(MAPS, "a", "n")
    assert caught.value.status == 503
    assert len(fake.received) == 6


def test_a_server_that_an_earlier_slice_has_reached_is_retried_for_a_minute(fake: Fake, sleeps: list[float]) -> None:
    """The server restarts, or its address moves to another one, when a slice begins."""
    fake.answers = [*[status(503, "overloaded")] * 9, Answer(body=config_map())]
    client = Client(Transport(Credentials(fake.host), met=True, sleep=sleeps.append))
    assert client.get(MAPS, "a", "n")["kind"] == "ConfigMap"
    assert len(fake.received) == 10


@pytest.mark.parametrize(("met", "attempts"), [(False, 2), (True, 6)], ids=["never reached", "reached before"])
def test_a_server_that_was_never_reached_is_retried_less(
    fake: Fake, sleeps: list[float], monkeypatch: pytest.MonkeyPatch, met: bool, attempts: int
) -> None:
    """The preflight of all other clusters would have to wait for it."""
    began, spent = time.monotonic(), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: began + spent[0])

    def drop_connection(_request: ReceivedRequest) -> Answer:
        spent[0] += 10
        return Answer(0)

    fake.answers = drop_connection
    with pytest.raises(e.Unreachable):
        Client(Transport(Credentials(fake.host), met=met, sleep=sleeps.append)).get(MAPS, "a", "n")
    assert len(fake.received) == attempts


@pytest.fixture
def impatient(fake: Fake, sleeps: list[float], monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client with a short timeout for its first answer. After a sleep the timeout is normal again, so that the test also passes on a slow machine."""
    usual = transport.READ_TIMEOUT
    monkeypatch.setattr(transport, "READ_TIMEOUT", 0.1)

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        monkeypatch.setattr(transport, "READ_TIMEOUT", usual)

    return Client(Transport(Credentials(fake.host), sleep=sleep))


@pytest.mark.parametrize(
    "late",
    [Answer(held=True), Answer(body=config_map(data={"a": "b" * 500}), cut=100, held=True)],
    ids=["no answer", "half an answer"],
)
def test_a_read_that_times_out_is_retried_on_another_connection(
    fake: Fake, impatient: Client, sleeps: list[float], late: Answer
) -> None:
    fake.answers = lambda _request: Answer(body=config_map()) if sleeps else late
    assert impatient.get(MAPS, "a", "n")["metadata"]["name"] == "a"
    assert (impatient.requests, fake.connections, len(sleeps)) == (2, 2, 1)


def test_an_apply_that_times_out_is_retried(fake: Fake, impatient: Client, sleeps: list[float]) -> None:
    fake.answers = lambda _request: Answer(body=config_map()) if sleeps else Answer(held=True)
    impatient.apply(config_map(), MAPS, field_manager="m")
    assert impatient.requests == 2


def test_a_create_with_a_name_that_times_out_is_retried_and_read_back(
    fake: Fake, impatient: Client, sleeps: list[float]
) -> None:
    after = [status(409, "exists", "AlreadyExists"), Answer(body=config_map(data={"a": "b"}))]
    fake.answers = lambda _request: after.pop(0) if sleeps else Answer(held=True)
    assert impatient.create(config_map(data={"a": "b"}), MAPS).object["data"] == {"a": "b"}
    assert impatient.requests == 3
    assert fake.paths()[-1] == "GET /api/v1/namespaces/n/configmaps/a"


def test_a_write_that_is_not_idempotent_is_not_retried_after_a_timeout(fake: Fake, impatient: Client) -> None:
    """The server may still be processing it."""
    fake.answers = [Answer(held=True)]
    for sent, send in enumerate(
        (
            lambda: impatient.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "n"}}, MAPS
            ),
            lambda: impatient.patch(MAPS, "a", "n", {"data": {"a": "b"}}),
            lambda: impatient.delete(MAPS, "a", "n"),
        ),
        start=1,
    ):
        with pytest.raises(e.Unreachable, match="timed out"):
            send()
        assert impatient.requests == sent


def test_a_request_without_an_answer_fails_after_six_attempts(
    fake: Fake, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "READ_TIMEOUT", 0.1)
    fake.answers = [Answer(held=True)]
    with pytest.raises(e.Unreachable) as caught:
        client.apply(config_map(), MAPS, field_manager="m")
    assert client.requests == 6
    fault = caught.value.faults[0]
    assert (fault.what, fault.where) == ("applying ConfigMap n/a", fake.host)
    assert "timed out" in fault.why
    assert "that the API server is running" in fault.next_step


@pytest.mark.parametrize(
    "faulty", [Answer(0), Answer(body=config_map(data={"a": "b" * 500}), cut=100), Answer(body=b'{"kind": "Confi')]
)
def test_reads_with_faulty_answers_are_retried(fake: Fake, client: Client, faulty: Answer) -> None:
    fake.answers = [faulty, Answer(body=config_map())]
    assert client.get(MAPS, "a", "n")["metadata"]["name"] == "a"
    assert len(fake.received) == 2


@pytest.mark.parametrize("faulty", [Answer(0), status(503), Answer(body=b'{"kind": "Confi')])
def test_a_write_that_is_not_idempotent_is_not_retried(fake: Fake, client: Client, faulty: Answer) -> None:
    fake.answers = [faulty]
    for send in (
        lambda: client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "n"}}, MAPS
        ),
        lambda: client.replace(config_map(), MAPS),
        lambda: client.patch(MAPS, "a", "n", {"data": {"a": "b"}}),
        lambda: client.patch(
            MAPS, "a", "n", [{"op": "add", "path": "/data/-", "value": 1}], patch_type="application/json-patch+json"
        ),
        lambda: client.delete(MAPS, "a", "n"),
    ):
        fake.received.clear()
        with pytest.raises(e.ApiError):
            send()
        assert len(fake.received) == 1


def test_idempotent_writes_are_retried(fake: Fake, client: Client) -> None:
    guarded = {"metadata": {"resourceVersion": "7"}, "data": {"a": "b"}}
    test = [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}]
    for send in (
        lambda: client.apply(config_map(), MAPS, field_manager="m"),
        lambda: client.delete(MAPS, "a", "n", uid="u"),
        lambda: client.patch(MAPS, "a", "n", guarded),
        lambda: client.patch(MAPS, "a", "n", test, patch_type="application/json-patch+json"),
        lambda: client.patch(MAPS, "a", "n", {"data": {}}, dry_run=True),
        lambda: client.allowed("get", MAPS),
    ):
        fake.received.clear()
        fake.answers = [Answer(0), status(500, "internal"), Answer(body=config_map())]
        send()
        assert len(fake.received) == 3


@pytest.mark.parametrize(
    ("verb", "checked"), [("apply", True), ("delete", True), ("create", True), ("replace", False), ("get", False)]
)
def test_a_write_without_an_answer_is_only_retried_after_a_check(
    fake: Fake, client: Client, verb: str, checked: bool
) -> None:
    """A run that holds a set may have lost it in the meantime. A replace has the resourceVersion that it is based on."""
    fake.answers = [status(503), Answer(body=config_map())]
    checks: list[int] = []

    def check() -> None:
        checks.append(len(fake.received))
        raise e.HwaccelError("another run took over the set")

    client.before_repeats(check)
    guarded = config_map(metadata={"name": "a", "namespace": "n", "resourceVersion": "1"})
    calls = {
        "apply": lambda: client.apply(config_map(), MAPS, field_manager="m"),
        "delete": lambda: client.delete(MAPS, "a", "n", uid="u"),
        "create": lambda: client.create(config_map(), MAPS),
        "replace": lambda: client.replace(guarded, MAPS),
        "get": lambda: client.get(MAPS, "a", "n"),
    }
    if checked:
        with pytest.raises(e.HwaccelError, match="another run took over the set"):
            calls[verb]()
    else:
        calls[verb]()
    assert (checks, len(fake.received)) == (([1], 1) if checked else ([], 2))


def test_429_is_retried_because_the_request_was_not_processed(fake: Fake, client: Client) -> None:
    fake.answers = [status(429), Answer(201, config_map())]
    client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "n"}}, MAPS)
    assert len(fake.received) == 2


def test_a_create_whose_answer_was_lost_is_read_back(fake: Fake, client: Client) -> None:
    live = config_map(data={"a": "b"}) | {"metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"x": "y"}}}
    fake.answers = [Answer(0), status(409, "exists", "AlreadyExists"), Answer(body=live)]
    assert client.create(config_map(data={"a": "b"}), MAPS).object["metadata"]["uid"] == "u"
    assert fake.paths()[-1] == "GET /api/v1/namespaces/n/configmaps/a"


def test_a_foreign_object_is_not_mistaken_for_the_created_one(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(0), status(409, "exists", "AlreadyExists"), Answer(body=config_map(data={"a": "theirs"}))]
    with pytest.raises(e.Conflict):
        client.create(config_map(data={"a": "b"}), MAPS)


def test_a_conflict_that_cannot_be_read_back_is_reported_as_a_conflict(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(0), status(409, "exists", "AlreadyExists"), status(403, "may not get", "Forbidden")]
    with pytest.raises(e.Conflict):
        client.create(config_map(data={"a": "b"}), MAPS)


def test_a_conflict_on_the_first_attempt_is_not_read_back(fake: Fake, client: Client) -> None:
    fake.answers = [status(409, "exists", "AlreadyExists")]
    with pytest.raises(e.Conflict, match="exists"):
        client.create(config_map(), MAPS)
    assert len(fake.received) == 1


def test_a_guarded_replace_whose_answer_was_lost_is_read_back(fake: Fake, client: Client) -> None:
    obj = config_map(data={"a": "b"})
    obj["metadata"]["resourceVersion"] = "7"
    live = config_map(data={"a": "b"})
    live["metadata"]["resourceVersion"] = "8"
    fake.answers = [Answer(0), status(409, "modified", "Conflict"), Answer(body=live)]
    assert client.replace(obj, MAPS).object["metadata"]["resourceVersion"] == "8"


def test_a_replaced_subresource_is_read_back_by_its_status(fake: Fake, client: Client) -> None:
    """The status is what it writes: the object without it says nothing."""
    obj = config_map(data={"a": "b"}) | {"status": {"conditions": [{"type": "Approved"}]}}
    obj["metadata"]["resourceVersion"] = "7"
    answers = [Answer(0), status(409, "modified", "Conflict")]
    fake.answers = [*answers, Answer(body=obj | {"status": {"conditions": [{"type": "Approved"}], "certificate": "c"}})]
    client.replace(obj, MAPS, subresource="approval")
    assert fake.received[0].path.partition("?")[0].endswith("/configmaps/a/approval")
    fake.answers = [*answers, Answer(body=obj | {"status": {"conditions": [{"type": "Denied"}]}})]
    with pytest.raises(e.Conflict):
        client.replace(obj, MAPS, subresource="approval")


def test_a_delete_whose_answer_was_lost_is_done(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(0), status(404, "deleted")]
    client.delete(MAPS, "a", "n", uid="u")
    assert fake.received[1].body["preconditions"] == {"uid": "u"}
    fake.answers = [status(404, "deleted")]
    with pytest.raises(e.NotFound):
        client.delete(MAPS, "a", "n", uid="u")


def test_an_html_page_is_not_from_an_api_server(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(body=b"<html>log in</html>", content_type="text/html")]
    with pytest.raises(e.Unreachable, match="not from a Kubernetes API server") as caught:
        client.get(MAPS, "a", "n")
    assert len(fake.received) == 1
    assert "log in" not in str(caught.value)


def test_refused_connections_are_retried_also_for_writes(sleeps: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = Client(Transport(Credentials(f"http://127.0.0.1:{port}"), sleep=sleeps.append))
    with pytest.raises(e.Unreachable, match="Connection refused") as caught:
        client.create(config_map(), MAPS)
    assert len(sleeps) == 5
    assert caught.value.faults[0].what == "creating ConfigMap n/a"
    assert caught.value.faults[0].next_step


def test_a_schema_error_of_server_side_apply_is_not_retried(fake: Fake, client: Client) -> None:
    fake.answers = [
        status(500, "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .data.a: expected string")
    ]
    with pytest.raises(e.Invalid, match="expected string"):
        client.apply(config_map(), MAPS, field_manager="m")
    assert len(fake.received) == 1


def test_warnings_of_the_server_are_returned(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(body=config_map(), headers={"Warning": '299 - "it is \\"old\\"", 299 - "it is slow"'})]
    assert client.apply(config_map(), MAPS, field_manager="m").warnings == ('it is "old"', "it is slow")


def test_writes_have_their_parameters(fake: Fake, client: Client) -> None:
    client.apply(config_map(), MAPS, field_manager="hwaccel.gpu/x", force=True, dry_run=True)
    client.create(config_map(), MAPS, field_manager="m")
    client.delete(MAPS, "a", "n", propagation="Orphan", dry_run=True)
    assert fake.received[0].query == {"fieldManager": "hwaccel.gpu/x", "force": "true", "dryRun": "All"}
    assert fake.received[0].headers["Content-Type"] == "application/apply-patch+yaml"
    assert (fake.received[1].path, fake.received[1].query) == ("/api/v1/namespaces/n/configmaps", {"fieldManager": "m"})
    assert fake.received[2].body["dryRun"] == ["All"]
    assert fake.received[2].body["propagationPolicy"] == "Orphan" and fake.received[2].query == {"dryRun": "All"}


def test_check_mode_sends_no_write(fake: Fake) -> None:
    client = Client(Transport(Credentials(fake.host)), read_only=True)
    for send in (
        lambda: client.apply(config_map(), MAPS, field_manager="m"),
        lambda: client.create(config_map(), MAPS),
        lambda: client.replace(config_map(), MAPS),
        lambda: client.patch(MAPS, "a", "n", {}),
        lambda: client.delete(MAPS, "a", "n"),
    ):
        with pytest.raises(e.HwaccelError, match="without a dry run in check mode"):
            send()
    assert fake.received == []
    client.apply(config_map(), MAPS, field_manager="m", dry_run=True)
    assert fake.received[0].query["dryRun"] == "All"


def test_logs_are_text_and_their_errors_are_reported(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(body="täil\n".encode() + b"\xff\n", content_type="text/plain")]
    assert client.logs("n", "p", "c", previous=True) == "täil\n\ufffd\n"
    assert fake.received[0].query == {"container": "c", "tailLines": "20", "limitBytes": "327680", "previous": "true"}
    fake.answers = [status(400, 'container "c" in pod "p" is waiting to start: ContainerCreating', "BadRequest")]
    with pytest.raises(e.Invalid, match="waiting to start"):
        client.logs("n", "p", "c")


def test_a_server_that_has_answered_before_is_retried_longer(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [Answer(body=config_map()), *[Answer(0)] * 9, Answer(body=config_map())]
    client.get(MAPS, "a", "n")
    client.get(MAPS, "a", "n")
    assert len(sleeps) == 9
