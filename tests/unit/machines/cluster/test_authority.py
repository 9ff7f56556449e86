# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a cluster's certificate authority, compared with OpenSSL's rules."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import ipaddress
import pathlib
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(days: int = 365, names: tuple[str, ...] = (), common: str = "kubernetes") -> str:
    """names: DNS names and addresses for which it is valid. common: whose it is."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])
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


@dataclasses.dataclass(frozen=True)
class Authority:
    """As kubeadm makes one: all have the same name."""

    key: ec.EllipticCurvePrivateKey
    pem: str

    @property
    def key_pem(self) -> str:
        return key_pem(self.key)

    def issue(self, key: ec.EllipticCurvePrivateKey, name: str) -> str:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = _builder(subject, key).issuer_name(_NAME)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        return _pem(builder.sign(self.key, hashes.SHA256()))


_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
_USAGE = dict.fromkeys(
    ("content_commitment", "data_encipherment", "key_agreement", "crl_sign", "encipher_only", "decipher_only"), False
)


def made(days: int = 3650) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_NAME, key, days).issuer_name(_NAME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    usage = x509.KeyUsage(digital_signature=True, key_encipherment=True, key_cert_sign=True, **_USAGE)
    builder = builder.add_extension(usage, critical=True)
    return Authority(key, _pem(builder.sign(key, hashes.SHA256())))


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode("ascii")


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 3650) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(BEGIN).not_valid_after(BEGIN + datetime.timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _pem(signed: x509.Certificate) -> str:
    return signed.public_bytes(serialization.Encoding.PEM).decode("ascii")


def accepted(trusted: str, sent: str, key: str, folder: pathlib.Path) -> str:
    """Why OpenSSL does not trust a server, empty if it does. sent: its certificates."""
    (folder / "server.pem").write_text(sent + key, encoding="ascii")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "server.pem")
    pipes = [ssl.MemoryBIO() for _each in range(2)]
    client = ssl.create_default_context(cadata=trusted).wrap_bio(pipes[0], pipes[1], server_hostname="api")
    server = serving.wrap_bio(pipes[1], pipes[0], server_side=True)
    for _round in range(5):
        for one in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                try:
                    one.do_handshake()
                except ssl.SSLCertVerificationError as error:
                    return error.verify_message
    return ""


def test_whoever_trusts_the_old_authority_trusts_what_the_new_one_issues(tmp_path: pathlib.Path) -> None:
    old, new = made(), made()
    key = ec.generate_private_key(ec.SECP256R1())
    leaf, cross = new.issue(key, "api"), authority.cross_signed(new.pem, old.pem, old.key_pem)
    assert "unable to get local issuer" in accepted(old.pem, leaf, key_pem(key), tmp_path)
    for trusted in (old.pem, old.pem + new.pem, new.pem + old.pem, new.pem):
        assert accepted(trusted, leaf + cross, key_pem(key), tmp_path) == ""
    assert accepted(made().pem, leaf + cross, key_pem(key), tmp_path)


def test_a_successor_is_valid_no_longer_than_both() -> None:
    old, new = made(30), made(3650)
    at = BEGIN.timestamp()
    assert authority.days_left(authority.cross_signed(new.pem, old.pem, old.key_pem), at) == 30
    assert authority.days_left(authority.cross_signed(old.pem, new.pem, new.key_pem), at) == 30


def test_only_the_key_of_the_old_authority_signs_its_successor() -> None:
    old, new = made(), made()
    for arguments in (
        (new.pem, old.pem, new.key_pem),
        ("", old.pem, old.key_pem),
        (new.pem, "", old.key_pem),
        (new.pem, old.pem, ""),
    ):
        with pytest.raises(HwaccelError, match="cannot sign its successor"):
            authority.cross_signed(*arguments)


def test_who_has_issued_a_certificate() -> None:
    old, new = made(), made()
    leaf = new.issue(KEY, "api")
    assert authority.issued(leaf, new.pem) and not authority.issued(leaf, old.pem)
    assert not authority.issued("", new.pem) and not authority.issued(leaf, "")
    assert authority.certificates(f"# comment\n{old.pem}{new.pem}") == [old.pem, new.pem]
