# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates and proxies, with real handshakes on loopback."""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import os
import pathlib
import ssl
import threading

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import proxy
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.conftest import Pki
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake, Seen, Tunnel, status


@pytest.fixture
def secure(pki: Pki) -> c.Iterator[Fake]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    server = Fake(context)
    server.answers = [Answer(body={"gitVersion": "v1"})]
    yield server
    server.close()


@pytest.fixture
def mutual(pki: Pki) -> c.Iterator[Fake]:
    """A server that wants a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    context.load_verify_locations(pki.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    server = Fake(context)
    server.answers = [Answer(body={"gitVersion": "v1"})]
    yield server
    server.close()


@pytest.fixture
def tunnel() -> c.Iterator[Tunnel]:
    made = Tunnel()
    yield made
    made.close()


def open_files() -> set[str]:
    return {
        os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{name}")
    }


def test_the_clusters_ca_is_enough(secure: Fake, pki: Pki) -> None:
    client = connect({"host": secure.host, "api_key": "a-token", "ca_cert": str(pki.ca)})
    assert client.server_version() == {"gitVersion": "v1"}


@pytest.mark.parametrize("ca", ["other_ca", None])
def test_another_ca_is_refused_at_once(secure: Fake, pki: Pki, ca: str | None) -> None:
    sleeps: list[float] = []
    text = getattr(pki, ca).read_text() if ca else ""
    client = Client(Transport(Credentials(secure.host, ca=text), sleep=sleeps.append))
    with pytest.raises(e.CertificateRejected, match="certificate is not accepted") as caught:
        client.server_version()
    assert "set ca_cert" in caught.value.faults[0].next_step
    assert (sleeps, secure.seen) == ([], [])


def test_another_name_is_refused_and_can_be_given(secure: Fake, pki: Pki) -> None:
    wrong = Credentials(secure.host.replace("127.0.0.1", "localhost"), ca=pki.ca.read_text())
    with pytest.raises(e.CertificateRejected, match="localhost"):
        Client(Transport(wrong)).server_version()
    named = Credentials(wrong.host, ca=wrong.ca, server_name="api.example.com")
    assert Client(Transport(named)).server_version()


def test_checks_can_be_switched_off(secure: Fake) -> None:
    client = connect(
        {"host": secure.host.replace("127.0.0.1", "localhost"), "api_key": "a-token", "validate_certs": False}
    )
    assert client.server_version()


def test_a_client_certificate_is_never_a_file_of_ours(
    mutual: Fake, pki: Pki, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = open_files()
    client = connect(
        {"host": mutual.host, "client_cert": str(pki.client), "client_key": str(pki.client_key), "ca_cert": str(pki.ca)}
    )
    assert not [path for path in open_files() - before if "memfd" in path or "tmp" in path]
    assert list(tmp_path.iterdir()) == []
    assert client.server_version()


def test_without_a_client_certificate_the_refusal_is_explained(mutual: Fake, pki: Pki) -> None:
    client = Client(Transport(Credentials(mutual.host, ca=pki.ca.read_text()), sleep=lambda seconds: None))
    with pytest.raises(e.Unreachable):
        client.server_version()


def test_a_key_with_a_passphrase_does_not_ask_for_it(secure: Fake, pki: Pki) -> None:
    with pytest.raises(e.CertificateRejected, match="without a passphrase"):
        connect(
            {
                "host": secure.host,
                "client_cert": str(pki.client),
                "client_key": str(pki.locked_key),
                "ca_cert": str(pki.ca),
            }
        )


def test_a_ca_that_is_none(secure: Fake, pki: Pki) -> None:
    with pytest.raises(e.CertificateRejected, match="CA certificate cannot be used"):
        connect({"host": secure.host, "api_key": "a-token", "ca_cert": str(pki.server_key)})


def test_https_to_a_server_without_it(fake: Fake) -> None:
    client = Client(Transport(Credentials(fake.host.replace("http:", "https:")), sleep=lambda seconds: None))
    with pytest.raises(e.Unreachable, match="TLS connection fails"):
        client.server_version()


def test_impersonation_sends_every_group(fake: Fake) -> None:
    fake.answers = [Answer(body={})]
    options = {"host": fake.host, "api_key": "a-token", "impersonate_user": "joe", "impersonate_groups": ["a", "b"]}
    connect(options).server_version()
    headers = fake.seen[0].headers
    assert headers["Impersonate-User"] == "joe" and headers.get_all("Impersonate-Group") == ["a", "b"]


def test_basic_authentication(fake: Fake) -> None:
    connect({"host": fake.host, "username": "u", "password": "p"}).server_version()
    assert fake.seen[0].headers["Authorization"] == "Basic dTpw"


def test_a_rotated_token_is_read_again_once(fake: Fake, tmp_path: pathlib.Path) -> None:
    token = tmp_path / "token"
    token.write_text("old-token")
    fake.answers = lambda seen: (
        Answer(body={}) if seen.headers["Authorization"] == "Bearer new-token" else status(401, "Unauthorized")
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
    assert [seen.headers["Authorization"] for seen in fake.seen] == [
        "Bearer old-token",
        "Bearer old-token",
        "Bearer new-token",
    ]
    assert set(hidden) == {"old-token", "new-token"}


def test_a_proxy_is_a_tunnel_and_its_password_is_not_told(secure: Fake, pki: Pki, tunnel: Tunnel) -> None:
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


def test_a_proxy_that_refuses_is_named(secure: Fake, pki: Pki) -> None:
    refusing = Tunnel(refuse=True)
    try:
        found = Credentials(secure.host, ca=pki.ca.read_text(), proxy=f"http://user:planted@127.0.0.1:{refusing.port}")
        with pytest.raises(
            e.Unreachable, match=f"the proxy http://127.0.0.1:{refusing.port} does not let us through"
        ) as caught:
            Client(Transport(found, sleep=lambda seconds: None)).server_version()
    finally:
        refusing.close()
    assert "planted" not in str(caught.value)


def test_no_proxy_goes_around_it(secure: Fake, pki: Pki) -> None:
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
def test_who_needs_no_proxy(host: str, no_proxy: str, expected: bool) -> None:
    assert proxy.bypassed(host, no_proxy) is expected


def test_a_rotated_token_is_found_by_every_thread(fake: Fake, tmp_path: pathlib.Path) -> None:
    """Two requests are under way with the token of before; the one that reads the file first leaves no fresher one to the other."""
    token, both = tmp_path / "token", threading.Barrier(2)
    token.write_text("old-token")

    def answer(seen: Seen) -> Answer:
        if seen.headers["Authorization"] == "Bearer new-token":
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
