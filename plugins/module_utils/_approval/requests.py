# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CertificateSigningRequest (certificates.k8s.io/v1) as plain data: who filed it, and what its PEM text requests. Pure.

The signer reads the same text with Go's crypto/x509. Whatever the two could read differently is refused here, so that what is judged is what is signed.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import collections.abc as c
import dataclasses
import functools
import hashlib
import ipaddress
import re
import time
import typing as t
import warnings

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.libraries import library
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import KINDS, NODE_PREFIX

#: A kubelet's request has about a kilobyte with RSA 2048, and 3 KiB with RSA 8192 and 30 names.
LONGEST_PEM = 16 * 1024
#: One block as Go's encoding/pem writes it, and nothing else: Go skips text before it and headers in it.
_PEM = re.compile(
    r"-----BEGIN CERTIFICATE REQUEST-----\n((?:[A-Za-z0-9+/=]{1,64}\n)+)-----END CERTIFICATE REQUEST-----\n?"
)
#: RFC 2985, 5.4.2. Go's CreateCertificateRequest writes no other attribute.
_EXTENSION_REQUEST = "1.2.840.113549.1.9.14"
_SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
_COMMON_NAME, _ORGANIZATION = "2.5.4.3", "2.5.4.10"
_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_HASHES = ("sha256", "sha384", "sha512")
#: Above it, verifying a signature becomes expensive, which anybody who may file requests could use.
_SMALLEST_RSA, _LARGEST_RSA = 2048, 8192


@dataclasses.dataclass(frozen=True)
class RequestedCertificate:
    """What the PEM text requests. faults: problems by code of `reasons`, each with what was observed.

    addresses: in canonical form. fingerprint: SHA-256 of the public key, "" if it cannot be used.
    """

    common_name: str = ""
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    #: Subject alternative names of other types.
    other_names: tuple[str, ...] = ()
    fingerprint: str = ""
    faults: c.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def has_names(self) -> bool:
        return bool(self.dns_names or self.addresses or self.other_names)


@dataclasses.dataclass(frozen=True)
class SigningRequest:
    """One object as the API server stored it. created: seconds since 1970. pem: base64, as in the object."""

    name: str
    uid: str
    signer: str
    username: str
    groups: tuple[str, ...]
    extra: tuple[str, ...]
    usages: tuple[str, ...]
    created: float
    expiration: int | None
    pem: str
    conditions: frozenset[str]
    issued: bool

    @property
    def kind(self) -> str:
        """client or serving, "" for another signer."""
        return next((kind for kind, signer in KINDS.items() if signer == self.signer), "")

    @property
    def pending(self) -> bool:
        return not self.conditions and not self.issued

    @property
    def requestor_node(self) -> str:
        """The node that filed it, "" if it was no node."""
        return self.username.removeprefix(NODE_PREFIX) if self.username.startswith(NODE_PREFIX) else ""


def of_object(obj: c.Mapping[str, t.Any]) -> SigningRequest:
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    conditions = (one for one in status.get("conditions") or () if one.get("status", "True") == "True")
    return SigningRequest(
        metadata["name"],
        metadata.get("uid") or "",
        spec.get("signerName") or "",
        spec.get("username") or "",
        tuple(spec.get("groups") or ()),
        tuple(spec.get("extra") or ()),
        tuple(spec.get("usages") or ()),
        seconds(metadata.get("creationTimestamp") or ""),
        spec.get("expirationSeconds"),
        spec.get("request") or "",
        frozenset(str(one.get("type")) for one in conditions),
        bool(status.get("certificate")),
    )


