# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors for the server's rejections: problem, location, reason and next step."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, status

SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
OBJECT = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}}

CASES = [
    (
        status(401, "Unauthorized", "Unauthorized"),
        e.Unauthorized,
        "the server does not accept the credentials",
        "of the test is for this cluster",
    ),
    (
        status(
            403,
            'daemonsets.apps "d" is forbidden: User "joe" cannot patch resource "daemonsets" in API group "apps" in the namespace "n"',
            "Forbidden",
        ),
        e.Forbidden,
        'User "joe" cannot patch',
        "allow joe to patch daemonsets.apps in namespace n, with a Role",
    ),
    (
        status(403, 'pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged', "Forbidden"),
        e.Forbidden,
        "violates PodSecurity",
        "label the namespace",
    ),
    (
        status(403, 'pods "p" is forbidden: exceeded quota: q', "Forbidden"),
        e.Forbidden,
        "exceeded quota",
        "ResourceQuota",
    ),
    (
        status(403, "unable to create new content in namespace n because it is being terminated", "Forbidden"),
        e.Forbidden,
        "terminated",
        "wait until the namespace is gone",
    ),
    (status(403, "no reason", "Forbidden"), e.Forbidden, "no reason", "administrator"),
    (status(404, 'namespaces "n" not found', "NotFound"), e.NotFound, "not found", "create the namespace first"),
    (status(409, "the object has been modified", "Conflict"), e.Conflict, "modified", "run again"),
    (
        status(
            422,
            'DaemonSet.apps "d" is invalid',
            "Invalid",
            causes=[{"field": "spec.selector", "message": "field is immutable"}],
        ),
        e.Invalid,
        "spec.selector: field is immutable",
        "",
    ),
    (
        status(400, 'admission webhook "w.example.com" denied the request: no GPUs here', "BadRequest"),
        e.WebhookDenied,
        "no GPUs here",
        "so that w.example.com accepts it",
    ),
    (
        status(400, 'admission webhook "w.example.com" does not support dry run', "BadRequest"),
        e.WebhookDenied,
        "dry run",
        "w.example.com",
    ),
    (
        status(
            500,
            'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post "https://w.n.svc": no endpoints',
            "InternalError",
        ),
        e.WebhookDenied,
        "no endpoints",
        "behind the webhook w.example.com are running",
    ),
    (
        status(
            422,
            "daemonsets.apps \"d\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "Invalid",
        ),
        e.WebhookDenied,
        "denied request",
        "so that p accepts it",
    ),
    (status(507, "etcdserver: mvcc: database space exceeded"), e.Overloaded, "space exceeded", "health and load"),
    (status(405, "the server does not allow this method", "MethodNotAllowed"), e.ApiError, "does not allow", ""),
    (Answer(302, None, {"Location": "https://elsewhere"}), e.Unreachable, "redirects", "URL of the API server itself"),
    (
        Answer(400, b"Client sent an HTTP request to an HTTPS server.\n", content_type="text/plain"),
        e.Unreachable,
        "HTTPS server",
        "begin host with https://",
    ),
    (Answer(403, b"<html>blocked</html>", content_type="text/html"), e.Forbidden, "blocked", "administrator"),
    (Answer(404, {"not": "a Status"}), e.NotFound, "HTTP 404 without an explanation", ""),
]


@pytest.mark.parametrize(("answer", "kind", "why", "step"), CASES)
def test_a_rejection_has_a_reason_and_a_next_step(
    fake: Fake, client: Client, answer: Answer, kind: type[e.ApiError], why: str, step: str
) -> None:
    fake.answers = [answer]
    with pytest.raises(e.ApiError) as caught:
        client.apply(OBJECT, SETS, field_manager="m")
    fault = caught.value.faults[0]
    assert caught.value.__class__ is kind
    assert caught.value.status == answer.status
    assert fault.what == "applying DaemonSet n/d"
    assert fault.where == f"{fake.host}/apis/apps/v1/namespaces/n/daemonsets/d"
    assert why in fault.why
    assert step in fault.next_step
    assert ".." not in str(caught.value)


@pytest.mark.parametrize(
    "shown",
    ["&value.valueUnstructured{Value:48151623}", "&{48151623}", "&{a\n  .data.b: expected string, got 48151623}"],
)
def test_values_of_a_secret_are_not_shown(fake: Fake, client: Client, shown: str) -> None:
    faults = "\n".join(f"  .data.{key}: expected string, got {shown}" for key in ("pan", "pin"))
    message = f"failed to create typed patch object (n/s; /v1, Kind=%s): errors:\n{faults}"
    messages = []
    for kind in ("Secret", "ConfigMap"):
        fake.answers = [status(500, message % kind)]
        with pytest.raises(e.Invalid) as caught:
            client.apply(OBJECT, SETS, field_manager="m")
        messages.append(str(caught.value))
    assert ".data.pan: expected string, got (redacted)" in messages[0]
    assert "48151623" not in messages[0]
    assert "48151623" in messages[1]


def test_the_status_of_the_server_is_kept(fake: Fake, client: Client) -> None:
    causes = [{"reason": "FieldManagerConflict", "message": 'conflict with "other"', "field": ".spec.x"}]
    fake.answers = [status(409, "Apply failed with 1 conflict", "Conflict", causes=causes)]
    with pytest.raises(e.Conflict) as caught:
        client.apply(OBJECT, SETS, field_manager="m")
    assert caught.value.body["details"]["causes"] == causes


def test_long_reasons_are_truncated(fake: Fake, client: Client) -> None:
    fake.answers = [
        status(
            422,
            "x" * 5000,
            "Invalid",
            causes=[{"field": f"spec.f{number}", "message": "wrong"} for number in range(50)],
        )
    ]
    with pytest.raises(e.Invalid) as caught:
        client.apply(OBJECT, SETS, field_manager="m")
    assert len(str(caught.value)) < 1600
