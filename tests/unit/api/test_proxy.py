# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proxies, with real handshakes on the loopback interface."""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import proxy
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.conftest import Pki
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Fake, Tunnel


@pytest.fixture
def tunnel() -> c.Iterator[Tunnel]:
    server = Tunnel()
    yield server
    server.close()


def test_a_proxy_is_used_as_a_tunnel_and_its_password_is_masked(secure: Fake, pki: Pki, tunnel: Tunnel) -> None:
    hidden: list[str] = []
    options = {
        "host": secure.host,
        "api_key": "a-token",
        "ca_cert": str(pki.ca),
        "proxy": f"http://user:planted@127.0.0.1:{tunnel.port}",
    }
    client = connect(options, hide=hidden.extend)
    assert client.server_version()
    assert tunnel.heads[0].startswith("CONNECT 127.0.0.1:")
    assert "proxy-authorization: basic dxnlcjpwbgfudgvk" in tunnel.heads[0].lower()
    assert "a-token" not in tunnel.heads[0]
    assert {"a-token", "planted", "user:planted"} == set(hidden)


def test_a_proxy_that_refuses_the_connection_is_named(secure: Fake, pki: Pki) -> None:
    refusing = Tunnel(refuse=True)
    try:
        found = Credentials(secure.host, ca=pki.ca.read_text(), proxy=f"http://user:planted@127.0.0.1:{refusing.port}")
        with pytest.raises(
            e.Unreachable, match=f"the proxy http://127.0.0.1:{refusing.port} refuses the connection"
        ) as caught:
            Client(Transport(found, sleep=lambda seconds: None)).server_version()
    finally:
        refusing.close()
    assert "planted" not in str(caught.value)


def test_no_proxy_bypasses_the_proxy(secure: Fake, pki: Pki) -> None:
    options = {
        "host": secure.host,
        "api_key": "a-token",
        "ca_cert": str(pki.ca),
        "proxy": "http://127.0.0.1:1",
        "no_proxy": "example.com, 127.0.0.0/8",
    }
    assert connect(options).server_version()


@pytest.mark.parametrize(
    ("host", "no_proxy", "expected"),
    [
        ("api.example.com", ".example.com", True),
        ("api.example.com", "example.com", True),
        ("example.com", ".example.com", True),
        ("notexample.com", "example.com", False),
        ("api.example.com", "*.example.com", True),
        ("api.example.com", "API.example.com:6443", True),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("fd00::1", "fd00::/8", True),
        ("anything", "*", True),
        ("anything", " , ", False),
    ],
)
def test_hosts_that_bypass_the_proxy(host: str, no_proxy: str, expected: bool) -> None:
    assert proxy.bypassed(host, no_proxy) is expected
