# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a sandbox: it has its own three certificate authorities and uses none of the machine.

The cluster's CA signs clients of the API server. etcd has another one, so that these are not clients of etcd. The
third is for the aggregation layer.
"""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import pathlib
import shutil
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

#: First address of the service network, at which pods would reach the API server.
SERVICE_NETWORK = "10.96.0.0/16"
_VALID = datetime.timedelta(days=3650)


@dataclasses.dataclass(frozen=True)
class Subject:
    """One certificate to create."""

    file: str
    common_name: str
    authority: str = "ca"
    groups: tuple[str, ...] = ()
    #: Names and addresses of a server; () means a client certificate.
    names: tuple[str, ...] = ()


_LOOPBACK = ("127.0.0.1", "::1", "localhost")
SUBJECTS = (
    Subject(
        "apiserver",
        "kube-apiserver",
        names=(*_LOOPBACK, "10.96.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    ),
    Subject("controllers", "sandbox-controllers", names=_LOOPBACK),
    Subject("kubelet", "sandbox-kubelets", names=_LOOPBACK),
    Subject("kubelet-client", "kube-apiserver-kubelet-client"),
    Subject("admin", "hwaccel-sandbox-admin", groups=("system:masters",)),
    Subject("kube-controller-manager", "system:kube-controller-manager"),
    Subject("kube-scheduler", "system:kube-scheduler"),
    Subject("kwok", "hwaccel-kwok"),
    Subject("fleet-agent", "hwaccel-fleet-agent", groups=("system:masters",)),
    Subject("etcd", "etcd", authority="etcd-ca", names=_LOOPBACK),
    Subject("etcd-client", "kube-apiserver", authority="etcd-ca"),
    Subject("front-proxy-client", "front-proxy-client", authority="front-proxy-ca"),
)
AUTHORITIES = {
    "ca": "hwaccel-sandbox",
    "etcd-ca": "hwaccel-sandbox-etcd",
    "front-proxy-ca": "hwaccel-sandbox-front-proxy",
}


def ensure_pki(folder: pathlib.Path) -> bool:
    """Creates all keys and certificates, or none if the run is interrupted. False if they exist."""
    if folder.is_dir():
        return False
    crypto = _Crypto()
    making = folder.with_name(f".{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700, parents=True)
    authorities = {name: crypto.authority(making, name, common_name) for name, common_name in AUTHORITIES.items()}
    for subject in SUBJECTS:
        crypto.certificate(making, subject, authorities[subject.authority])
    crypto.signing_key(making / "service-accounts")
    making.rename(folder)
    return True


class _Crypto:
    """The required calls of `cryptography`, which is imported only when a sandbox is created."""

    def __init__(self) -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError as error:
            raise HwaccelError(
                "the Python package cryptography is missing",
                "module sandbox",
                str(error),
                "install it: pip install cryptography",
            ) from error
        self.x509, self.hashes, self.serialization, self.ec = x509, hashes, serialization, ec

    def authority(self, folder: pathlib.Path, file: str, common_name: str) -> tuple[t.Any, t.Any]:
        key = self.ec.generate_private_key(self.ec.SECP256R1())
        name = self._name(common_name, ())
        builder = self._builder(name, name, key).add_extension(
            self.x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        certificate = builder.add_extension(self._usage(sign=True), critical=True).sign(key, self.hashes.SHA256())
        self._write(folder / file, key, certificate)
        return certificate, key

    def certificate(self, folder: pathlib.Path, subject: Subject, authority: tuple[t.Any, t.Any]) -> None:
        issuer, issuer_key = authority
        key = self.ec.generate_private_key(self.ec.SECP256R1())
        uses = [self.x509.ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._builder(self._name(subject.common_name, subject.groups), issuer.subject, key)
        if subject.names:
            uses.append(self.x509.ExtendedKeyUsageOID.SERVER_AUTH)
            names = self.x509.SubjectAlternativeName([self._alternative(name) for name in subject.names])
            builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(self._usage(sign=False), critical=True).add_extension(
            self.x509.ExtendedKeyUsage(uses), critical=False
        )
        self._write(folder / subject.file, key, builder.sign(issuer_key, self.hashes.SHA256()))

    def signing_key(self, path: pathlib.Path) -> None:
        key = self.ec.generate_private_key(self.ec.SECP256R1())
        self._write_key(path.with_suffix(".key"), key)
        public = key.public_key().public_bytes(
            self.serialization.Encoding.PEM, self.serialization.PublicFormat.SubjectPublicKeyInfo
        )
        path.with_suffix(".pub").write_bytes(public)

    def _name(self, common_name: str, groups: tuple[str, ...]) -> t.Any:
        oid = self.x509.NameOID
        attributes = [self.x509.NameAttribute(oid.ORGANIZATION_NAME, group) for group in groups]
        return self.x509.Name([*attributes, self.x509.NameAttribute(oid.COMMON_NAME, common_name)])

    def _builder(self, subject: t.Any, issuer: t.Any, key: t.Any) -> t.Any:
        now = datetime.datetime.now(datetime.UTC)
        builder = self.x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        # It is valid from an hour ago, because clocks of containers and hosts differ.
        return (
            builder.serial_number(self.x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + _VALID)
        )

    def _usage(self, *, sign: bool) -> t.Any:
        return self.x509.KeyUsage(
            digital_signature=True,
            key_encipherment=not sign,
            key_cert_sign=sign,
            crl_sign=sign,
            content_commitment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )

    def _alternative(self, name: str) -> t.Any:
        try:
            return self.x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return self.x509.DNSName(name)

    def _write(self, path: pathlib.Path, key: t.Any, certificate: t.Any) -> None:
        self._write_key(path.with_suffix(".key"), key)
        path.with_suffix(".crt").write_bytes(certificate.public_bytes(self.serialization.Encoding.PEM))

    def _write_key(self, path: pathlib.Path, key: t.Any) -> None:
        kind = self.serialization
        path.touch(mode=0o600)
        path.write_bytes(key.private_bytes(kind.Encoding.PEM, kind.PrivateFormat.PKCS8, kind.NoEncryption()))
