# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness of a sandbox node."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.client import ControlPlane

MAINTENANCE = {"key": "example.com/maintenance", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("status", "taints", "ready"),
    [
        ("True", None, True),
        ("True", [MAINTENANCE], True),
        ("True", [MAINTENANCE, NOT_READY], False),
        ("True", [UNREACHABLE], False),
        ("False", None, False),
        ("Unknown", [UNREACHABLE], False),
    ],
)
def test_a_node_is_ready_if_it_reports_ready_and_accepts_pods(
    monkeypatch: pytest.MonkeyPatch, status: str, taints: t.Any, ready: bool
) -> None:
    node = {
        "metadata": {"name": "gpu-0"},
        "spec": {"taints": taints} if taints else {},
        "status": {"conditions": [{"type": "Ready", "status": status}]},
    }
    monkeypatch.setattr(ControlPlane, "_json", lambda _self, _path: {"metadata": {}, "items": [node]})
    server = ControlPlane.__new__(ControlPlane)
    assert {name: observed.ready for name, observed in server.nodes().items()} == {"gpu-0": ready}
