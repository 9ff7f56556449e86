# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server on loopback between a client and the real API server, which disturbs a share of the requests, chosen by a seed.

The faults in `FAULTS` are those of API servers and of the load balancers and networks in front of them.
"""

from __future__ import annotations

import collections
import contextlib
import http.server
import json
import pathlib
import random
import threading
import time
import typing as t

import urllib3
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import kubeconfig as files
from ansible_collections.hwaccel.gpu.plugins.module_utils._api import tls

#: Names and effects. Faults of watches do not affect other requests.
FAULTS = {
    "429": "too many requests, without a Retry-After header",
    "429 later": "too many requests, retry after a second",
    "500": "an internal error before the request is processed",
    "503": "no API server behind the load balancer",
    "dropped": "the connection is closed without a response, before the request is processed",
    "answer lost": "the request is processed, and the connection is closed without a response",
    "cut": "the connection is closed in the middle of the response",
    "truncated": "a complete response whose JSON ends in the middle",
    "slow": "the response is delayed by a second and a half",
    "silent watch": "a watch starts, and never receives an event",
    "stale watch": "a watch gets the error that its resourceVersion is too old",
}
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "host", "authorization", "keep-alive"}
_SLOW = 1.5
#: Seconds after which this server ends a silent watch.
_SILENCE = 30.0


class FaultServer:
    """share: of the requests that are disturbed. counts: how often each fault has occurred.

    token: the only valid one, all others get 401; with "" all are valid. before_each: called before each request, for one request at a time.
    """

    def __init__(
        self,
        kubeconfig: str,
        faults: t.Sequence[str] = (),
        share: float = 0.0,
        seed: int = 0,
        handler: type[http.server.BaseHTTPRequestHandler] | None = None,
    ) -> None:
        credentials = files.load(kubeconfig)
        self.pool = urllib3.HTTPSConnectionPool(
            *_address(credentials.host), ssl_context=tls.context(credentials), maxsize=32, retries=False
        )
        self.counts: collections.Counter[str] = collections.Counter()
        self.requests = 0
        self.token = ""
        self.before_each: t.Callable[[FaultServer], None] = lambda _server: None
        self._faults, self._share, self._random, self._lock = list(faults), share, random.Random(seed), threading.Lock()
        bound = type("Bound", (handler or Handler,), {"front": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), bound)
        self.server.daemon_threads = True

    def fault(self, watch: bool) -> str:
        """The fault of the next request, "" for none."""
        with self._lock:
            if self._random.random() >= self._share:
                return ""
            fault = self._random.choice(self._faults)
            if fault.endswith("watch") and not watch:
                return ""
            self.counts[fault] += 1
            return fault

    def authenticates(self, authorization: str) -> bool:
        """Whether the token in this header is valid now."""
        with self._lock:
            self.requests += 1
            self.before_each(self)
            if self.token and authorization != f"Bearer {self.token}":
                self.counts["401"] += 1
                return False
            return True

    def kubeconfig(self, path: pathlib.Path, **user: str) -> str:
        """The path of a new kubeconfig for this server. user: the credentials in it."""
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        name = "disturbed"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": url}}],
            "users": [{"name": name, "user": user or {"token": "none"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return str(path)


@contextlib.contextmanager
def spoilt(kubeconfig: str, faults: t.Sequence[str] = (), share: float = 0.0, seed: int = 0) -> t.Iterator[FaultServer]:
    with serving(FaultServer(kubeconfig, faults, share, seed)) as server:
        yield server


@contextlib.contextmanager
def serving(server: FaultServer) -> t.Iterator[FaultServer]:
    thread = threading.Thread(target=server.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join(timeout=10)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: FaultServer

    def log_message(self, *_words: t.Any) -> None:
        """Faults are counted, not printed."""

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.front.authenticates(self.headers.get("Authorization", "")):
            self._status(401, {})
            return
        watch = "watch=true" in self.path
        fault = self.front.fault(watch)
        if fault in ("429", "429 later", "500", "503"):
            self._status(int(fault[:3]), {"Retry-After": "1"} if fault == "429 later" else {})
        elif fault == "dropped":
            self.close_connection = True
        elif fault == "stale watch":
            self._stream([json.dumps({"type": "ERROR", "object": _status(410, "Expired")}).encode() + b"\n"])
        elif fault == "silent watch":
            self._stream(_silence())
        else:
            self._forward(body, watch, fault)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _forward(self, body: bytes, watch: bool, fault: str) -> None:
        if fault == "slow":
            time.sleep(_SLOW)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        try:
            answer = self.front.pool.request(
                self.command, self.path, body=body or None, headers=headers, preload_content=False, decode_content=False
            )
        except urllib3.exceptions.HTTPError:
            # A proxy whose server is gone closes the connection too.
            self.close_connection = True
            return
        try:
            if watch:
                self._stream(answer.stream(65536, decode_content=False), answer)
                return
            data = answer.read(decode_content=False)
            if fault == "answer lost":
                self.close_connection = True
            elif fault == "truncated":
                self._answer(answer, data[: len(data) // 2], len(data) // 2)
            elif fault == "cut":
                self._answer(answer, data[: len(data) // 2], len(data))
                self.close_connection = True
            else:
                self._answer(answer, data, len(data))
        finally:
            # The rest of a watch is not read.
            answer.close() if watch else answer.release_conn()

    def _answer(self, answer: t.Any, data: bytes, length: int) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(data)

    def _status(self, code: int, headers: dict[str, str]) -> None:
        data = json.dumps(_status(code, "Disturbed")).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chunks: t.Iterable[bytes], answer: t.Any = None) -> None:
        """Until one of the two sides ends the stream."""
        self.send_response(answer.status if answer is not None else 200)
        self.send_header(
            "Content-Type",
            answer.headers.get("Content-Type", "application/json") if answer is not None else "application/json",
        )
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            for chunk in chunks:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def _silence() -> t.Iterator[bytes]:
    time.sleep(_SILENCE)
    yield b"\n"


def _status(code: int, reason: str) -> dict[str, t.Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "disturbed by the test",
        "reason": reason,
        "code": code,
    }


def _address(url: str) -> tuple[str, int]:
    parts = urllib3.util.parse_url(url)
    return str(parts.host), int(parts.port or 443)
