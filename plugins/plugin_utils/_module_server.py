# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules of this collection, each in a process that is forked from this one: python -P _module_server.py FOLDER LISTENER OWNER

FOLDER holds ansible_collections. LISTENER is the file descriptor of a Unix socket. OWNER is that of the process of ansible-playbook (pidfd_open(2)):
when that ends, this process and all modules end. Started by _module_process.py only, whose `run` describes a request.

What modules import is imported here before the fork, so it is only imported once in a run.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
import types
import typing as t

#: What modules that connect to a cluster import when they do (`adapter._context`, `_api._deps`).
_CONNECTING = ("ansible_collections.hwaccel.gpu.plugins.module_utils._api.client", "urllib3")
#: Modules of most runs, imported while another module runs.
_LIKELY = tuple(
    f"ansible_collections.hwaccel.gpu.plugins.modules.{name}" for name in ("manifest_set", "node_gate", "node_validate")
)
#: Descriptors of a request: itself (JSON), and standard input, standard output and standard error of the module.
DESCRIPTORS = 4


class Server:
    """Accepts requests, reports how each module ended, and kills a module whose client has ended."""

    def __init__(self, listener: socket.socket, owner: int) -> None:
        # epoll would share its state with the forked processes.
        self._selector = selectors.PollSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(owner, selectors.EVENT_READ, self._end)
        self._listener, self._running = listener, True
        self._ahead = list(_LIKELY)
        #: Process of the module by connection.
        self._modules: dict[socket.socket, int] = {}

    def serve(self) -> t.Callable[[], None] | None:
        """Returns in each forked process with what that has to run, and in this one with None when the owner has ended."""
        while self._running:
            # Nothing is imported before the first request, whose module may need something else.
            ahead = self._ahead if self._modules else []
            for key, _events in self._selector.select(0 if ahead else None):
                module = key.data()
                if module is not None:
                    return t.cast("t.Callable[[], None]", module)
            if ahead:
                _import(ahead.pop(0))
        return None

    def _accept(self) -> t.Callable[[], None] | None:
        connection, _address = self._listener.accept()
        _byte, descriptors, _flags, _sender = socket.recv_fds(connection, 1, DESCRIPTORS)
        if len(descriptors) != DESCRIPTORS:
            # The client was killed before its request.
            connection.close()
            return None
        with open(descriptors[0], encoding="utf-8") as file:
            request = json.load(file)
        _import(request["module"])
        gc.freeze()
        process = os.fork()
        if process == 0:
            connection.close()
            self._close()
            _become(request, descriptors[1:])
            return lambda: importlib.import_module(request["module"]).main()
        # Each of both does it, because either may be the first one to need it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(process, process)
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        ended = os.pidfd_open(process)
        self._modules[connection] = process
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._report(connection, ended))
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._kill(connection))
        return None

    def _report(self, connection: socket.socket, ended: int) -> None:
        _process, status = os.waitpid(self._modules.pop(connection), 0)
        self._selector.unregister(ended)
        os.close(ended)
        if connection in self._selector.get_map():
            self._selector.unregister(connection)
        # The client may have ended as well.
        with connection, contextlib.suppress(OSError):
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    def _kill(self, connection: socket.socket) -> None:
        """The client sends nothing after its request, so its connection is readable when it has ended."""
        # Both may have ended at the same time.
        if connection in self._modules:
            self._selector.unregister(connection)
            _stop(self._modules[connection])

    def _close(self) -> None:
        """Closes in a forked process what belongs to the server only."""
        for file in {key.fileobj for key in self._selector.get_map().values()} | self._modules.keys():
            if isinstance(file, socket.socket):
                file.close()
            elif isinstance(file, int):
                os.close(file)

    def _end(self) -> None:
        for process in self._modules.values():
            _stop(process)
        self._running = False


def _stop(process: int) -> None:
    """Stops a module with the programs that it has started, unless they have a session of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGTERM)


def _import(name: str) -> None:
    """An error is shown by the process of the module, which imports it again."""
    with contextlib.suppress(Exception):
        importlib.import_module(name)


def _become(request: dict[str, t.Any], standard: list[int]) -> None:
    """Makes this process one that only runs the module of the request."""
    os.setpgid(0, 0)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()


def main() -> None:
    folder, listener, owner = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # AnsibleModule reads standard input if there are no arguments (developer guide, "Verifying your module code in a virtual environment").
    del sys.argv[1:]
    # The package "ansible" has a regular package of this name, which would take precedence over a namespace package regardless of the path.
    package = types.ModuleType("ansible_collections")
    package.__path__ = [os.path.join(folder, "ansible_collections")]
    sys.modules["ansible_collections"] = package
    for name in _CONNECTING:
        _import(name)
    module = Server(socket.socket(fileno=listener), owner).serve()
    if module is None:
        # Without the interpreter's cleanup, so that who waits for the processes of a run does not meet this one.
        os._exit(0)
    module()


if __name__ == "__main__":
    main()
