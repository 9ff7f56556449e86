# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Persistent connections to one server, with the standard library's http.client.

A thousand nodes' kubelets and programs send a hundred thousand requests from this process. urllib3 needs more than twice the CPU
time for a request here and holds the interpreter's lock meanwhile, which would block the simulation.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import http.client
import ssl
import urllib.parse
from collections.abc import Callable, Iterable, Iterator

CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
#: The server ends a watch after 300 s. A watch without events for longer has lost its server.
WATCH_SECONDS = 330.0
_PIECE = 65536

#: Exceptions for a lost connection, or for data that is not HTTP.
BROKEN = (http.client.HTTPException, OSError, ValueError)


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    data: bytes


class _Secured(http.client.HTTPConnection):
    """HTTPS, with another name for TLS than that of the address where a kubeconfig says so (tls-server-name)."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port, timeout=CONNECT_SECONDS)
        self._context, self._name = context, name

    def connect(self) -> None:
        super().connect()
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self._name)


class Connections:
    """As many connections as are used at once. For any thread; raises the exceptions in BROKEN.

    name: that the certificate has to be for, "" for that of the server.
    """

    def __init__(self, server: str, context: ssl.SSLContext | None, name: str = "") -> None:
        url = urllib.parse.urlsplit(server)
        host = url.hostname or ""
        self._open: Callable[[], http.client.HTTPConnection]
        if url.scheme == "https":
            assert context is not None
            self._open = lambda: _Secured(host, url.port or 443, context, name or host)
        else:
            self._open = lambda: http.client.HTTPConnection(host, url.port or 80, timeout=CONNECT_SECONDS)
        self._idle: collections.deque[http.client.HTTPConnection] = collections.deque()

    def request(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> Answer:
        with self._lent() as connection:
            response = _ask(connection, method, path, headers, body, READ_SECONDS)
            return Answer(response.status, response.read())

    @contextlib.contextmanager
    def stream(self, path: str, headers: Iterable[tuple[str, str]]) -> Iterator[tuple[int, Iterator[bytes]]]:
        """(status, parts of the body as they arrive) of a GET that the server keeps open."""
        with self._lent() as connection:
            response = _ask(connection, "GET", path, headers, b"", WATCH_SECONDS)
            try:
                yield response.status, iter(lambda: response.read1(_PIECE), b"")
            finally:
                connection.close()  # The answer was not read completely.

    @contextlib.contextmanager
    def _lent(self) -> Iterator[http.client.HTTPConnection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        complete = False
        try:
            yield connection
            complete = True
        except BROKEN:
            self.close()  # A restart of the server closes all connections.
            raise
        finally:
            if complete and connection.sock is not None:
                self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close those that are not in use."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()


def _ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: Iterable[tuple[str, str]],
    body: bytes,
    seconds: float,
) -> http.client.HTTPResponse:
    if connection.sock is None:
        connection.connect()
    connection.sock.settimeout(seconds)
    connection.putrequest(method, path, skip_accept_encoding=True)
    connection.putheader("Content-Length", str(len(body)))
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders(body or None)
    return connection.getresponse()
