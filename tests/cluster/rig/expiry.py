# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a machine as they are a year after they were issued: signed again by their authorities, with another end.

expire(machine, days) lets those of a server by kubeadm expire in so many days. Whatever has loaded them goes on with what it has.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import re

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import places
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

_PKI, _K3S = "/etc/kubernetes/pki", f"{places.DATA}/server/tls"


@dataclasses.dataclass(frozen=True)
class Issued:
    """Paths of certificates, of kubeconfigs, and of the authorities that have signed them, without .crt and .key."""

    certificates: tuple[str, ...]
    authorities: tuple[str, ...]
    kubeconfigs: tuple[str, ...] = ()


#: Of servers.
KUBEADM = Issued(
    tuple(
        f"{_PKI}/{name}.crt"
        for name in (
            "apiserver",
            "apiserver-etcd-client",
            "apiserver-kubelet-client",
            "etcd/healthcheck-client",
            "etcd/peer",
            "etcd/server",
            "front-proxy-client",
        )
    ),
    tuple(f"{_PKI}/{name}" for name in ("ca", "etcd/ca", "front-proxy-ca")),
    tuple(f"/etc/kubernetes/{name}.conf" for name in ("admin", "controller-manager", "scheduler")),
)
_OF_K3S = tuple(f"{_K3S}/{name}" for name in ("server-ca", "client-ca", "etcd/server-ca", "etcd/peer-ca"))
K3S_AGENT = Issued(places.NODE_CERTIFICATES, _OF_K3S)
K3S_SERVER = Issued((*places.CERTIFICATES, *places.NODE_CERTIFICATES), _OF_K3S)


def expire(machine: Machine, days: float, issued: Issued = KUBEADM, server: Machine | None = None) -> None:
    """With a negative number they have expired. server: that has the authorities, if the machine has not."""
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    known = _authorities(server or machine, issued.authorities)
    for path in issued.certificates:
        # A lone server of K3s has none of etcd's.
        if machine.sh(f"ls {path} 2>/dev/null || :"):
            _write(machine, path, _again(known, machine.read(path), until))
    for path in issued.kubeconfigs:
        config = yaml.safe_load(machine.read(path))
        user = config["users"][0]["user"]
        pem = base64.b64decode(user["client-certificate-data"]).decode("ascii")
        user["client-certificate-data"] = base64.b64encode(_again(known, pem, until).encode("ascii")).decode("ascii")
        _write(machine, path, yaml.safe_dump(config))


def last_day(machine: Machine, path: str) -> datetime.datetime:
    return x509.load_pem_x509_certificate(machine.read(path).encode("ascii")).not_valid_after_utc


def _authorities(machine: Machine, paths: tuple[str, ...]) -> dict[x509.Name, bytes]:
    """Keys by names of authorities."""
    found = {}
    for path in paths:
        certificate = x509.load_pem_x509_certificate(machine.read(f"{path}.crt").encode("ascii"))
        found[certificate.subject] = machine.read(f"{path}.key").encode("ascii")
    return found


def _again(known: dict[x509.Name, bytes], pem: str, until: datetime.datetime) -> str:
    """The certificate at the beginning. What follows it stays."""
    old = x509.load_pem_x509_certificate(pem.encode("ascii"))
    key = serialization.load_pem_private_key(known[old.issuer], None)
    made = x509.CertificateBuilder().subject_name(old.subject).issuer_name(old.issuer).public_key(old.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_after(until)
    made = made.not_valid_before(until - datetime.timedelta(days=365))
    for one in old.extensions:
        made = made.add_extension(one.value, one.critical)
    signed = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")  # type: ignore[arg-type]
    return signed + re.split(r"-----END CERTIFICATE-----\n?", pem, maxsplit=1)[1]


def _write(machine: Machine, path: str, text: str) -> None:
    """With the times of before, as time has passed since."""
    machine.sh(f"cp -p {path} /run/before")
    machine.write(path, text, "0600")
    machine.sh(f"touch -r /run/before {path}; rm /run/before")
