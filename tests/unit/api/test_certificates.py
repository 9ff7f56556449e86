# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An expired client certificate is reported if the server only answers that the client is not authorized."""

from __future__ import annotations

import datetime
import pathlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import certificates
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import errors as e
from ansible_collections.hwaccel.gpu.tests.unit.api.conftest import Pki
from ansible_collections.hwaccel.gpu.tests.unit.api.fake import Fake, status

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
BEGIN = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


def certificate(end: datetime.datetime, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> str:
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "user")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), BEGIN, end)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (NOW - datetime.timedelta(seconds=1), "2026-11-21T23:59:59+00:00"),
        (NOW, "2026-11-22T00:00:00+00:00"),
        (NOW + datetime.timedelta(seconds=1), ""),
        # Years from 2050 on have four digits in the encoding.
        (datetime.datetime(2049, 12, 31, tzinfo=datetime.UTC), ""),
        (datetime.datetime(2060, 1, 1, tzinfo=datetime.UTC), ""),
    ],
)
def test_the_end_is_reported_once_the_certificate_has_expired(end: datetime.datetime, expected: str) -> None:
    assert certificates.expired(certificate(end), NOW.timestamp()) == expected


def test_a_certificate_with_a_year_of_four_digits_can_expire() -> None:
    end = datetime.datetime(2060, 1, 1, tzinfo=datetime.UTC)
    assert certificates.expired(certificate(end), end.timestamp()) == end.isoformat()


def test_the_first_of_several_certificates_is_that_of_the_client() -> None:
    """Certificates of authorities follow it, and text may precede it. With a large key, lengths have two bytes."""
    old = certificate(NOW, rsa.generate_private_key(65537, 2048))
    new = certificate(NOW + datetime.timedelta(days=1))
    assert certificates.expired(f"subject=CN = user\n{old}{new}", NOW.timestamp()) == NOW.isoformat()
    assert certificates.expired(new + old, NOW.timestamp()) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----",
    ],
)
def test_invalid_certificates_are_not_reported(text: str) -> None:
    assert certificates.expired(text, NOW.timestamp()) == ""


def test_without_the_servers_clock_nothing_is_reported() -> None:
    """The clock of a controller may be wrong by years, so that every certificate would seem to have expired."""
    assert certificates.expired(certificate(NOW - datetime.timedelta(days=1)), None) == ""


def test_the_next_step_is_to_renew_an_expired_certificate(fake: Fake) -> None:
    fake.answers = [status(401, "Unauthorized", "Unauthorized")]
    with pytest.raises(e.Unauthorized) as caught:
        Client(
            Transport(
                Credentials(
                    fake.host, client_cert=certificate(NOW - datetime.timedelta(days=365)), source="kubeconfig /x"
                )
            )
        ).server_version()
    assert "credentials: Unauthorized; the client certificate expired at 2025-11-22T00:00:00+00:00" in str(caught.value)
    assert str(caught.value).endswith("Next: renew the client certificate of kubeconfig /x")


def test_a_valid_certificate_is_not_reported(fake: Fake, pki: Pki) -> None:
    fake.answers = [status(401, "Unauthorized", "Unauthorized")]
    with pytest.raises(e.Unauthorized) as caught:
        Client(
            Transport(Credentials(fake.host, client_cert=pathlib.Path(pki.client).read_text(encoding="utf-8")))
        ).server_version()
    assert "has expired, at" not in str(caught.value)
