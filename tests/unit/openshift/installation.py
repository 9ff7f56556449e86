# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ignition files of an installation, as `openshift-install create ignition-configs` writes them: certificates with their names and lifetimes, and the same
number of files, keys and units. One key signs everything, because nothing here verifies a signature.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import functools
import json
import typing as t
import warnings

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

NOW = datetime.datetime(2026, 11, 30, 6, 0, tzinfo=datetime.UTC)
DAY, YEAR = datetime.timedelta(days=1), datetime.timedelta(days=365)
TLS, HOME = "/opt/openshift/tls", "/root"
BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
PULL_SECRET = '{"auths":{"registry.example.com":{"auth":"cGxhbnRlZDpwdWxsLXNlY3JldA=="}}}'

#: Files of certificates by their lifetime in days: name, and the common names of the certificates in it.
_ONE_DAY = {
    "kubelet-signer": ("kubelet-signer",),
    "aggregator-signer": ("aggregator-signer",),
    "aggregator-client": ("aggregator",),
    "apiserver-proxy": ("system:kube-apiserver-proxy",),
    "kube-apiserver-proxy": ("system:kube-apiserver-proxy",),
    "kube-apiserver-localhost-server": ("system:kube-apiserver",),
    "kube-apiserver-service-network-server": ("system:kube-apiserver",),
    "kube-apiserver-lb-server": ("system:kube-apiserver",),
    "kube-apiserver-internal-lb-server": ("system:kube-apiserver",),
    "aggregator-ca": ("aggregator-signer",),
    "aggregator-ca-bundle": ("aggregator-signer",),
    "kubelet-client-ca-bundle": ("kubelet-signer",),
    "kubelet-serving-ca-bundle": ("kubelet-signer",),
}
_ONE_YEAR = {
    "kube-apiserver-to-kubelet-signer": ("kube-apiserver-to-kubelet-signer",),
    "kube-apiserver-to-kubelet-client": ("system:kube-apiserver",),
    "kube-apiserver-to-kubelet-ca-bundle": ("kube-apiserver-to-kubelet-signer",),
    "kube-control-plane-signer": ("kube-control-plane-signer",),
    "kube-control-plane-ca-bundle": ("kube-control-plane-signer", "kube-apiserver-to-kubelet-signer"),
    "kube-control-plane-kube-controller-manager-client": ("system:admin",),
    "kube-control-plane-kube-scheduler-client": ("system:admin",),
}
_SIGNERS = ("kube-apiserver-localhost-signer", "kube-apiserver-service-network-signer", "kube-apiserver-lb-signer")
_TEN_YEARS = {
    "root-ca": ("root-ca",),
    "machine-config-server": ("system:machine-config-server",),
    "admin-kubeconfig-signer": ("admin-kubeconfig-signer",),
    "admin-kubeconfig-client": ("system:admin",),
    "admin-kubeconfig-ca-bundle": ("admin-kubeconfig-signer",),
    **{name: (name,) for name in _SIGNERS},
    "kube-apiserver-complete-server-ca-bundle": _SIGNERS,
    "kube-apiserver-complete-client-ca-bundle": (
        "admin-kubeconfig-signer",
        "kubelet-bootstrap-kubeconfig-signer",
        *_SIGNERS,
        "root-ca",
    ),
    "kubelet-bootstrap-kubeconfig-signer": ("kubelet-bootstrap-kubeconfig-signer",),
    "kubelet-bootstrap-kubeconfig-ca-bundle": ("kubelet-bootstrap-kubeconfig-signer",),
    "kubelet-bootstrap-kubeconfig-client": (BOOTSTRAPPER,),
    "journal-gatewayd": ("journal-gatewayd",),
    "service-ca-bundle": ("root-ca", *_SIGNERS, "admin-kubeconfig-signer", "journal-gatewayd"),
}
_KEYS = 21
_UNITS = (
    ("bootkube.service", None),
    ("kubelet.service", True),
    ("approve-csr.service", True),
    ("progress.service", True),
    ("release-image.service", None),
    ("crio-configure.service", None),
    ("chown-gatewayd-key.service", True),
    ("systemd-journal-gatewayd.socket", True),
    ("node-image-pull.service", None),
    ("node-image-overlay.service", None),
)


@functools.cache
def key(algorithm: str = "rsa") -> t.Any:
    """algorithm: rsa, ecdsa or ed25519."""
    if algorithm == "rsa":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP384R1()) if algorithm == "ecdsa" else ed25519.Ed25519PrivateKey.generate()


