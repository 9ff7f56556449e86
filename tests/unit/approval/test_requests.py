# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading requests: what Go's parser and ours could read differently is refused."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.requests import LONGEST_PEM, of_object, read
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_what_a_kubelet_requests() -> None:
    found = read(encoded(s.with_rsa(cases.good_serving()).pem()))
    assert (found.common_name, found.organizations) == (f"system:node:{cases.WORKER}", ("system:nodes",))
    assert found.dns_names == (cases.WORKER, "worker-0")
    assert found.addresses == (cases.ADDRESS, cases.SECOND)
    assert (found.other_names, found.faults) == ((), {})
    assert len(found.fingerprint) == 64


def test_a_key_has_one_fingerprint_and_is_known_only_with_its_signature() -> None:
    key = s.ec_key()
    first, second = (read(encoded(filed.but(key=key).pem())) for filed in (cases.good_client(), cases.good_serving()))
    assert first.fingerprint == second.fingerprint
    forged = bytearray(cases.good_client().but(key=key).der())
    forged[-1] ^= 1
    assert read(encoded(s.pem(bytes(forged)))).fingerprint == ""


def test_the_last_line_end_may_be_missing() -> None:
    text = cases.good_client().pem()
    assert read(encoded(text.rstrip(b"\n"))).faults == {}
    assert "BAD_PEM" in read(encoded(text + b"\n")).faults


def test_a_signature_with_unused_bits_is_none() -> None:
    """Their value changes nothing for who verifies, so that two texts would be the same request."""
    while True:
        der = s.client(cases.NEW).der()
        signature = x509.load_der_x509_csr(der).signature
        # Only zeros may be unused.
        if not signature[-1] & 1:
            break
    at = len(der) - len(signature) - 1
    changed = der[:at] + b"\1" + der[at + 1 :]
    assert x509.load_der_x509_csr(changed).is_signature_valid
    assert set(read(_encoded(der)).faults) == set()
    assert set(read(_encoded(changed)).faults) == {"BAD_SIGNATURE"}


def _encoded(der: bytes) -> str:
    return base64.b64encode(s.pem(der)).decode()


def test_a_long_text_is_not_decoded() -> None:
    short, long = (encoded(b"A" * size) for size in (LONGEST_PEM, LONGEST_PEM + 4))
    assert "not exactly one PEM block" in read(short).faults["BAD_PEM"]
    assert f"more than {LONGEST_PEM} bytes" in read(long).faults["BAD_PEM"]


def test_names_in_a_second_request_for_extensions_are_not_overlooked() -> None:
    """Go reads the extensions of all such attributes, cryptography those of the first."""
    harmless, hidden = (requested(*s.dns(name)) for name in (cases.WORKER, "api-int.gpu.example.com"))
    one = read(encoded(s.pem(by_hand(harmless))))
    assert (one.dns_names, one.faults) == ((cases.WORKER,), {})
    for attributes in ((harmless, hidden), (requested(), hidden)):
        # In the order of DER. In the other one, Go reads it, and it is refused as a whole.
        found = read(encoded(s.pem(by_hand(*sorted(attributes)))))
        assert list(found.faults) == ["BAD_EXTENSION"]
        assert "other attributes than one request" in found.faults["BAD_EXTENSION"]
        assert list(read(encoded(s.pem(by_hand(*sorted(attributes, reverse=True))))).faults) == ["BAD_PEM"]


def test_names_twice_in_one_request_for_extensions() -> None:
    twice = requested(*s.dns(cases.WORKER), copies=2)
    assert "cannot be read" in read(encoded(s.pem(by_hand(twice)))).faults["BAD_EXTENSION"]


def der(tag: int, *parts: bytes) -> bytes:
    """One element (X.690)."""
    content = b"".join(parts)
    size = len(content).to_bytes(max(1, (len(content).bit_length() + 7) // 8), "big")
    length = size if len(content) < 128 else bytes((0x80 + len(size),)) + size
    return bytes((tag,)) + length + content


def requested(*names: x509.GeneralName, copies: int = 1) -> bytes:
    """An attribute that requests extensions (RFC 2985, 5.4.2): so many of subject alternative names, or none."""
    value = x509.SubjectAlternativeName(names).public_bytes() if names else b""
    extension = der(0x30, der(0x06, b"\x55\x1d\x11"), der(0x04, value)) if names else b""
    oid = der(0x06, b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e")
    return der(0x30, oid, der(0x31, der(0x30, extension * copies)))


def by_hand(*attributes: bytes) -> bytes:
    """A signed request with these attributes (RFC 2986, 4)."""
    key = s.ec_key()
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    name = s.subject(s.node_subject(cases.WORKER)).public_bytes()
    info = der(0x30, der(0x02, b"\0"), name, public, der(0xA0, *attributes))
    algorithm = der(0x30, der(0x06, b"\x2a\x86\x48\xce\x3d\x04\x03\x02"))
    return der(0x30, info, algorithm, der(0x03, b"\0", key.sign(info, ec.ECDSA(hashes.SHA256()))))


@pytest.mark.parametrize(
    ("conditions", "certificate", "pending"),
    [
        ((), "", True),
        (("Approved",), "", False),
        (("Denied",), "", False),
        (("Failed",), "", False),
        ((), "LS0t", False),
    ],
)
def test_a_request_is_pending_until_it_is_decided(conditions: tuple[str, ...], certificate: str, pending: bool) -> None:
    request = of_object(cases.good_client().but(conditions=conditions, certificate=certificate).object())
    assert request.pending is pending


def test_an_object_without_status_is_pending() -> None:
    obj = cases.good_client().object()
    del obj["status"]
    request = of_object(obj)
    assert (request.pending, request.kind, request.created) == (True, "client", s.NOW - 60)
