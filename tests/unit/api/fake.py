# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An HTTP server on the loopback interface with answers and faults that a test defines."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import http.server
import json
import socket
import ssl
import threading
import time
import typing as t
import urllib.parse


@dataclasses.dataclass
class ReceivedRequest:
    """One received request."""

    method: str
    path: str
    query: dict[str, str]
    headers: t.Any
    body: t.Any


@dataclasses.dataclass
class Answer:
    """`status` 0: the connection is dropped without an answer. `cut`: number of bytes of the body that are sent before the connection is dropped.

    `held`: nothing is sent, or nothing more after `cut` or `stream`, until the client closes the connection.
    `stream`: lines that are sent as chunks; a number is a pause in seconds, None drops the connection.
    """

    status: int = 200
    body: t.Any = None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    cut: int | None = None
    held: bool = False
    stream: list[t.Any] | None = None
    content_type: str = "application/json"


def status(code: int, message: str = "", reason: str = "", **details: t.Any) -> Answer:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return Answer(code, body | ({"details": details} if details else {}))


Script = c.Callable[[ReceivedRequest], Answer]


class Fake:
    """`answers`: answers in turn (the last one repeatedly), or a function of the request. `connections`: number of accepted connections."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.received: list[ReceivedRequest] = []
        self.connections = 0
        self.answers: list[Answer] | Script = [Answer(body={})]
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_args: t.Any) -> None:
                return

            def _serve(self) -> None:
                fake._serve(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

        class Server(http.server.ThreadingHTTPServer):
            def process_request(self, request: t.Any, client_address: t.Any) -> None:
                fake.connections += 1
                super().process_request(request, client_address)

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_args: None  # type: ignore[method-assign]
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self.host = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def paths(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.received]

    def _serve(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        parts = urllib.parse.urlsplit(handler.path)
        raw = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        request = ReceivedRequest(
            handler.command,
            parts.path,
            dict(urllib.parse.parse_qsl(parts.query)),
            handler.headers,
            json.loads(raw) if raw else None,
        )
        self.received.append(request)
        answer = self._answer(request)
        if answer.held and answer.cut is None and answer.stream is None:
            self._hold(handler)
            return
        if answer.status == 0:
            self._drop(handler)
            return
        self._send(handler, answer)

    def _answer(self, request: ReceivedRequest) -> Answer:
        if callable(self.answers):
            return self.answers(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def _send(self, handler: http.server.BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.send_response(answer.status)
        handler.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if answer.stream is not None:
            self._send_stream(handler, answer)
            return
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body if answer.cut is None else body[: answer.cut])
        if answer.held:
            self._hold(handler)
        elif answer.cut is not None:
            self._drop(handler)

    def _send_stream(self, handler: http.server.BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for line in answer.stream or ():
            if line is None:
                self._drop(handler)
                return
            if isinstance(line, (int, float)):
                time.sleep(line)
                continue
            data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.flush()
        if answer.held:
            self._hold(handler)
            return
        handler.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _hold(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.rfile.read(1)

    @staticmethod
    def _drop(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)


class Tunnel:
    """A proxy that supports CONNECT to the loopback interface only, and records headers of requests."""

    def __init__(self, refuse: bool = False) -> None:
        self.heads: list[str] = []
        self._refuse = refuse
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.heads.append(head.decode())
            if self._refuse:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                client.close()
                return
            port = int(head.split()[1].rpartition(b":")[2])
            upstream = socket.create_connection(("127.0.0.1", port))
            self._sockets.append(upstream)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=self._copy, args=(upstream, client), daemon=True).start()
            self._copy(client, upstream)

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
