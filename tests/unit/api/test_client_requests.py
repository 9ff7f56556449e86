# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is sent again, when, and what is made of answers that never come."""

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
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, Seen, status

MAPS = Resource("", "v1", "ConfigMap", "configmaps", True)
NODES = Resource("", "v1", "Node", "nodes", False)


def config_map(**more: object) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, **more}


def test_a_request_says_who_asks_and_uses_one_connection(fake: Fake, client: Client) -> None:
    for _attempt in range(3):
        client.get(MAPS, "a", "n")
    assert {seen.headers["Authorization"] for seen in fake.seen} == {"Bearer a-token"}
    assert fake.seen[0].headers["User-Agent"].startswith("hwaccel.gpu/")
    assert client.requests == 3
    assert fake.connections == 1


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_reads_are_sent_again_with_growing_delays(fake: Fake, client: Client, sleeps: list[float], code: int) -> None:
    fake.answers = [status(code), status(code), status(code), Answer(body=config_map())]
    assert client.get(MAPS, "a", "n")["kind"] == "ConfigMap"
    assert len(sleeps) == 3
    assert 0.125 <= sleeps[0] <= 0.25 and 0.25 <= sleeps[1] <= 0.5 and 0.5 <= sleeps[2] <= 1.0


def test_retry_after_is_waited_for(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [Answer(429, {"kind": "Status"}, {"Retry-After": "7"}), Answer(body=config_map())]
    client.get(MAPS, "a", "n")
    assert sleeps == [7.0]


@pytest.mark.parametrize("minutes", [-10, 0, 10], ids=["clock behind", "clocks agree", "clock ahead"])
def test_a_retry_after_with_a_date_is_read_by_the_servers_clock(minutes: int) -> None:
    now = time.time() + 60 * minutes
    date, until = (email.utils.formatdate(moment, usegmt=True) for moment in (now, now + 20))
    assert retry.retry_after(until, date) == 20
    assert retry.retry_after(date, until) == 0
    assert retry.retry_after(until, None) is None


def test_the_servers_time_is_that_of_its_last_answer(fake: Fake, client: Client) -> None:
    assert client.server_time() is None
    fake.answers = [Answer(body=config_map())]
    client.get(MAPS, "a", "n")
    told = client.server_time()
    assert told is not None
    assert abs(told - time.time()) < 60


def test_a_retry_after_that_is_too_far_off_is_reported(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [Answer(503, {"kind": "Status", "message": "maintenance"}, {"Retry-After": "3600"})]
    with pytest.raises(e.Overloaded, match="the server answers 503: maintenance"):
        client.get(MAPS, "a", "n")
    assert sleeps == []


def test_it_gives_up_after_six_attempts(fake: Fake, client: Client) -> None:
    fake.answers = [status(503, "overloaded")]
    with pytest.raises(e.Overloaded) as caught:
        client.get(MAPS, "a", "n")
    assert caught.value.status == 503
    assert len(fake.seen) == 6


def test_a_server_that_an_earlier_slice_has_met_is_given_a_minute(fake: Fake, sleeps: list[float]) -> None:
    """It is restarted, or its address moves to another one, just when a slice begins."""
    fake.answers = [*[status(503, "overloaded")] * 9, Answer(body=config_map())]
    client = Client(Transport(Credentials(fake.host), met=True, sleep=sleeps.append))
    assert client.get(MAPS, "a", "n")["kind"] == "ConfigMap"
    assert len(fake.seen) == 10


@pytest.mark.parametrize(("met", "attempts"), [(False, 2), (True, 6)], ids=["never met", "met before"])
def test_one_that_says_nothing_is_given_up_soon_where_nobody_has_met_it(
    fake: Fake, sleeps: list[float], monkeypatch: pytest.MonkeyPatch, met: bool, attempts: int
) -> None:
    """The preflight of all other clusters waits for it."""
    began, spent = time.monotonic(), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: began + spent[0])

    def say_nothing(_seen: Seen) -> Answer:
        spent[0] += 10
        return Answer(0)

    fake.answers = say_nothing
    with pytest.raises(e.Unreachable):
        Client(Transport(Credentials(fake.host), met=met, sleep=sleeps.append)).get(MAPS, "a", "n")
    assert len(fake.seen) == attempts


@pytest.fixture
def impatient(fake: Fake, sleeps: list[float], monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client that waits only a moment for its first answer, but as ever after it has slept: answers are then in time on a slow machine too."""
    usual = transport.READ_TIMEOUT
    monkeypatch.setattr(transport, "READ_TIMEOUT", 0.1)

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        monkeypatch.setattr(transport, "READ_TIMEOUT", usual)

    return Client(Transport(Credentials(fake.host), sleep=sleep))


@pytest.mark.parametrize(
    "late",
    [Answer(held=True), Answer(body=config_map(data={"a": "b" * 500}), cut=100, held=True)],
    ids=["no word", "half"],
)
def test_a_read_that_times_out_is_sent_again_on_another_connection(
    fake: Fake, impatient: Client, sleeps: list[float], late: Answer
) -> None:
    fake.answers = lambda _seen: Answer(body=config_map()) if sleeps else late
    assert impatient.get(MAPS, "a", "n")["metadata"]["name"] == "a"
    assert (impatient.requests, fake.connections, len(sleeps)) == (2, 2, 1)


def test_an_apply_that_times_out_is_sent_again(fake: Fake, impatient: Client, sleeps: list[float]) -> None:
    fake.answers = lambda _seen: Answer(body=config_map()) if sleeps else Answer(held=True)
    impatient.apply(config_map(), MAPS, field_manager="m")
    assert impatient.requests == 2


def test_a_create_that_times_out_is_sent_again_where_it_has_a_name_and_then_read_back(
    fake: Fake, impatient: Client, sleeps: list[float]
) -> None:
    after = [status(409, "exists", "AlreadyExists"), Answer(body=config_map(data={"a": "b"}))]
    fake.answers = lambda _seen: after.pop(0) if sleeps else Answer(held=True)
    assert impatient.create(config_map(data={"a": "b"}), MAPS).object["data"] == {"a": "b"}
    assert impatient.requests == 3
    assert fake.paths()[-1] == "GET /api/v1/namespaces/n/configmaps/a"


def test_what_is_not_safe_twice_is_sent_once_when_it_times_out(fake: Fake, impatient: Client) -> None:
    """The server may be at work on it still."""
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


def test_a_server_that_never_answers_is_given_up_after_six_attempts(
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
    "broken", [Answer(0), Answer(body=config_map(data={"a": "b" * 500}), cut=100), Answer(body=b'{"kind": "Confi')]
)
def test_broken_answers_to_reads_are_asked_for_again(fake: Fake, client: Client, broken: Answer) -> None:
    fake.answers = [broken, Answer(body=config_map())]
    assert client.get(MAPS, "a", "n")["metadata"]["name"] == "a"
    assert len(fake.seen) == 2


@pytest.mark.parametrize("broken", [Answer(0), status(503), Answer(body=b'{"kind": "Confi')])
def test_what_is_not_safe_twice_is_sent_once(fake: Fake, client: Client, broken: Answer) -> None:
    fake.answers = [broken]
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
        fake.seen.clear()
        with pytest.raises(e.ApiError):
            send()
        assert len(fake.seen) == 1


def test_what_is_safe_twice_is_sent_again(fake: Fake, client: Client) -> None:
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
        fake.seen.clear()
        fake.answers = [Answer(0), status(500, "internal"), Answer(body=config_map())]
        send()
        assert len(fake.seen) == 3


@pytest.mark.parametrize(
    ("verb", "asked"), [("apply", True), ("delete", True), ("create", True), ("replace", False), ("get", False)]
)
def test_a_write_without_an_answer_is_sent_again_only_after_a_look(
    fake: Fake, client: Client, verb: str, asked: bool
) -> None:
    """A run that holds a set may have lost it since. A replace carries the resourceVersion that it was based on."""
    fake.answers = [status(503), Answer(body=config_map())]
    looks: list[int] = []

    def look() -> None:
        looks.append(len(fake.seen))
        raise e.HwaccelError("another run took over the set")

    client.before_repeats(look)
    guarded = config_map(metadata={"name": "a", "namespace": "n", "resourceVersion": "1"})
    calls = {
        "apply": lambda: client.apply(config_map(), MAPS, field_manager="m"),
        "delete": lambda: client.delete(MAPS, "a", "n", uid="u"),
        "create": lambda: client.create(config_map(), MAPS),
        "replace": lambda: client.replace(guarded, MAPS),
        "get": lambda: client.get(MAPS, "a", "n"),
    }
    if asked:
        with pytest.raises(e.HwaccelError, match="another run took over the set"):
            calls[verb]()
    else:
        calls[verb]()
    assert (looks, len(fake.seen)) == (([1], 1) if asked else ([], 2))


def test_429_comes_before_anything_is_done(fake: Fake, client: Client) -> None:
    fake.answers = [status(429), Answer(201, config_map())]
    client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "n"}}, MAPS)
    assert len(fake.seen) == 2


def test_a_create_whose_answer_was_lost_is_read_back(fake: Fake, client: Client) -> None:
    live = config_map(data={"a": "b"}) | {"metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"x": "y"}}}
    fake.answers = [Answer(0), status(409, "exists", "AlreadyExists"), Answer(body=live)]
    assert client.create(config_map(data={"a": "b"}), MAPS).object["metadata"]["uid"] == "u"
    assert fake.paths()[-1] == "GET /api/v1/namespaces/n/configmaps/a"


def test_somebody_elses_object_is_not_taken_for_ours(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(0), status(409, "exists", "AlreadyExists"), Answer(body=config_map(data={"a": "theirs"}))]
    with pytest.raises(e.Conflict):
        client.create(config_map(data={"a": "b"}), MAPS)


def test_one_that_may_not_be_read_back_is_told_as_the_conflict_that_it_is(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(0), status(409, "exists", "AlreadyExists"), status(403, "may not get", "Forbidden")]
    with pytest.raises(e.Conflict):
        client.create(config_map(data={"a": "b"}), MAPS)


def test_a_conflict_on_the_first_attempt_is_not_read_back(fake: Fake, client: Client) -> None:
    fake.answers = [status(409, "exists", "AlreadyExists")]
    with pytest.raises(e.Conflict, match="exists"):
        client.create(config_map(), MAPS)
    assert len(fake.seen) == 1


def test_a_guarded_replace_whose_answer_was_lost_is_read_back(fake: Fake, client: Client) -> None:
    obj = config_map(data={"a": "b"})
    obj["metadata"]["resourceVersion"] = "7"
    live = config_map(data={"a": "b"})
    live["metadata"]["resourceVersion"] = "8"
    fake.answers = [Answer(0), status(409, "modified", "Conflict"), Answer(body=live)]
    assert client.replace(obj, MAPS).object["metadata"]["resourceVersion"] == "8"


def test_a_delete_that_was_done_unheard_is_done(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(0), status(404, "gone")]
    client.delete(MAPS, "a", "n", uid="u")
    assert fake.seen[1].body["preconditions"] == {"uid": "u"}
    fake.answers = [status(404, "gone")]
    with pytest.raises(e.NotFound):
        client.delete(MAPS, "a", "n", uid="u")


def test_a_page_for_people_is_no_api_server(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(body=b"<html>log in</html>", content_type="text/html")]
    with pytest.raises(e.Unreachable, match="not from a Kubernetes API server") as caught:
        client.get(MAPS, "a", "n")
    assert len(fake.seen) == 1
    assert "log in" not in str(caught.value)


def test_nobody_there_is_tried_again_also_for_writes(sleeps: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = Client(Transport(Credentials(f"http://127.0.0.1:{port}"), sleep=sleeps.append))
    with pytest.raises(e.Unreachable, match="Connection refused") as caught:
        client.create(config_map(), MAPS)
    assert len(sleeps) == 5
    assert caught.value.faults[0].what == "creating ConfigMap n/a"
    assert caught.value.faults[0].next_step


def test_a_schema_fault_of_server_side_apply_is_not_sent_again(fake: Fake, client: Client) -> None:
    fake.answers = [
        status(500, "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .data.a: expected string")
    ]
    with pytest.raises(e.Invalid, match="expected string"):
        client.apply(config_map(), MAPS, field_manager="m")
    assert len(fake.seen) == 1


def test_warnings_of_the_server_are_returned(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(body=config_map(), headers={"Warning": '299 - "it is \\"old\\"", 299 - "it is slow"'})]
    assert client.apply(config_map(), MAPS, field_manager="m").warnings == ('it is "old"', "it is slow")


def test_parameters_of_writes(fake: Fake, client: Client) -> None:
    client.apply(config_map(), MAPS, field_manager="hwaccel.gpu/x", force=True, dry_run=True)
    client.create(config_map(), MAPS, field_manager="m")
    client.delete(MAPS, "a", "n", propagation="Orphan", dry_run=True)
    assert fake.seen[0].query == {"fieldManager": "hwaccel.gpu/x", "force": "true", "dryRun": "All"}
    assert fake.seen[0].headers["Content-Type"] == "application/apply-patch+yaml"
    assert (fake.seen[1].path, fake.seen[1].query) == ("/api/v1/namespaces/n/configmaps", {"fieldManager": "m"})
    assert fake.seen[2].body["dryRun"] == ["All"]
    assert fake.seen[2].body["propagationPolicy"] == "Orphan" and fake.seen[2].query == {"dryRun": "All"}


def test_check_mode_lets_no_write_out(fake: Fake) -> None:
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
    assert fake.seen == []
    client.apply(config_map(), MAPS, field_manager="m", dry_run=True)
    assert fake.seen[0].query["dryRun"] == "All"


def test_logs_are_text_and_their_errors_are_read(fake: Fake, client: Client) -> None:
    fake.answers = [Answer(body="täil\n".encode() + b"\xff\n", content_type="text/plain")]
    assert client.logs("n", "p", "c", previous=True) == "täil\n\ufffd\n"
    assert fake.seen[0].query == {"container": "c", "tailLines": "20", "limitBytes": "327680", "previous": "true"}
    fake.answers = [status(400, 'container "c" in pod "p" is waiting to start: ContainerCreating', "BadRequest")]
    with pytest.raises(e.Invalid, match="waiting to start"):
        client.logs("n", "p", "c")


def test_a_server_that_has_answered_before_is_waited_for_longer(
    fake: Fake, client: Client, sleeps: list[float]
) -> None:
    fake.answers = [Answer(body=config_map()), *[Answer(0)] * 9, Answer(body=config_map())]
    client.get(MAPS, "a", "n")
    client.get(MAPS, "a", "n")
    assert len(sleeps) == 9
