# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the real nodes, signed by the authority of the sandbox that they join."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import ipaddress
import json
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclasses.dataclass(frozen=True)
class Identity:
    """A certificate and its key (PEM)."""

    certificate: str
    key: str


class Authority:
    """The certificate authority of a cluster's nodes."""

    def __init__(self, pki: pathlib.Path) -> None:
        self.certificate = (pki / "ca.crt").read_text(encoding="ascii")
        self._issuer = x509.load_pem_x509_certificate(self.certificate.encode()).subject
        key = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    def issue(
        self, name: str, *, groups: tuple[str, ...] = (), addresses: tuple[str, ...] = (), names: tuple[str, ...] = ()
    ) -> Identity:
        """A client certificate, or a server certificate if it has addresses or names."""
        key = ec.generate_private_key(ec.SECP256R1())
        oid = x509.NameOID
        attributes = [
            *(x509.NameAttribute(oid.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(oid.COMMON_NAME, name),
        ]
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(attributes))
            .issuer_name(self._issuer)
            .public_key(key.public_key())
        )
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(
            now + datetime.timedelta(days=1)
        )
        use = x509.ExtendedKeyUsageOID.SERVER_AUTH if addresses or names else x509.ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        if addresses or names:
            alternatives = [
                *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
                *(x509.DNSName(one) for one in names),
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Identity(certificate.public_bytes(serialization.Encoding.PEM).decode(), secret.decode())

    def kubeconfig(self, server: str, identity: Identity) -> str:
        def data(text: str) -> str:
            return base64.b64encode(text.encode()).decode()

        user = {"client-certificate-data": data(identity.certificate), "client-key-data": data(identity.key)}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {"name": "rig", "cluster": {"server": server, "certificate-authority-data": data(self.certificate)}}
                ],
                "users": [{"name": "node", "user": user}],
                "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "node"}}],
                "current-context": "rig",
            }
        )
