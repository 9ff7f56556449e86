# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server on loopback in the place of a kubelet."""

from __future__ import annotations

import collections.abc as c
import contextlib
import socket
import ssl
import threading


@contextlib.contextmanager
def server(answer: c.Callable[[socket.socket], object]) -> c.Iterator[int]:
    """The port of a server that answers each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _peer = listening.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def handshake(context: ssl.SSLContext) -> c.Callable[[socket.socket], object]:
    """An answer: the certificate, and nothing after it."""

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)

    return answer
