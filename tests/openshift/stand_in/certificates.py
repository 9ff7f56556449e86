# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private keys and certificates as the tool makes them (section 1 of behaviours.yml): RSA 2048 or ECDSA, serial numbers of 63 bits, SHA-256."""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import datetime
import hashlib
import pathlib
import random
import secrets
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import der

_O, _OU, _CN = "2.5.4.10", "2.5.4.11", "2.5.4.3"
_USES = {"client": "1.3.6.1.5.5.7.3.2", "server": "1.3.6.1.5.5.7.3.1"}
_NULL = b"\x05\x00"
_CURVES = {
    "P-256": (ec.SECP256R1(), hashes.SHA256(), "1.2.840.10045.4.3.2"),
    "P-384": (ec.SECP384R1(), hashes.SHA384(), "1.2.840.10045.4.3.3"),
    "P-521": (ec.SECP521R1(), hashes.SHA512(), "1.2.840.10045.4.3.4"),
}
_BY_SIZE = {256: "P-256", 384: "P-384", 521: "P-521"}
#: What a folder of keys holds at most; a run needs two dozen.
_KEPT_KEYS = 40


@dataclasses.dataclass(frozen=True)
class Subject:
    """Go writes organization, unit, common name, in this order."""

    common_name: str
    organizations: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    def encoded(self) -> bytes:
        return der.name((_O, self.organizations), (_OU, self.units), (_CN, (self.common_name,)))


class Key:
    """A private key."""

    def __init__(self, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> None:
        self._key = key

    @classmethod
    def read(cls, pem: bytes) -> Key:
        # Validation of an RSA key takes as long as its generation.
        key = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
        return cls(key)

    @classmethod
    def generate(cls, kind: str = "") -> Key:
        """kind: P-256, P-384, P-521, RSA-3072, or RSA 2048 without it."""
        if kind in _CURVES:
            return cls(ec.generate_private_key(_CURVES[kind][0]))
        return cls(rsa.generate_private_key(65537, int(kind.removeprefix("RSA-") or 2048)))

    def pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )

    def public_pem(self) -> bytes:
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def ssh(self) -> str:
        """The public key as a line of authorized_keys."""
        encoded = self._key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        return encoded.decode()

    def public_der(self) -> bytes:
        return self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def identifier(self) -> bytes:
        """Subject key identifier: SHA-1 of the public key's bits (RFC 5280, 4.2.1.2)."""
        return x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()).digest

    def algorithm(self) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return der.sequence(der.identifier("1.2.840.113549.1.1.11"), _NULL)
        return der.sequence(der.identifier(_CURVES[_BY_SIZE[self._key.curve.key_size]][2]))

    def sign(self, content: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(content, padding.PKCS1v15(), hashes.SHA256())
        return self._key.sign(content, ec.ECDSA(_CURVES[_BY_SIZE[self._key.curve.key_size]][1]))


class Keys:
    """Where a run takes its keys from: made anew, or, without its own kind, from a folder. No run takes a key twice."""

    def __init__(self, folder: str = "", kind: str = "") -> None:
        self._kind = kind
        self._folder = pathlib.Path(folder) if folder and not kind else None
        self._unused = list(self._folder.glob("*.pem")) if self._folder and self._folder.is_dir() else []
        self._keep = _KEPT_KEYS - len(self._unused)
        random.SystemRandom().shuffle(self._unused)

    def take(self, own: bool = False) -> Key:
        """own: one that no other run has."""
        if self._unused and not own:
            return Key.read(self._unused.pop().read_bytes())
        key = Key.generate(self._kind)
        if self._folder and not own and self._keep > 0:
            self._keep -= 1
            self._store(key.pem())
        return key

    def _store(self, pem: bytes) -> None:
        assert self._folder
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
            file.write(pem)
        pathlib.Path(file.name).rename(self._folder / f"{hashlib.sha256(pem).hexdigest()[:16]}.pem")


@dataclasses.dataclass(frozen=True)
class Pair:
    """A certificate in PEM and its key."""

    certificate: bytes
    key: Key

    def not_before(self) -> datetime.datetime:
        return x509.load_pem_x509_certificate(self.certificate).not_valid_before_utc


@dataclasses.dataclass(frozen=True)
class Signer:
    """Who signs: subject and pair. Leaves begin when their signer began."""

    subject: Subject
    pair: Pair


def issue(
    subject: Subject,
    key: Key,
    begin: datetime.datetime,
    end: datetime.datetime,
    signer: Signer | None = None,
    uses: c.Iterable[str] = (),
    names: c.Iterable[str] = (),
) -> bytes:
    """A certificate in PEM; self-signed and an authority without a signer."""
    by = signer.pair.key if signer else key
    usage = der.bits(b"\xa0", 5) if signer else der.bits(b"\xa4", 2)
    extensions = [der.extension("2.5.29.15", usage, critical=True)]
    if purposes := [der.identifier(_USES[one]) for one in uses]:
        extensions.append(der.extension("2.5.29.37", der.sequence(*purposes)))
    extensions += [
        der.extension("2.5.29.19", der.sequence(*(() if signer else (b"\x01\x01\xff",))), critical=True),
        der.extension("2.5.29.14", der.octets(key.identifier())),
    ]
    if signer:
        extensions.append(der.extension("2.5.29.35", der.sequence(der.value(0x80, by.identifier()))))
    if alternatives := list(names):
        extensions.append(der.extension("2.5.29.17", der.alternative_names(alternatives)))
    content = der.sequence(
        der.value(0xA0, der.integer(2)),
        der.integer(secrets.randbits(63)),
        by.algorithm(),
        (signer.subject if signer else subject).encoded(),
        der.sequence(der.moment(begin), der.moment(end)),
        subject.encoded(),
        key.public_der(),
        der.value(0xA3, der.sequence(*extensions)),
    )
    encoded = base64.b64encode(der.sequence(content, by.algorithm(), der.bits(by.sign(content)))).decode()
    lines = "\n".join(encoded[at : at + 64] for at in range(0, len(encoded), 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n".encode()
