# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evictions as they are sent, and what the server's ways to say no become."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, status

DONE = Answer(201, {"kind": "Status", "status": "Success"})
#: As kubernetes v1.36 says it (pkg/registry/core/pod/storage/eviction.go).
REFUSED = status(
    429,
    "Cannot evict pod as it would violate the pod's disruption budget.",
    "TooManyRequests",
    causes=[
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget train needs 2 healthy pods and has 2 currently",
        }
    ],
)
TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def evict(client: Client, **more: t.Any) -> None:
    client.evict("p", "n", uid="u", **more)


def test_only_the_pod_of_that_uid_is_meant(fake: Fake, client: Client) -> None:
    fake.answers = [DONE]
    evict(client)
    evict(client, dry_run=True)
    real, dry = fake.seen
    assert (real.method, real.path, real.query) == ("POST", "/api/v1/namespaces/n/pods/p/eviction", {})
    assert (real.body["apiVersion"], real.body["kind"]) == ("policy/v1", "Eviction")
    assert real.body["deleteOptions"]["preconditions"] == {"uid": "u"}
    assert dry.query == {"dryRun": "All"}


def test_a_budget_is_an_answer_and_not_asked_again(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [REFUSED]
    with pytest.raises(e.BudgetRefused) as caught:
        evict(client)
    assert caught.value.faults[0].why == "The disruption budget train needs 2 healthy pods and has 2 currently"
    assert caught.value.status == 429
    assert (len(fake.seen), sleeps) == (1, [])


def test_so_is_a_webhook_that_wants_time(fake: Fake, client: Client) -> None:
    fake.answers = [
        status(
            429,
            'admission webhook "evict.example.com" denied the request: the machine is moved first',
            "TooManyRequests",
        )
    ]
    with pytest.raises(e.WebhookDenied, match="moved first") as caught:
        evict(client)
    assert caught.value.status == 429
    assert len(fake.seen) == 1


def test_a_server_that_is_overloaded_is_asked_again(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [status(429, "too many requests"), Answer(0), DONE]
    evict(client)
    assert (len(fake.seen), len(sleeps)) == (3, 2)


def test_two_budgets_for_one_pod_are_told_once_with_what_to_do(fake: Fake, client: Client) -> None:
    fake.answers = [status(500, TWO)]
    with pytest.raises(
        e.Invalid,
        match=r"more than one PodDisruptionBudget.*make sure that only one PodDisruptionBudget selects the pod",
    ):
        evict(client)
    assert len(fake.seen) == 1


def test_check_mode_evicts_nothing(fake: Fake, client: Client) -> None:
    read_only = Client(client._transport, read_only=True)
    with pytest.raises(e.HwaccelError, match="evict without a dry run in check mode"):
        evict(read_only)
    assert fake.seen == []
