# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of a sandbox: kept if possible; otherwise all clients are reconfigured."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process, supervisor
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import (
    AGENT,
    PORTS,
    CommandSettings,
    command,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import layout

#: The main thread ends and another one keeps the port open, like in a server that is shutting down.
SHUTTING_DOWN = """
import ctypes, socket, threading, time
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
threading.Thread(target=time.sleep, args=(60,)).start()
print(server.getsockname()[1], flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_the_port_of_a_process_that_was_stopped_is_free(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    started = process.start(
        process.Command("server", (sys.executable, "-c", SHUTTING_DOWN), {}, tmp_path), log, tmp_path / "pid"
    )
    while process.running(started):
        time.sleep(0.01)
    port = int(log.read_text(encoding="utf-8").split()[-1])
    assert not supervisor._free(port)
    assert not process.ended(started)
    process.stop([started], 5)
    assert process.ended(started)
    assert supervisor._free(port)


def test_a_process_that_ends_before_it_is_looked_at_is_recognized(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = process._state_and_identity

    def once_it_ended(pid: int, proc: pathlib.Path) -> tuple[str, str]:
        while look(pid, proc)[0] not in "ZX":
            time.sleep(0.01)
        return look(pid, proc)

    monkeypatch.setattr(process, "_state_and_identity", once_it_ended)
    started = process.start(process.Command("true", ("true",), {}, tmp_path), tmp_path / "log", tmp_path / "pid")
    assert started.identity
    assert not process.running(started)
    assert process.ended(started)
    process.stop([started], 0)


def test_clients_are_reconfigured_when_the_port_of_a_server_changes(tmp_path: pathlib.Path) -> None:
    ports = {name: 20000 + number for number, name in enumerate(PORTS)}
    plan = CommandSettings(layout("one", str(tmp_path)), ports, sys.executable, 3, {})
    moved = dataclasses.replace(plan, ports=ports | {"kube-apiserver": 29999})
    for name in ("kube-controller-manager", "kube-scheduler", "kwok", AGENT):
        assert command(plan, name).digest != command(moved, name).digest
    assert command(plan, "etcd").digest == command(moved, "etcd").digest
