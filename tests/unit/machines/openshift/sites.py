# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A valid install-config, and settings and machines of a cluster, for the tests beside this."""

from __future__ import annotations

import base64
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines as model
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import conversion, rules, schema, settings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift.findings import Site


def key(kind: str, length: int = 32) -> str:
    """A public key of SSH that fits nothing."""
    data = len(kind).to_bytes(4, "big") + kind.encode() + length.to_bytes(4, "big") + b"x" * length
    return f"{kind} {base64.b64encode(data).decode()}"


def pem(kind: str, data: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{base64.b64encode(data).decode()}\n-----END {kind}-----\n"


ED25519, RSA = key("ssh-ed25519"), key("ssh-rsa", 256)
#: The outer form of a certificate (RFC 5280, 4.1), and of a private key (RFC 5958).
CERTIFICATE = pem("CERTIFICATE", bytes((0x30, 8, 0x30, 0, 0x30, 0, 0x03, 2, 0, 0)))
PRIVATE_KEY = pem("PRIVATE KEY", bytes((0x30, 7, 0x02, 1, 0, 0x30, 0, 0x04, 0)))
PULL_SECRET = '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}'
BASE: dict[str, t.Any] = {
    "apiVersion": "v1",
    "metadata": {"name": "dgxpod"},
    "baseDomain": "example.com",
    "controlPlane": {"name": "master", "replicas": 3},
    "compute": [{"name": "worker", "replicas": 0}],
    "networking": {
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
        "machineNetwork": [{"cidr": "10.33.3.0/24"}],
        "serviceNetwork": ["172.30.0.0/16"],
    },
    "platform": {"none": {}},
    "pullSecret": PULL_SECRET,
    "sshKey": ED25519,
}


def config(given: dict[str, t.Any], **more: t.Any) -> tuple[Site, list]:
    """What rules read of an install-config, and findings of its types. more: other fields of Site."""
    typed, typing = schema.typed(given, schema.INSTALL)
    return Site(conversion.completed(typed), **more), typing


def told(given: dict[str, t.Any], **more: t.Any) -> list[rules.Told]:
    site, typing = config(given, **more)
    return rules.checked(site, typing)


def machine(name: str, role: str, last: int, **more: t.Any) -> dict[str, t.Any]:
    """As inventory.read returns it. last: byte of its addresses."""
    found = {"host": name, "name": name, "cluster": "dgxpod", "role": role, "address": f"10.33.3.{last}"}
    return {**found, "mac": f"52:54:00:33:03:{last:02x}", "install_device": "/dev/disk/by-path/pci-0", **more}


BOOTSTRAP = machine("bootstrap-0", model.BOOTSTRAP, 49)
MASTERS = [machine(f"master-{number}", model.MASTER, 50 + number) for number in range(3)]
WORKERS = [machine(f"worker-{number}", model.WORKER, 44 + number) for number in range(2)]
SETTINGS: dict[str, t.Any] = {
    **settings.DEFAULTS,
    "domain": "dgxpod.example.com",
    "machine_network": ["10.33.3.0/24"],
    "cluster_network": ["10.128.0.0/14"],
    "service_network": ["172.30.0.0/16"],
    "pull_secret": '{"auths":{"quay.io":{"auth":"aWQ6cGFzcwo="}}}',
    "ssh_keys": [ED25519],
    "machines": [BOOTSTRAP, *MASTERS, *WORKERS],
    "balancers": {"hwaccel_load_balancer_address": "10.33.3.54"},
}
AGENT: dict[str, t.Any] = {**SETTINGS, "method": "agent", "machines": [*MASTERS, *WORKERS]}
IN_PLACE: dict[str, t.Any] = {**SETTINGS, "method": "in_place", "machines": MASTERS[:1], "balancers": {}}
