# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a cluster's certificate authority, compared with OpenSSL's rules."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(days: int = 365, names: tuple[str, ...] = ()) -> str:
    """names: DNS names and addresses for which it is valid."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(BEGIN).not_valid_after(BEGIN + datetime.timedelta(days=days))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_general, names))), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


PEM = certificate()


def test_the_fingerprint_is_that_of_the_first_certificate() -> None:
    assert authority.fingerprint(PEM) == hashlib.sha256(ssl.PEM_cert_to_DER_cert(PEM)).hexdigest()
    assert authority.fingerprint(f"# comment\n{PEM}{certificate(10)}") == authority.fingerprint(PEM)


@pytest.mark.parametrize("text", ["", "nothing", PEM.replace("M", "?"), PEM[:200]])
def test_what_is_no_certificate_has_no_fingerprint(text: str) -> None:
    assert authority.fingerprint(text) == ""
    assert authority.days_left(text, 0) is None
    with pytest.raises(HwaccelError, match="cannot be read"):
        authority.key_hash(text)


def test_the_key_has_the_hash_that_kubeadm_expects() -> None:
    """https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-join: openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256."""
    der = KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert authority.key_hash(PEM) == f"sha256:{hashlib.sha256(der).hexdigest()}"


def test_days_are_whole_and_negative_once_it_has_expired() -> None:
    begin = BEGIN.timestamp()
    assert authority.days_left(PEM, begin) == 365
    assert authority.days_left(PEM, begin + 86400 * 364.5) == 0
    assert authority.days_left(PEM, begin + 86400 * 366) == -1


def test_for_how_many_days_it_was_issued() -> None:
    assert authority.days_valid(certificate(90)) == 90
    assert authority.days_valid("nothing") == 0


def test_a_fingerprint_is_shortened_for_messages() -> None:
    assert authority.short("a" * 64) == "a" * 16 + "…"
    assert authority.short("") == "none"


def test_for_which_names_it_is_valid() -> None:
    assert authority.names(certificate(names=("api.example.com", "10.0.0.1", "fd00:0::1"))) == {
        "api.example.com",
        "10.0.0.1",
        "fd00::1",
    }
    assert authority.names(PEM) == authority.names("nothing") == set()
