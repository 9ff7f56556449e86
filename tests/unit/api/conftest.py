# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for tests of the client: a server with faults, and certificates."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import ipaddress
import pathlib
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Answer, Fake


@pytest.fixture
def fake() -> c.Iterator[Fake]:
    server = Fake()
    yield server
    server.close()


@pytest.fixture
def sleeps() -> list[float]:
    return []


@pytest.fixture
def client(fake: Fake, sleeps: list[float]) -> Client:
    """A client of the fake server that records sleeps instead of sleeping."""
    return Client(Transport(Credentials(fake.host, token="a-token", source="the test"), sleep=sleeps.append))


@dataclasses.dataclass(frozen=True)
class Pki:
    """Paths of PEM files."""

    ca: pathlib.Path
    other_ca: pathlib.Path
    server: pathlib.Path
    server_key: pathlib.Path
    client: pathlib.Path
    client_key: pathlib.Path
    locked_key: pathlib.Path


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    folder = tmp_path_factory.mktemp("pki")
    ca, ca_key = _certificate("ca", None, None)
    other, _key = _certificate("other", None, None)
    server, server_key = _certificate("server", ca, ca_key)
    user, user_key = _certificate("user", ca, ca_key)
    plain = serialization.NoEncryption()
    files = {
        "ca": ca,
        "other_ca": other,
        "server": server,
        "client": user,
        "server_key": (server_key, plain),
        "client_key": (user_key, plain),
        "locked_key": (user_key, serialization.BestAvailableEncryption(b"planted")),
    }
    paths = {}
    for name, content in files.items():
        paths[name] = folder / f"{name}.pem"
        if isinstance(content, tuple):
            data = content[0].private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, content[1])
        else:
            data = content.public_bytes(serialization.Encoding.PEM)
        paths[name].write_bytes(data)
    return Pki(**paths)


@pytest.fixture
def secure(pki: Pki) -> c.Iterator[Fake]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.server, pki.server_key)
    server = Fake(context)
    server.answers = [Answer(body={"gitVersion": "v1"})]
    yield server
    server.close()


def _certificate(
    name: str, issuer: x509.Certificate | None, issuer_key: ec.EllipticCurvePrivateKey | None
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if name == "server":
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("api.example.com")]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key or key, hashes.SHA256()), key
