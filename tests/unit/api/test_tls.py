# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates, with real handshakes on the loopback interface."""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import ssl

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.conftest import Pki
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake


@pytest.fixture
def mutual(pki: Pki) -> c.Iterator[Fake]:
    """A server that requires a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    context.load_verify_locations(pki.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    server = Fake(context)
    server.answers = [Answer(body={"gitVersion": "v1"})]
    yield server
    server.close()


def open_files() -> set[str]:
    return {
        os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{name}")
    }


def test_the_ca_of_the_cluster_is_sufficient(secure: Fake, pki: Pki) -> None:
    client = connect({"host": secure.host, "api_key": "a-token", "ca_cert": str(pki.ca)})
    assert client.server_version() == {"gitVersion": "v1"}


@pytest.mark.parametrize("ca", ["other_ca", None])
def test_another_ca_is_rejected_without_a_retry(secure: Fake, pki: Pki, ca: str | None) -> None:
    sleeps: list[float] = []
    text = getattr(pki, ca).read_text() if ca else ""
    client = Client(Transport(Credentials(secure.host, ca=text), sleep=sleeps.append))
    with pytest.raises(e.CertificateRejected, match="certificate is not accepted") as caught:
        client.server_version()
    assert "set ca_cert" in caught.value.faults[0].next_step
    assert (sleeps, secure.received) == ([], [])


def test_another_server_name_is_rejected_and_can_be_configured(secure: Fake, pki: Pki) -> None:
    wrong = Credentials(secure.host.replace("127.0.0.1", "localhost"), ca=pki.ca.read_text())
    with pytest.raises(e.CertificateRejected, match="localhost"):
        Client(Transport(wrong)).server_version()
    named = Credentials(wrong.host, ca=wrong.ca, server_name="api.example.com")
    assert Client(Transport(named)).server_version()


def test_certificate_validation_can_be_disabled(secure: Fake) -> None:
    client = connect(
        {"host": secure.host.replace("127.0.0.1", "localhost"), "api_key": "a-token", "validate_certs": False}
    )
    assert client.server_version()


def test_a_client_certificate_is_never_written_to_a_file(
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


def test_a_missing_client_certificate_is_reported(mutual: Fake, pki: Pki) -> None:
    client = Client(Transport(Credentials(mutual.host, ca=pki.ca.read_text()), sleep=lambda seconds: None))
    with pytest.raises(e.Unreachable):
        client.server_version()


def test_a_key_with_a_passphrase_is_reported_without_a_prompt(secure: Fake, pki: Pki) -> None:
    with pytest.raises(e.CertificateRejected, match="without a passphrase"):
        connect(
            {
                "host": secure.host,
                "client_cert": str(pki.client),
                "client_key": str(pki.locked_key),
                "ca_cert": str(pki.ca),
            }
        )


def test_an_invalid_ca_is_reported(secure: Fake, pki: Pki) -> None:
    with pytest.raises(e.CertificateRejected, match="CA certificate cannot be used"):
        connect({"host": secure.host, "api_key": "a-token", "ca_cert": str(pki.server_key)})


def test_https_to_a_server_without_tls_is_reported(fake: Fake) -> None:
    client = Client(Transport(Credentials(fake.host.replace("http:", "https:")), sleep=lambda seconds: None))
    with pytest.raises(e.Unreachable, match="TLS connection fails"):
        client.server_version()
