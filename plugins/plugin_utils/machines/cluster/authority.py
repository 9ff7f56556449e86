# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate authority of a cluster, by which machines that belong together are recognized. Pure.

cryptography is imported only when a certificate is read, as only installers of clusters need it on the controller.
"""

from __future__ import annotations

import collections.abc as c
import datetime
import hashlib
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

#: Days before the end from which certificates are renewed.
_SOON = 60
_EACH = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def fingerprint(pem: str) -> str:
    """SHA-256 of the first certificate in DER, as `openssl x509 -fingerprint` computes it, in lower case. Empty if there is none that can be read."""
    certificate = _read(pem)
    if certificate is None:
        return ""
    return hashlib.sha256(certificate.public_bytes(libraries().serialization.Encoding.DER)).hexdigest()


def key_hash(pem: str) -> str:
    """What kubeadm takes as caCertHashes: SHA-256 of the public key's SubjectPublicKeyInfo (RFC 7469), with its prefix.

    Raises HwaccelError if this is not a certificate.
    """
    certificate = _read(pem)
    if certificate is None:
        raise HwaccelError(
            "the cluster's certificate authority cannot be read", "", "", "compare it with that of another server"
        )
    formats = libraries().serialization
    key = certificate.public_key().public_bytes(formats.Encoding.DER, formats.PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def bundle(*texts: str) -> str:
    """The certificates of PEM texts in their order, each once."""
    found = dict.fromkeys(block for text in texts for block in _EACH.findall(text))
    return "".join(f"{block}\n" for block in found)


def days_left(pem: str, now: float) -> int | None:
    """Whole days until the first certificate expires, negative once it has. None if there is none. now: in seconds since 1970."""
    certificate = _read(pem)
    if certificate is None:
        return None
    left: datetime.timedelta = certificate.not_valid_after_utc - datetime.datetime.fromtimestamp(now, datetime.UTC)
    return left.days


def days_valid(pem: str) -> int:
    """Whole days for which the first certificate was issued, 0 if there is none."""
    certificate = _read(pem)
    if certificate is None:
        return 0
    valid: datetime.timedelta = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return valid.days


def lasting(texts: c.Iterable[str], now: float) -> tuple[int | None, bool]:
    """Whole days until the first of these certificates expires, None if there is none, and whether one of them is to be renewed. Those that are issued for
    less than half a year are renewed in their last third.
    """
    days, due = [], False
    for text in texts:
        if (left := days_left(text, now)) is not None:
            days.append(left)
            due = due or left < min(_SOON, days_valid(text) / 3)
    return min(days, default=None), due


def expiry(days: int | None, owner: str) -> str:
    """In words, empty if there is no certificate. days: until the first one expires. owner: whose it is."""
    if days is None:
        return ""
    when = f"expired {-days} days ago" if days < 0 else f"expires in {days} days"
    return f"a certificate of {owner} {when}"


def common_name(pem: str) -> str:
    """Whose the first certificate is. Empty if there is none that can be read."""
    certificate = _read(pem)
    if certificate is None:
        return ""
    found = certificate.subject.get_attributes_for_oid(libraries().x509.NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def names(pem: str) -> set[str]:
    """Names and addresses for which the first certificate is valid, addresses in their shortest form."""
    certificate = _read(pem)
    x509 = libraries().x509
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (AttributeError, x509.ExtensionNotFound):
        return set()
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def certificates(text: str) -> list[str]:
    """Those that a text has, in PEM."""
    return [f"{one}\n" for one in _EACH.findall(text)]


def issued(pem: str, by: str) -> bool:
    """Whether the first certificate was issued by this authority. False if one of them cannot be read."""
    certificate, issuer = _read(pem), _read(by)
    if certificate is None or issuer is None:
        return False
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, libraries().invalid_signature):
        return False
    return True


def cross_signed(new: str, old: str, key: str) -> str:
    """A certificate of the authority `new`, signed by the authority `old`, in PEM: whoever trusts only the old one trusts what the new one issues, as long as
    both are valid. key: of the old one, in PEM. Raises HwaccelError if one of them cannot be read, or the key is another one's.
    """
    successor, issuer, library = _read(new), _read(old), libraries()
    try:
        signer = library.serialization.load_pem_private_key(key.encode("ascii"), None)
        matches = signer.public_key() == issuer.public_key()
    except (AttributeError, ValueError, TypeError):
        matches = False
    if successor is None or not matches:
        next_step = "compare ca.crt and ca.key on the server"
        raise HwaccelError("the cluster's certificate authority cannot sign its successor", "", "", next_step)
    x509 = library.x509
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        x509.CertificateBuilder()
        .subject_name(successor.subject)
        .issuer_name(issuer.subject)
        .public_key(successor.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(max(one.not_valid_before_utc for one in (successor, issuer)))
        .not_valid_after(min(one.not_valid_after_utc for one in (successor, issuer)))
        # It distinguishes authorities of the same name.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    for kind in (x509.BasicConstraints, x509.KeyUsage, x509.SubjectKeyIdentifier):
        found = successor.extensions.get_extension_for_class(kind)
        builder = builder.add_extension(found.value, critical=found.critical)
    signed = builder.sign(signer, library.hashes.SHA256())
    return str(signed.public_bytes(library.serialization.Encoding.PEM).decode("ascii"))


def short(found: str) -> str:
    """A fingerprint in messages."""
    return f"{found[:16]}…" if found else "none"


def _read(pem: str) -> t.Any:
    block = _EACH.search(pem)
    if block is None:
        return None
    try:
        return libraries().x509.load_pem_x509_certificate(block.group().encode("utf-8", "replace"))
    except ValueError:
        return None


class _Library(t.NamedTuple):
    x509: t.Any
    serialization: t.Any
    hashes: t.Any
    invalid_signature: t.Any
    ec: t.Any
    rsa: t.Any


def libraries() -> _Library:
    """Raises HwaccelError if there is no cryptography."""
    try:
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
    except ImportError:
        raise HwaccelError(
            "the Python package cryptography is missing",
            "the Python of Ansible",
            "it reads the certificate authorities of clusters",
            "install it: pip install 'cryptography>=42.0'",
        ) from None
    return _Library(x509, serialization, hashes, InvalidSignature, ec, rsa)
