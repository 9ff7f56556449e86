# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests as kubelets file them, and changed ones: CertificateSigningRequests with real keys and signatures, and certificates of a test CA."""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import datetime
import functools
import ipaddress
import time
import typing as t
import warnings

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.x509.oid import NameOID

Obj = dict[str, t.Any]

CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
BOOTSTRAPPER_GROUPS = (
    "system:serviceaccounts",
    "system:serviceaccounts:openshift-machine-config-operator",
    "system:authenticated",
)
NODE_GROUPS = ("system:nodes", "system:authenticated")
#: Bootstrap identities by profile.
REQUESTORS = {
    "openshift": (BOOTSTRAPPER, BOOTSTRAPPER_GROUPS),
    "kubeadm": (
        "system:bootstrap:abcdef",
        ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"),
    ),
    "custom": ("joiner", ("joiners", "system:authenticated")),
}
NOW = 1_800_000_000.0

Name = tuple[str, str]


@functools.cache
def rsa_key(bits: int = 2048, number: int = 0) -> rsa.RSAPrivateKey:
    """number: another one has another key."""
    return rsa.generate_private_key(65537, bits)


def ec_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


@functools.cache
def odd_key(kind: str) -> t.Any:
    """Keys that no signer should accept."""
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind == "dsa":
        return dsa.generate_private_key(2048)
    return ec.generate_private_key(ec.SECP256K1())


def _same(text: t.Any) -> t.Any:
    return text


@dataclasses.dataclass(frozen=True)
class Filed:
    """One request. subject: attribute types and values, each a part of its own, or several in one part where it is a tuple of pairs.

    names: alternative names. extensions: further ones. written: changes the PEM text. encoded: changes its base64.
    """

    name: str = "csr-1"
    signer: str = CLIENT
    username: str = BOOTSTRAPPER
    groups: tuple[str, ...] = BOOTSTRAPPER_GROUPS
    usages: tuple[str, ...] = ("digital signature", "client auth")
    subject: tuple[t.Any, ...] = ()
    names: tuple[x509.GeneralName, ...] = ()
    extensions: tuple[x509.ExtensionType, ...] = ()
    attributes: tuple[tuple[x509.ObjectIdentifier, bytes], ...] = ()
    key: t.Any = None
    age: float = 60.0
    uid: str = ""
    extra: c.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    expiration: int | None = None
    conditions: tuple[str, ...] = ()
    certificate: str = ""
    digest: t.Any = dataclasses.field(default_factory=hashes.SHA256)
    written: c.Callable[[bytes], bytes] = _same
    encoded: c.Callable[[str], str] = _same

    def but(self, **changes: t.Any) -> Filed:
        return dataclasses.replace(self, **changes)

    def der(self) -> bytes:
        builder = x509.CertificateSigningRequestBuilder().subject_name(subject(self.subject))
        if self.names:
            builder = builder.add_extension(x509.SubjectAlternativeName(self.names), critical=False)
        for extension in self.extensions:
            builder = builder.add_extension(extension, critical=False)
        for oid, value in self.attributes:
            builder = builder.add_attribute(oid, value)
        key = self.key or ec_key()
        digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else self.digest
        return builder.sign(key, digest).public_bytes(serialization.Encoding.DER)

    def pem(self) -> bytes:
        return self.written(pem(self.der()))

    def object(self, now: float = NOW) -> Obj:
        """As the API server stores it."""
        spec: Obj = {
            "request": self.encoded(base64.b64encode(self.pem()).decode()),
            "signerName": self.signer,
            "username": self.username,
            "groups": list(self.groups),
            "usages": list(self.usages),
        }
        if self.extra:
            spec["extra"] = dict(self.extra)
        if self.expiration is not None:
            spec["expirationSeconds"] = self.expiration
        status: Obj = {"conditions": [{"type": one, "status": "True", "reason": "Test"} for one in self.conditions]}
        if self.certificate:
            status["certificate"] = self.certificate
        metadata = {
            "name": self.name,
            "uid": self.uid or f"uid-{self.name}",
            "creationTimestamp": stamp(now - self.age),
        }
        return {"kind": "CertificateSigningRequest", "metadata": metadata, "spec": spec, "status": status}


def pem(der: bytes, label: str = "CERTIFICATE REQUEST") -> bytes:
    text = base64.b64encode(der).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def subject(parts: c.Iterable[t.Any]) -> x509.Name:
    """Go writes and reads common names of any length, of which cryptography warns above 64 characters."""
    groups = [part if isinstance(part[0], tuple) else (part,) for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x509.Name(
            [
                x509.RelativeDistinguishedName(
                    [x509.NameAttribute(oid, value, _validate=False) for oid, value in group]
                )
                for group in groups
            ]
        )


def node_subject(node: str) -> tuple[t.Any, ...]:
    """In the order in which Go writes it."""
    return ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{node}"))


def dns(*names: str) -> tuple[x509.GeneralName, ...]:
    return tuple(map(x509.DNSName, names))


def ips(*addresses: str) -> tuple[x509.GeneralName, ...]:
    return tuple(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)


def client(node: str, profile: str = "openshift", **changes: t.Any) -> Filed:
    """A kubelet's first request."""
    username, groups = REQUESTORS[profile]
    filed = Filed(f"csr-{node}", username=username, groups=groups, subject=node_subject(node))
    return filed.but(**changes)


def serving(node: str, *names: x509.GeneralName, **changes: t.Any) -> Filed:
    """A kubelet's request for a serving certificate."""
    filed = Filed(
        f"csr-{node}-serving",
        SERVING,
        f"system:node:{node}",
        NODE_GROUPS,
        ("digital signature", "server auth"),
        node_subject(node),
        names,
    )
    return filed.but(**changes)


def with_rsa(filed: Filed, number: int = 0) -> Filed:
    """The request of a kubelet with an RSA key, which asks for key encipherment too."""
    return filed.but(key=rsa_key(number=number), usages=("key encipherment", *filed.usages))


class Authority:
    """A CA that signs serving certificates."""

    def __init__(self, name: str = "kubelet-signer") -> None:
        self.key = ec_key()
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, (), NOW - 3600, NOW + 3600 * 24 * 365)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(
        self, node: str, *names: x509.GeneralName, start: float = NOW - 600, end: float = NOW + 3600 * 24 * 30
    ) -> bytes:
        """DER of a serving certificate."""
        return self._sign(subject(node_subject(node)), ec_key(), names, start, end).public_bytes(
            serialization.Encoding.DER
        )

    def _sign(
        self, of: x509.Name, key: t.Any, names: c.Sequence[x509.GeneralName], start: float, end: float
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(of)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.datetime.fromtimestamp(start, datetime.UTC))
            .not_valid_after(datetime.datetime.fromtimestamp(end, datetime.UTC))
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())
