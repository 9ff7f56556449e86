# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New certificate authorities of K3s, compared with OpenSSL's rules."""

from __future__ import annotations

import functools
import hashlib
import pathlib

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster import test_authority as certificates

NOW = certificates.BEGIN.timestamp() + 86400 * 100
#: The last of a chain that was replaced before, and the first ones.
CHAIN = ("issuing", "crossed", "root", "old")


@functools.cache
def first() -> dict[str, str]:
    """As K3s makes them: each has issued itself."""
    found = {authorities.SERVICE_KEY: "-----BEGIN RSA PRIVATE KEY-----\nold\n-----END RSA PRIVATE KEY-----\n"}
    for kind in authorities.KINDS:
        one = certificates.made()
        found |= dict(zip(authorities.paths(kind), (one.pem, one.key_pem), strict=True))
    return found


@functools.cache
def second() -> dict[str, str]:
    return authorities.successors(first(), NOW)


@functools.cache
def third() -> dict[str, str]:
    return authorities.successors(second(), NOW)


def chain(files: dict[str, str], kind: str) -> dict[str, str]:
    return dict(zip(CHAIN, authority.certificates(files[f"{kind}-ca.crt"]), strict=True))


@pytest.mark.parametrize("kind", authorities.KINDS)
@pytest.mark.parametrize(("before", "after"), [(first, second), (second, third)])
def test_the_new_root_is_signed_by_itself_and_by_the_old_one(kind: str, before: object, after: object) -> None:
    assert callable(before) and callable(after)
    found, old = chain(after(), kind), authority.certificates(before()[f"{kind}-ca.crt"])
    assert authority.issued(found["issuing"], found["root"]) and authority.issued(found["issuing"], found["crossed"])
    assert authority.issued(found["root"], found["root"]) and authority.issued(found["crossed"], found["old"])
    # Of a chain that was replaced before it is the root, not what issues.
    assert found["old"] == old[2 if len(old) == 4 else 0]
    assert authority.fingerprint(found["issuing"]) not in map(authority.fingerprint, old)


def test_files_are_those_that_k3s_reads() -> None:
    assert sorted(second()) == sorted(authorities.files()) == sorted(first())
    assert "etcd/peer-ca.crt" in second() and len(second()) == 11


def test_the_first_key_is_that_of_what_issues_and_the_other_one_that_of_its_root() -> None:
    for kind in authorities.KINDS:
        keys = second()[f"{kind}-ca.key"].split("-----END EC PRIVATE KEY-----\n")[:-1]
        loaded = [
            serialization.load_pem_private_key(f"{one}-----END EC PRIVATE KEY-----".encode(), None) for one in keys
        ]
        found = chain(second(), kind)
        for key, name in zip(loaded, ("issuing", "root"), strict=True):
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
            read = authority.libraries().x509.load_pem_x509_certificate(found[name].encode())
            assert read.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)


def test_tokens_of_service_accounts_get_another_key_beside_that_of_before() -> None:
    for before, after in ((first(), second()), (second(), third())):
        assert after[authorities.SERVICE_KEY].endswith(before[authorities.SERVICE_KEY])
        assert after[authorities.SERVICE_KEY].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert third()[authorities.SERVICE_KEY].count("BEGIN RSA PRIVATE KEY") == 3


def test_openssl_trusts_what_they_issue_by_the_old_one_or_the_new_one_alone(tmp_path: pathlib.Path) -> None:
    bundle, keys = second()["server-ca.crt"], second()["server-ca.key"]
    found, key = chain(second(), "server"), ec.generate_private_key(ec.SECP256R1())
    issuer = serialization.load_pem_private_key(keys.encode(), None)
    assert isinstance(issuer, ec.EllipticCurvePrivateKey)
    leaf = issued(found["issuing"], issuer, key)
    for trusted in (found["old"], found["root"], bundle):
        assert certificates.accepted(trusted, leaf + bundle, certificates.key_pem(key), tmp_path) == ""
    other = certificates.made().pem
    assert certificates.accepted(other, leaf + bundle, certificates.key_pem(key), tmp_path)


def issued(by: str, signer: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey) -> str:
    """A certificate of the host api."""
    x509 = authority.libraries().x509
    issuer = x509.load_pem_x509_certificate(by.encode())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "api")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(issuer.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("api")]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, authority.libraries().hashes.SHA256())
    )
    return str(signed.public_bytes(serialization.Encoding.PEM).decode("ascii"))


def test_they_are_valid_for_ten_years_and_for_clocks_that_are_behind() -> None:
    found = chain(second(), "client")
    for name in ("issuing", "root"):
        assert authority.days_valid(found[name]) == 3650
        assert authority.days_left(found[name], NOW) == 3649
        read = authority.libraries().x509.load_pem_x509_certificate(found[name].encode())
        assert read.not_valid_before_utc.timestamp() == NOW - 3600
    # What the old one has signed ends with it.
    assert authority.days_left(found["crossed"], NOW) == authority.days_left(found["old"], NOW)


def test_tokens_have_the_hash_of_the_file_or_of_the_root() -> None:
    one = first()["server-ca.crt"]
    assert authorities.hash_of(one) == hashlib.sha256(one.encode()).hexdigest()
    assert authorities.hash_of(second()["server-ca.crt"]) == authority.fingerprint(chain(second(), "server")["root"])
    assert authorities.hash_of(third()["server-ca.crt"]) == authority.fingerprint(chain(third(), "server")["root"])
    # Only the root counts.
    renewed = second()["server-ca.crt"].replace(chain(second(), "server")["crossed"], "")
    assert authorities.hash_of(renewed) == authorities.hash_of(second()["server-ca.crt"])
    assert authorities.hash_of("") == ""


@pytest.mark.parametrize("keys", ["", "issuing"])
def test_a_root_whose_key_is_elsewhere_has_no_successor(keys: str) -> None:
    text = second()["client-ca.key"].split("-----END")[0] + "-----END EC PRIVATE KEY-----\n" if keys else ""
    with pytest.raises(HwaccelError, match="the key of the root of K3s' authority client is not there"):
        authorities.successors({**second(), "client-ca.key": text}, NOW)


def test_a_key_of_another_authority_is_refused() -> None:
    with pytest.raises(HwaccelError, match="cannot sign its successor") as error:
        authorities.successors({**first(), "client-ca.key": first()["server-ca.key"]}, NOW)
    assert "PRIVATE" not in str(error.value)