@functools.cache
def certificate(
    common_name: str,
    start: datetime.datetime,
    lifetime: datetime.timedelta,
    algorithm: str = "rsa",
    authority: bool | None = None,
) -> str:
    """In PEM."""
    signer = key(algorithm)
    with warnings.catch_warnings():
        # It does so for the name with 73 characters.
        warnings.simplefilter("ignore")
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name, _validate=False)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(signer.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
    )
    if authority is not None:
        builder = builder.add_extension(x509.BasicConstraints(authority, None), critical=True)
    signed = builder.sign(signer, None if algorithm == "ed25519" else hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode("ascii")


def private_key(algorithm: str = "rsa") -> str:
    formats = serialization.PrivateFormat
    form = formats.TraditionalOpenSSL if algorithm != "ed25519" else formats.PKCS8
    return key(algorithm).private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode("ascii")


def source(contents: str | bytes) -> str:
    data = contents.encode("utf-8") if isinstance(contents, str) else contents
    return f"data:text/plain;charset=utf-8;base64,{base64.b64encode(data).decode('ascii')}"


def file(path: str, contents: str | bytes, mode: int = 0o600) -> dict[str, t.Any]:
    return {
        "path": path,
        "overwrite": True,
        "user": {"name": "root"},
        "mode": mode,
        "contents": {"source": source(contents)},
    }


@dataclasses.dataclass(frozen=True)
class Installation:
    """start: when the tool ran; day: how long its shortest certificates are valid."""

    start: datetime.datetime = NOW
    day: datetime.timedelta = DAY
    algorithm: str = "rsa"

    def bundle(self, names: tuple[str, ...], lifetime: datetime.timedelta = 10 * YEAR) -> str:
        return "".join(certificate(name, self.start, lifetime, self.algorithm) for name in names)

    def files(self) -> list[dict[str, t.Any]]:
        made = [
            file(f"{TLS}/{name}.crt", self.bundle(names, lifetime))
            for names_of, lifetime in ((_ONE_DAY, self.day), (_ONE_YEAR, YEAR), (_TEN_YEARS, 10 * YEAR))
            for name, names in names_of.items()
        ]
        names = [*_ONE_DAY, *_ONE_YEAR, *_TEN_YEARS][: _KEYS - 1]
        made += [file(f"{TLS}/{name}.key", private_key(self.algorithm)) for name in names]
        secret = {
            "kind": "Secret",
            "data": {"tls.key": base64.b64encode(private_key(self.algorithm).encode()).decode()},
        }
        made.append(file("/opt/openshift/manifests/machine-config-server-ca-secret.yaml", json.dumps(secret), 0o644))
        pull = {"kind": "Secret", "data": {".dockerconfigjson": base64.b64encode(PULL_SECRET.encode()).decode()}}
        made.append(file("/opt/openshift/manifests/openshift-config-secret-pull-secret.yaml", json.dumps(pull), 0o644))
        made.append(file(f"{HOME}/.docker/config.json", PULL_SECRET))
        kinds = ((0o600, 10), (0o644, 23), (0o555, 17))
        for mode, count in kinds:
            for number in range(count):
                made.append(file(f"/opt/openshift/{mode:o}/{number}", f"# {number}\n" * 560, mode))
        return made

    def bootstrap(self) -> dict[str, t.Any]:
        units = [
            {"name": name, "contents": f"[Unit]\nDescription={name}\n[Service]\nExecStart=/usr/local/bin/{name}.sh\n"}
            for name, _enabled in _UNITS
        ]
        for unit, (_name, enabled) in zip(units, _UNITS, strict=True):
            if enabled is not None:
                unit |= {"enabled": enabled, "contents": unit["contents"] + "[Install]\nWantedBy=multi-user.target\n"}
        keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA one", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ two"]
        return {
            "ignition": {"version": "3.2.0"},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": keys}]},
            "storage": {"files": self.files()},
            "systemd": {"units": units},
        }

    def pointer(self, role: str) -> dict[str, t.Any]:
        authority = {"source": source(self.bundle(("root-ca",)))}
        return {
            "ignition": {
                "version": "3.2.0",
                "config": {"merge": [{"source": f"https://api-int.dgxpod.example.com:22623/config/{role}"}]},
                "security": {"tls": {"certificateAuthorities": [authority]}},
            }
        }


def written(value: t.Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("utf-8")
