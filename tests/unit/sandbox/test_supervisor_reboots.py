# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot IDs of nodes before a reboot, to detect the new boot."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process, supervisor
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.client import ObservedNode
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import layout


class Server:
    """A busy server. `unreachable`: it does not answer at all."""

    unreachable = False

    def healthy(self, _component: str) -> str:
        return "timed out"

    def nodes(self) -> dict[str, ObservedNode]:
        if self.unreachable:
            raise TimeoutError
        return {name: ObservedNode(True, "6.8.0", "Ubuntu", f"boot of {name}") for name in ("a", "b")}


@pytest.mark.parametrize(("unreachable", "known"), [(False, {"a": "boot of a"}), (True, {})])
def test_nodes_are_requested_from_a_server_that_is_only_busy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, unreachable: bool, known: t.Any
) -> None:
    monkeypatch.setattr(supervisor, "ControlPlane", lambda *_of: Server())
    monkeypatch.setattr(process, "running", lambda _known: True)
    monkeypatch.setattr(Server, "unreachable", unreachable)
    created = supervisor.Supervisor(layout("x", str(tmp_path)), {}, {}, None, "python3", supervisor.Run())
    assert created.boot_ids(["a"]) == known
