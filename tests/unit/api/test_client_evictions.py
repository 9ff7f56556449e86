# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of evictions, and errors for the server's rejections."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, status

DONE = Answer(201, {"kind": "Status", "status": "Success"})
#: The answer of kubernetes v1.36 (pkg/registry/core/pod/storage/eviction.go).
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


def test_an_eviction_has_the_uid_of_the_pod_as_a_precondition(fake: Fake, client: Client) -> None:
    fake.answers = [DONE]
    evict(client)
    evict(client, dry_run=True)
    real, dry = fake.received
    assert (real.method, real.path, real.query) == ("POST", "/api/v1/namespaces/n/pods/p/eviction", {})
    assert (real.body["apiVersion"], real.body["kind"]) == ("policy/v1", "Eviction")
    assert real.body["deleteOptions"]["preconditions"] == {"uid": "u"}
    assert dry.query == {"dryRun": "All"}


def test_a_refusal_by_a_budget_is_not_retried(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [REFUSED]
    with pytest.raises(e.BudgetRefused) as caught:
        evict(client)
    assert caught.value.faults[0].why == "The disruption budget train needs 2 healthy pods and has 2 currently"
    assert caught.value.status == 429
    assert (len(fake.received), sleeps) == (1, [])


def test_a_refusal_by_a_webhook_is_not_retried(fake: Fake, client: Client) -> None:
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
    assert len(fake.received) == 1


def test_an_eviction_is_retried_if_the_server_is_overloaded(fake: Fake, client: Client, sleeps: list[float]) -> None:
    fake.answers = [status(429, "too many requests"), Answer(0), DONE]
    evict(client)
    assert (len(fake.received), len(sleeps)) == (3, 2)


def test_two_budgets_for_one_pod_are_reported_with_a_next_step(fake: Fake, client: Client) -> None:
    fake.answers = [status(500, TWO)]
    with pytest.raises(
        e.Invalid,
        match=r"more than one PodDisruptionBudget.*make sure that only one PodDisruptionBudget selects the pod",
    ):
        evict(client)
    assert len(fake.received) == 1


def test_check_mode_evicts_nothing(fake: Fake, client: Client) -> None:
    read_only = Client(client._transport, read_only=True)
    with pytest.raises(e.HwaccelError, match="evict without a dry run in check mode"):
        evict(read_only)
    assert fake.received == []
