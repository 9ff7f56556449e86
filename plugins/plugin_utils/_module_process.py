# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module in a process that the run's module server forks, and starts that server (_module_server.py) with the first module. Linux only."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import fcntl
import io
import json
import os
import pathlib
import socket
import subprocess
import sys

_SERVER = pathlib.Path(__file__).with_name("_module_server.py")
#: Path of ansible_collections' folder.
_FOLDER = pathlib.Path(__file__).parents[5]
_PACKAGE = "ansible_collections.hwaccel.gpu.plugins.modules"
#: Both came with Linux 5.3 or earlier (pidfd_open(2), memfd_create(2)).
SUPPORTED = hasattr(os, "pidfd_open") and hasattr(os, "memfd_create")
#: Kept, because Popen warns of a process that is still running when it is deleted. A server outlives the worker that has started it.
_SERVERS: list[subprocess.Popen[bytes]] = []


@dataclasses.dataclass(frozen=True)
class Done:
    """How a module has ended. rc: its exit status, or the negative number of the signal that has ended it."""

    rc: int
    stdout: str
    stderr: str


def connect(folder: pathlib.Path, owner: int) -> socket.socket:
    """A connection to the server of this folder, which only this user can read. It is started if there is none, and ends with the process `owner`.

    Raises OSError if it cannot be started.
    """
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    # The path of a socket has at most 107 bytes (unix(7)), and that of a temporary folder can be longer.
    address = f"/proc/self/fd/{opened}/modules"
    try:
        with open(folder / "modules.lock", "w", encoding="ascii") as lock, contextlib.ExitStack() as undo:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = undo.enter_context(socket.socket(socket.AF_UNIX))
            try:
                connection.connect(address)
            except (FileNotFoundError, ConnectionRefusedError):
                _start(folder, address, owner)
                connection.connect(address)
            undo.pop_all()
            return connection
    finally:
        os.close(opened)


def _start(folder: pathlib.Path, address: str, owner: int) -> None:
    """Clients can connect as soon as this returns, and wait until the server has imported what it needs."""
    (folder / "modules").unlink(missing_ok=True)
    watched = os.pidfd_open(owner)
    try:
        with socket.socket(socket.AF_UNIX) as listener, (folder / "modules.log").open("ab") as log:
            listener.bind(address)
            listener.listen(socket.SOMAXCONN)
            _SERVERS.append(
                subprocess.Popen(
                    [sys.executable, "-P", str(_SERVER), str(_FOLDER), str(listener.fileno()), str(watched)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(listener.fileno(), watched),
                    start_new_session=True,
                )
            )
    finally:
        os.close(watched)


def run(connection: socket.socket, module: str, arguments: bytes, environment: c.Mapping[str, str]) -> Done:
    """Runs the module of this name with `arguments` on its standard input, in this process' folder.

    Descriptors pass between the processes, so arguments and results are in no file, and of any size. Raises ConnectionError if the server has ended.
    """
    request = {"module": f"{_PACKAGE}.{module}", "folder": os.getcwd(), "environment": dict(environment)}
    with contextlib.ExitStack() as stack:
        streams = [
            stack.enter_context(open(os.memfd_create("module"), "w+b", buffering=0))
            for _each in ("request", "stdin", "stdout", "stderr")
        ]
        for stream, content in zip(streams, (json.dumps(request).encode(), arguments), strict=False):
            stream.write(content)
            stream.seek(0)
        socket.send_fds(connection, [b"."], [stream.fileno() for stream in streams])
        status = connection.recv(16)
        if not status:
            raise ConnectionResetError(f"the process that runs the modules has ended while {module} was running")
        return Done(int(status), *(_text(stream) for stream in streams[2:]))


def _text(stream: io.FileIO) -> str:
    stream.seek(0)
    return stream.readall().decode("utf-8", errors="surrogateescape")
