# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ignition files as the tool writes them: compact JSON, contents as data URLs in base64 (section 1 of behaviours.yml)."""

from __future__ import annotations

import base64
import datetime
import json
import typing as t

from cryptography import x509

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import Refused

SPEC = "3.2.0"
#: Of the user who runs everything on CoreOS.
_HOME = "/root"
DOCKER_CONFIG = f"{_HOME}/.docker/config.json"
_PREFIX = "data:text/plain;charset=utf-8;base64,"
_TLS = "/opt/openshift/tls/"


def url(content: bytes) -> str:
    return _PREFIX + base64.b64encode(content).decode()


def content_of(entry: dict[str, t.Any]) -> bytes:
    return base64.b64decode(entry["contents"]["source"].removeprefix(_PREFIX))


def file(path: str, content: bytes, mode: int) -> dict[str, t.Any]:
    return {
        "overwrite": True,
        "path": path,
        "user": {"name": "root"},
        "contents": {"source": url(content)},
        "mode": mode,
    }


def appended(path: str, content: bytes, mode: int) -> dict[str, t.Any]:
    return {"path": path, "user": {"name": "root"}, "append": [{"source": url(content)}], "mode": mode}


def written(content: dict[str, t.Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def pointer(domain: str, pool: str, root_ca: bytes, spec: str) -> bytes:
    return written(
        {
            "ignition": {
                "config": {"merge": [{"source": f"https://api-int.{domain}:22623/config/{pool}"}]},
                "security": {"tls": {"certificateAuthorities": [{"source": url(root_ca)}]}},
                "version": spec,
            }
        }
    )


def expired(text: bytes, now: datetime.datetime) -> list[str]:
    """A line for each certificate under /opt/openshift/tls that has ended. Raises Refused for a file that is no JSON."""
    try:
        files = json.loads(text)["storage"]["files"]
    except (ValueError, KeyError, TypeError):
        raise Refused("failed to unmarshal: it is no Ignition file") from None
    found = []
    for entry in files:
        if entry["path"].startswith(_TLS) and entry["path"].endswith(".crt"):
            name = entry["path"].removeprefix(_TLS)
            ends = [one.not_valid_after_utc for one in x509.load_pem_x509_certificates(content_of(entry))]
            found += [
                f"Bootstrap Ignition-Config Certificate {name} expired at {end:%Y-%m-%dT%H:%M:%SZ}."
                for end in ends
                if now > end
            ]
    return found
