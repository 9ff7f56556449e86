# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets as etcd stores them, and the keys that API servers have for them."""

from __future__ import annotations

import base64
import json
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import PKI, Site
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

SECRET = Resource("", "v1", "Secret", "secrets", True)
ENTRY = ("-e", "cluster_kubeadm_entry=rotate_encryption_keys")
CLEAR = "planted in clear"
_RANGE = f"""import json, ssl, sys, urllib.request
tls = ssl.create_default_context(cafile="{PKI}/ca.crt")
tls.load_cert_chain("{PKI}/healthcheck-client.crt", "{PKI}/healthcheck-client.key")
body = json.dumps({{"key": sys.argv[1], "range_end": sys.argv[2]}}).encode()
asked = urllib.request.Request("https://127.0.0.1:2379/v3/kv/range", data=body, method="POST")
print(urllib.request.urlopen(asked, context=tls).read().decode())"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def plant(site: Site, name: str = "kept") -> None:
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}}
    site.client().create({**made, "stringData": {"password": CLEAR}}, SECRET)


def password(site: Site, name: str = "kept") -> str:
    """As the API server of the last server reads it."""
    return base64.b64decode(site.client().get(SECRET, name, "default")["data"]["password"]).decode()


def stored(machine: Machine) -> dict[str, bytes]:
    """Secrets by their keys in etcd."""
    ends = (encoded("/registry/secrets/"), encoded("/registry/secrets0"))
    found = json.loads(machine.execute("python3", "-c", _RANGE, *ends).stdout)["kvs"]
    return {base64.b64decode(one["key"]).decode(): base64.b64decode(one["value"]) for one in found}


def stored_with(machine: Machine) -> set[str]:
    """Names of keys that Secrets are stored with. Empty: in clear."""
    found = [re.match(rb"k8s:enc:secretbox:v1:([^:]+):", value) for value in stored(machine).values()]
    return {one.group(1).decode() if one else "" for one in found}


def keys(machine: Machine) -> dict[str, str]:
    """That the API server reads when it starts, by their names, in their order."""
    return dict(re.findall(r"name: (\S+)\n +secret: (\S+)", machine.read(places.ENCRYPTION)))


def kept(machine: Machine) -> str:
    return machine.sh(f"stat -c '%a %u' {places.ENCRYPTION} 2>/dev/null || :").strip()
