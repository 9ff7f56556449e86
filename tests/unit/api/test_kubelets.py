# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet serves with: a TLS server on loopback in its place."""

from __future__ import annotations

import pathlib
import socket
import ssl
import threading

import pytest
from cryptography import x509

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable
from ansible_collections.hwaccel.gpu.tests.unit.api.conftest import Pki
from ansible_collections.hwaccel.gpu.tests.unit.api.kubelet import handshake, server


def tls(pki: Pki) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    return context


def test_the_certificate_is_returned_whoever_issued_it(pki: Pki) -> None:
    with server(handshake(tls(pki))) as port:
        found = serving_certificate("127.0.0.1", port)
    expected = x509.load_pem_x509_certificate(pathlib.Path(pki.server).read_bytes())
    assert x509.load_der_x509_certificate(found) == expected


def test_a_kubelet_that_asks_for_a_client_certificate(pki: Pki) -> None:
    context = tls(pki)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(pki.ca)
    with server(handshake(context)) as port:
        assert serving_certificate("127.0.0.1", port)


def test_a_kubelet_without_a_certificate_presents_none() -> None:
    """It refuses the handshake until its request is approved (kubelet, certificate manager: no serving certificate available)."""
    with server(handshake(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))) as port:
        assert serving_certificate("127.0.0.1", port) == b""


def test_no_answer_and_another_protocol() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unreachable, match=f"127.0.0.1 port {port}"):
        serving_certificate("127.0.0.1", port)
    with (
        server(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port,
        pytest.raises(Unreachable),
    ):
        serving_certificate("127.0.0.1", port)


def test_a_silent_server_is_not_waited_for() -> None:
    done = threading.Event()
    with server(lambda _connection: done.wait()) as port:
        with pytest.raises(Unreachable, match="timed out"):
            serving_certificate("127.0.0.1", port, timeout=0.1)
        done.set()
