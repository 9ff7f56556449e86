# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP/1.1 over kept connections to one server, as much of it as the API server speaks (RFC 9112: lengths and chunks).

A thousand nodes' kubelets and programs make a hundred thousand requests from this one process. A general client costs five times the
processor time of a request here, and holds the interpreter's lock meanwhile: the simulated machines stood still for it.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import socket
import ssl
import urllib.parse
from collections.abc import Iterable, Iterator

CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
#: A watch is ended by the server after 300 s; one that is silent for longer has lost its server.
WATCH_SECONDS = 330.0


class Broken(Exception):
    """The connection was lost, or what came over it is no HTTP."""


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    data: bytes


class _Connection:
    """One connection; a request at a time."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None) -> None:
        plain = socket.create_connection(address, CONNECT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname=address[0]) if context else plain
        self._reader = self._socket.makefile("rb", 65536)
        self._length: int | None = None     # of the body, None for chunks
        self.reusable = True

    def send(self, head: bytes, body: bytes, seconds: float) -> int:
        """The answer's status; its body is read with `read` or `parts`."""
        self._socket.settimeout(seconds)
        self._socket.sendall(head + body)
        words = self._reader.readline().split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
            raise Broken("the server has closed the connection")
        self._length = 0
        while (line := self._reader.readline()) not in (b"\r\n", b""):
            name, _colon, value = line.partition(b":")
            self._header(name.strip().lower(), value.strip().lower())
        return int(words[1])

    def _header(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._length = int(value)
        elif name == b"transfer-encoding":
            self._length = None
        elif name == b"connection" and value == b"close":
            self.reusable = False

    def parts(self) -> Iterator[bytes]:
        """The body in the pieces in which it was sent."""
        if self._length is not None:
            yield self._exactly(self._length)
            return
        while size := int(self._reader.readline().split(b";")[0] or b"0", 16):
            yield self._exactly(size + 2)[:-2]
        self._reader.readline()

    def read(self) -> bytes:
        return b"".join(self.parts())

    def _exactly(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) < size:
            raise Broken("the server has closed the connection in the middle of an answer")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
        self._reader.close()


class Connections:
    """As many as are used at once. From any thread; raises Broken and OSError."""

    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        url = urllib.parse.urlsplit(server)
        self._address = (url.hostname or "", url.port or (443 if url.scheme == "https" else 80))
        self._context = context if url.scheme == "https" else None
        self._idle: collections.deque[_Connection] = collections.deque()

    def request(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> Answer:
        with self._lent(_head(self._address[0], method, path, headers, len(body)), body, READ_SECONDS) as (connection, status):
            return Answer(status, connection.read())

    @contextlib.contextmanager
    def stream(self, path: str, headers: Iterable[tuple[str, str]]) -> Iterator[tuple[int, Iterator[bytes]]]:
        """(status, parts of the body as they come) of a GET that the server keeps open."""
        with self._lent(_head(self._address[0], "GET", path, headers, 0), b"", WATCH_SECONDS) as (connection, status):
            connection.reusable = False     # left in the middle of an answer
            yield status, connection.parts()

    @contextlib.contextmanager
    def _lent(self, head: bytes, body: bytes, seconds: float) -> Iterator[tuple[_Connection, int]]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _Connection(self._address, self._context)
        complete = False
        try:
            yield connection, connection.send(head, body, seconds)
            complete = True
        except (Broken, OSError):
            self.close()    # what ended this one, a restart of the server, ended them all
            raise
        finally:
            if complete and connection.reusable:
                self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close those that are not in use."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()


def _head(host: str, method: str, path: str, headers: Iterable[tuple[str, str]], length: int) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {length}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode()