def seconds(timestamp: str) -> float:
    """Of a timestamp of Kubernetes, since 1970; 0 if there is none, so that a request counts as old."""
    try:
        return float(calendar.timegm(time.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return 0.0


@functools.lru_cache(maxsize=1024)
def read(encoded: str) -> RequestedCertificate:
    """encoded: base64 of the PEM text, as in `spec.request`. Kept, because requests are judged again while others are awaited."""
    try:
        found = library().x509.load_der_x509_csr(_der(encoded))
    except library().errors as error:
        return RequestedCertificate(faults={"BAD_PEM": f"the request cannot be read: {_short(error)}"})
    faults: dict[str, str] = {}
    common_name, organizations = _subject(found, faults)
    names = _names(found, faults)
    return RequestedCertificate(common_name, organizations, *names, _key(found, faults), faults)


def _der(encoded: str) -> bytes:
    if len(encoded) > LONGEST_PEM * 4 // 3 + 4:
        raise ValueError(f"it has more than {LONGEST_PEM} bytes")
    text = base64.b64decode(encoded, validate=True).decode("ascii")
    block = _PEM.fullmatch(text)
    if block is None:
        raise ValueError("it is not exactly one PEM block CERTIFICATE REQUEST")
    return base64.b64decode(block[1].replace("\n", ""), validate=True)


def _subject(found: t.Any, faults: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Common name and organizations."""
    values: dict[str, list[str]] = {}
    try:
        with warnings.catch_warnings():
            # cryptography warns of common names of more than 64 characters, which nodes with long names have.
            warnings.simplefilter("ignore")
            for part in found.subject.rdns:
                attributes = list(part)
                if len(attributes) != 1:
                    faults.setdefault("BAD_SUBJECT", "a part of its subject has several values")
                for attribute in attributes:
                    values.setdefault(attribute.oid.dotted_string, []).append(str(attribute.value))
    except library().errors as error:
        faults["BAD_SUBJECT"] = f"its subject cannot be read: {_short(error)}"
        return "", ()
    if more := sorted(values.keys() - {_COMMON_NAME, _ORGANIZATION}):
        faults.setdefault("BAD_SUBJECT", f"its subject has more than organization and common name: {', '.join(more)}")
    common_names = values.get(_COMMON_NAME, [])
    if len(common_names) != 1:
        faults.setdefault("BAD_SUBJECT", f"its subject has {len(common_names)} common names")
    return "".join(common_names[:1]), tuple(values.get(_ORGANIZATION, ()))


def _names(found: t.Any, faults: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """DNS names, addresses and other alternative names."""
    try:
        attributes = [attribute.oid.dotted_string for attribute in found.attributes]
        extensions = list(found.extensions)
    except library().errors as error:
        faults["BAD_EXTENSION"] = f"its extensions cannot be read: {_short(error)}"
        return (), (), ()
    # Go reads the extensions of all such attributes, cryptography those of the first.
    if attributes not in ([], [_EXTENSION_REQUEST]):
        faults["BAD_EXTENSION"] = f"it has other attributes than one request for extensions: {', '.join(attributes)}"
    others = [one.oid.dotted_string for one in extensions if one.oid.dotted_string != _SUBJECT_ALTERNATIVE_NAME]
    if others:
        faults.setdefault("BAD_EXTENSION", f"it requests other extensions than names: {', '.join(others)}")
    return alternative_names(one.value for one in extensions if one.oid.dotted_string == _SUBJECT_ALTERNATIVE_NAME)


def alternative_names(values: c.Iterable[t.Any]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """DNS names, addresses and other names of extensions. An address in IPv6 form of an IPv4 address, or a network, is another name."""
    x509 = library().x509
    names, addresses, others = [], [], []
    for name in (name for value in values for name in value):
        if isinstance(name, x509.DNSName):
            names.append(name.value)
        elif not isinstance(name, x509.IPAddress):
            others.append(type(name).__name__)
        elif not isinstance(name.value, ipaddress.IPv4Address | ipaddress.IPv6Address):
            others.append(f"network {name.value}")
        elif getattr(name.value, "ipv4_mapped", None):
            others.append(f"IPv4-mapped address {name.value}")
        else:
            addresses.append(str(name.value))
    return tuple(names), tuple(addresses), tuple(others)


def _key(found: t.Any, faults: dict[str, str]) -> str:
    """Fingerprint of the public key. Only its owner can have made the signature, so a key that is not proven has none."""
    cryptography = library()
    try:
        key = found.public_key()
        if isinstance(key, cryptography.rsa.RSAPublicKey):
            if not _SMALLEST_RSA <= key.key_size <= _LARGEST_RSA:
                faults["BAD_KEY"] = f"its key is RSA with {key.key_size} bits"
        elif not isinstance(key, cryptography.ec.EllipticCurvePublicKey):
            faults["BAD_KEY"] = f"its key is {type(key).__name__.removesuffix('PublicKey')}"
        elif key.curve.name not in _CURVES:
            faults["BAD_KEY"] = f"its key is on the curve {key.curve.name}"
    except cryptography.errors as error:
        faults["BAD_KEY"] = f"its key cannot be used: {_short(error)}"
    if "BAD_KEY" in faults:
        return ""
    try:
        signed = getattr(found.signature_hash_algorithm, "name", "") in _HASHES and found.is_signature_valid
    except cryptography.errors:
        signed = False
    if not signed:
        faults["BAD_SIGNATURE"] = "it is not signed with the key that it names, by SHA-256, SHA-384 or SHA-512"
        return ""
    kind = cryptography.serialization
    # Bits of a bit string can be unused, which Go shifts out and others ignore. The byte before its contents counts them.
    if found.public_bytes(kind.Encoding.DER)[-len(found.signature) - 1]:
        faults["BAD_SIGNATURE"] = "its signature has unused bits"
        return ""
    return hashlib.sha256(key.public_bytes(kind.Encoding.DER, kind.PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _short(error: Exception) -> str:
    if isinstance(error, binascii.Error | UnicodeDecodeError):
        return "it is not base64 of a PEM text"
    return " ".join(str(error).split())[:120] or type(error).__name__
