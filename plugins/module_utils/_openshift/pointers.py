# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pointers: the small ignition files of masters and workers, which get everything else from port 22623 of their cluster. Pure.

A pointer has no key and no token: the address of a pool's configuration, and the authority whose certificate 22623 has to present (openshift/installer,
pkg/asset/ignition/machine/node.go). Of an installed cluster this authority may be another one than when its files were created: machine-config-operator
rotates it on clusters that create machines themselves (its pkg/controller/certrotation).
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import certificates, data_urls

#: What the installer of 4.20 writes. Ignition reads all earlier versions of specification 3, so that newer releases, which write later ones, take it too.
VERSION = "3.2.0"
_VERSION = re.compile(r"3\.\d+\.\d+")
_PREFIX = "data:text/plain;charset=utf-8;base64,"


@dataclasses.dataclass(frozen=True)
class Pointer:
    """version: of the specification of ignition files. authorities: certificates in PEM."""

    version: str
    authorities: str

    def of(self, domain: str, pool: str) -> str:
        """The ignition file of the machines of a pool, always the same for the same values. domain: of the cluster, its name first."""
        ignition = {
            "config": {"merge": [{"source": f"https://api-int.{domain}:22623/config/{pool}"}]},
            "security": {"tls": {"certificateAuthorities": [{"source": _url(self.authorities)}]}},
            "version": self.version,
        }
        return json.dumps({"ignition": ignition}, sort_keys=True, separators=(",", ":"))


def read(text: bytes) -> Pointer | None:
    """A pointer that openshift-install has written, None if it is none: whether the files of an installation are damaged is judged elsewhere."""
    try:
        ignition = json.loads(text)["ignition"]
        sources = [one["source"] for one in ignition["security"]["tls"]["certificateAuthorities"]]
        authorities = b"\n".join(map(data_urls.decoded, sources)).decode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    version = str(ignition.get("version"))
    return Pointer(version, authorities) if _VERSION.fullmatch(version) else None


def why_not(authorities: str) -> str:
    """Why machines could not trust these certificates, "" if they can."""
    text = authorities.encode()
    try:
        found = list(certificates.certificates(text, ""))
    except certificates.Unreadable as error:
        return str(error)
    if not found or certificates.damaged(text):
        return "it holds no complete certificate"
    return ""


def same(one: str, other: str) -> bool:
    """Whether two texts hold the same certificates, in whichever order."""
    return _blocks(one) == _blocks(other)


def _blocks(text: str) -> set[str]:
    parts = text.split("-----BEGIN CERTIFICATE-----")[1:]
    return {"".join(part.partition("-----END")[0].split()) for part in parts}


def _url(authorities: str) -> str:
    return _PREFIX + base64.b64encode(authorities.encode()).decode()
