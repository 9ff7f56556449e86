# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What API servers log of the writes of whoever has the admin kubeconfig, which is us."""

from __future__ import annotations

import collections.abc as c
import json

import yaml

from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine


def policy(user: str) -> str:
    """An audit policy. user: that of the admin kubeconfig."""
    ours = {"level": "Metadata", "users": [user], "verbs": ["create", "update", "patch", "delete", "deletecollection"]}
    kind = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
    return yaml.safe_dump({**kind, "rules": [ours, {"level": "None"}]})


def writes(servers: c.Iterable[Machine], log: str) -> list[str]:
    """One line each. log: path of the audit log on a server."""
    return [
        f"{one['verb']} {one['requestURI']}"
        for server in servers
        for one in map(json.loads, server.read(log).splitlines())
    ]
