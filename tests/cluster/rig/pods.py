# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod that runs a script and ends."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine


def output(
    client: Client,
    machine: Machine,
    name: str,
    script: str,
    *,
    image: str = BUSYBOX,
    limits: t.Mapping[str, int] | None = None,
    **spec: str,
) -> str:
    """What it has written, once it has ended. machine: on which the wait is logged. limits: of its resources. spec: more of the pod's."""
    container = {
        "name": "main",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"limits": dict(limits or {})},
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }
    client.create(body, POD)

    def ended() -> bool:
        return client.get(POD, name, "default")["status"].get("phase") in ("Succeeded", "Failed")

    machine.wait(f"{name} to end", ended, seconds=120)
    return str(client.logs("default", name, "main", tail_lines=200))
