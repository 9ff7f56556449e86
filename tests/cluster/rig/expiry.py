# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a server as they are a year after kubeadm has issued them: signed again by their authorities, with another end.

expire(machine, days) lets all of them expire in so many days.
"""

from __future__ import annotations

import base64
import datetime

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

_FOLDER = "/etc/kubernetes"
#: Certificates and kubeconfigs by the authority that has signed them.
_SIGNED = {
    "ca": ("pki/apiserver.crt", "pki/apiserver-kubelet-client.crt"),
    "etcd/ca": (
        "pki/apiserver-etcd-client.crt",
        "pki/etcd/server.crt",
        "pki/etcd/peer.crt",
        "pki/etcd/healthcheck-client.crt",
    ),
    "front-proxy-ca": ("pki/front-proxy-client.crt",),
}
_KUBECONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")


def expire(machine: Machine, days: float) -> None:
    """With a negative number they have expired."""
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    for authority, paths in _SIGNED.items():
        for path in paths:
            _write(machine, path, _again(machine, authority, machine.read(f"{_FOLDER}/{path}"), until))
    for path in _KUBECONFIGS:
        config = yaml.safe_load(machine.read(f"{_FOLDER}/{path}"))
        user = config["users"][0]["user"]
        pem = base64.b64decode(user["client-certificate-data"]).decode("ascii")
        signed = _again(machine, "ca", pem, until)
        user["client-certificate-data"] = base64.b64encode(signed.encode("ascii")).decode("ascii")
        _write(machine, path, yaml.safe_dump(config))


def last_day(machine: Machine, path: str) -> datetime.datetime:
    return x509.load_pem_x509_certificate(machine.read(f"{_FOLDER}/{path}").encode("ascii")).not_valid_after_utc


def _again(machine: Machine, authority: str, pem: str, until: datetime.datetime) -> str:
    issuer = x509.load_pem_x509_certificate(machine.read(f"{_FOLDER}/pki/{authority}.crt").encode("ascii"))
    key = serialization.load_pem_private_key(machine.read(f"{_FOLDER}/pki/{authority}.key").encode("ascii"), None)
    old = x509.load_pem_x509_certificate(pem.encode("ascii"))
    made = x509.CertificateBuilder().subject_name(old.subject).issuer_name(issuer.subject).public_key(old.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_after(until)
    made = made.not_valid_before(until - datetime.timedelta(days=365))
    for one in old.extensions:
        made = made.add_extension(one.value, one.critical)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")  # type: ignore[arg-type]


def _write(machine: Machine, path: str, text: str) -> None:
    """With the times of before, as time has passed since."""
    target = f"{_FOLDER}/{path}"
    machine.sh(f"cp -p {target} /run/before")
    machine.write(target, text, "0600")
    machine.sh(f"touch -r /run/before {target}; rm /run/before")
