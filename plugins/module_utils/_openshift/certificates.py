# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates in files of an installation: whose they are and when they are valid. Pure.

RSA, ECDSA and Ed25519: with the feature gate ConfigurablePKI installers sign with ECDSA, and keys have other sizes than 2048 bits.
"""

from __future__ import annotations

import base64
import binascii
import collections.abc as c
import dataclasses
import datetime
import re
import typing as t
import warnings

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import packages

SIGNER, LEAF = "signer", "leaf"
#: Common names of signers of openshift-install (pkg/asset/tls). Those of its leaves do not end like that.
_SIGNERS = frozenset({"root-ca"})
_SIGNER_SUFFIX = "-signer"

_BEGIN = b"-----BEGIN CERTIFICATE-----"
#: Also indented, as in a ConfigMap. A script that cuts certificates out of a bundle has no block, because its lines have other characters.
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*+)-----END CERTIFICATE-----")
_LONGEST_SUBJECT = 300


class Unreadable(ValueError):
    """A certificate that cannot be read. Its text says why."""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """path: the file; position: which one in this file, from 1; key: such as "RSA 2048". Times are in UTC."""

    path: str
    position: int
    subject: str
    role: str
    key: str
    not_before: datetime.datetime
    not_after: datetime.datetime

    def __str__(self) -> str:
        return f"{self.subject} ({self.path})"


def certificates(text: bytes, path: str) -> c.Iterator[Certificate]:
    """Those in PEM (RFC 7468) that a text has. Raises Unreadable at one that cannot be read."""
    for position, block in enumerate(_BLOCK.finditer(text), 1):
        try:
            der = base64.b64decode(b"".join(block[1].split()), validate=True)
        except binascii.Error:
            raise Unreadable(f"the base64 of certificate {position} is not valid") from None
        yield _read(der, path, position)


def damaged(text: bytes) -> bool:
    """Whether a block begins that is not complete. Scripts can have such lines."""
    return text.count(_BEGIN) != sum(1 for _block in _BLOCK.finditer(text))


def _read(der: bytes, path: str, position: int) -> Certificate:
    library = packages.cryptography()
    with warnings.catch_warnings():
        # It warns of names with more than 64 characters, which node-bootstrapper's certificate has, and of serial numbers that RFC 5280 does not allow.
        warnings.simplefilter("ignore")
        try:
            read = library.x509.load_der_x509_certificate(der)
            names = [str(name.value) for name in read.subject.get_attributes_for_oid(library.x509.NameOID.COMMON_NAME)]
            return Certificate(
                path=path,
                position=position,
                subject=_shortened(read.subject.rfc4514_string()),
                role=_role(read, names[0] if names else "", library),
                key=_key(read, library),
                not_before=read.not_valid_before_utc,
                not_after=read.not_valid_after_utc,
            )
        except (ValueError, library.exceptions.UnsupportedAlgorithm) as error:
            reason = " ".join(str(error).split())[:120]
            raise Unreadable(f"certificate {position} cannot be read: {reason}") from None


def _role(read: t.Any, common_name: str, library: packages.Cryptography) -> str:
    """By name, and for names of others by its basic constraints."""
    if common_name in _SIGNERS or common_name.endswith(_SIGNER_SUFFIX):
        return SIGNER
    try:
        constraints = read.extensions.get_extension_for_class(library.x509.BasicConstraints).value
    except (library.x509.ExtensionNotFound, ValueError):
        return LEAF
    return SIGNER if constraints.ca else LEAF


def _key(read: t.Any, library: packages.Cryptography) -> str:
    try:
        key = read.public_key()
    except (ValueError, library.exceptions.UnsupportedAlgorithm):
        return "unknown"
    if isinstance(key, library.rsa.RSAPublicKey):
        return f"RSA {key.key_size}"
    if isinstance(key, library.ec.EllipticCurvePublicKey):
        return f"ECDSA {key.curve.name}"
    return "Ed25519" if isinstance(key, library.ed25519.Ed25519PublicKey) else "unknown"


def _shortened(subject: str) -> str:
    return subject if len(subject) <= _LONGEST_SUBJECT else f"{subject[:_LONGEST_SUBJECT]}…"
