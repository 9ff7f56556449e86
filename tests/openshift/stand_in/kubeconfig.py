# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeconfigs: auth/kubeconfig of the administrator, and those that the bootstrap machine has (section 1 of behaviours.yml)."""

from __future__ import annotations

import base64
import re

import yaml

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def kubeconfig(cluster: str, server: str, user: str, authorities: bytes, certificate: bytes, key: bytes) -> bytes:
    content = {
        "clusters": [
            {"cluster": {"certificate-authority-data": encoded(authorities), "server": server}, "name": cluster}
        ],
        "contexts": [{"context": {"cluster": cluster, "user": user}, "name": user}],
        "current-context": user,
        "preferences": {},
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)},
            }
        ],
    }
    return yaml.safe_dump(content, width=10**6).encode()


def with_authority(text: bytes, authority: bytes) -> bytes:
    """auth/kubeconfig with one more authority before the others, as the tool adds the router's."""
    content = yaml.safe_load(text)
    for entry in content["clusters"]:
        known = base64.b64decode(entry["cluster"]["certificate-authority-data"])
        if authority not in known:
            entry["cluster"]["certificate-authority-data"] = encoded(authority + known)
    return yaml.safe_dump(content, width=10**6).encode()


def authorities_of(text: bytes) -> list[bytes]:
    content = yaml.safe_load(text)
    return _CERTIFICATE.findall(base64.b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"]))
