# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that a client sends, and tokens that are rotated while it runs."""

from __future__ import annotations

import concurrent.futures
import pathlib
import threading

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, ReceivedRequest, status


def test_impersonation_sends_every_group(fake: Fake) -> None:
    fake.answers = [Answer(body={})]
    options = {"host": fake.host, "api_key": "a-token", "impersonate_user": "joe", "impersonate_groups": ["a", "b"]}
    connect(options).server_version()
    headers = fake.received[0].headers
    assert headers["Impersonate-User"] == "joe" and headers.get_all("Impersonate-Group") == ["a", "b"]


def test_basic_authentication(fake: Fake) -> None:
    connect({"host": fake.host, "username": "u", "password": "p"}).server_version()
    assert fake.received[0].headers["Authorization"] == "Basic dTpw"


def test_a_rotated_token_is_read_again_once(fake: Fake, tmp_path: pathlib.Path) -> None:
    token = tmp_path / "token"
    token.write_text("old-token")
    fake.answers = lambda request: (
        Answer(body={}) if request.headers["Authorization"] == "Bearer new-token" else status(401, "Unauthorized")
    )
    kubeconfig = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": fake.host}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    hidden: list[str] = []
    client = connect({"kubeconfig": kubeconfig}, hide=hidden.extend)
    with pytest.raises(e.Unauthorized, match="context x"):
        client.server_version()
    token.write_text("new-token")
    client.server_version()
    assert [request.headers["Authorization"] for request in fake.received] == [
        "Bearer old-token",
        "Bearer old-token",
        "Bearer new-token",
    ]
    assert set(hidden) == {"old-token", "new-token"}


def test_a_rotated_token_is_found_by_every_thread(fake: Fake, tmp_path: pathlib.Path) -> None:
    """Two requests are sent with the old token. After the first one has read the new token, the second one must use it as well."""
    token, both = tmp_path / "token", threading.Barrier(2)
    token.write_text("old-token")

    def answer(request: ReceivedRequest) -> Answer:
        if request.headers["Authorization"] == "Bearer new-token":
            return Answer(body={})
        token.write_text("new-token")
        both.wait(timeout=240)
        return status(401, "Unauthorized")

    fake.answers = answer
    user = {"name": "u", "user": {"tokenFile": str(token)}}
    cluster = {"name": "c", "cluster": {"server": fake.host}}
    kubeconfig = {
        "current-context": "x",
        "clusters": [cluster],
        "users": [user],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    client = connect({"kubeconfig": kubeconfig})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert [one.result() for one in [pool.submit(client.server_version) for _thread in range(2)]] == [{}, {}]
