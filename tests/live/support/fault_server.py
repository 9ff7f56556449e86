# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server on loopback between a client and the real API server, which spoils a share of the requests, by a seed.

What each fault is like is what API servers, load balancers and networks in front of them do: `FAULTS` names them.
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

#: Name to what happens. Those of watches leave all other requests alone.
FAULTS = {
    "429": "too many requests, and no word of when to come again",
    "429 later": "too many requests, come again in a second",
    "500": "an internal error, before the request was looked at",
    "503": "no API server behind the load balancer",
    "dropped": "the connection is closed without a word, before the request was looked at",
    "answer lost": "the request is carried out, and the connection is closed without a word",
    "cut": "the connection is closed in the middle of the answer",
    "truncated": "a whole answer whose JSON ends in the middle",
    "slow": "the answer takes a second and a half more",
    "silent watch": "a watch is begun, and nothing ever comes",
    "stale watch": "a watch is told that its resourceVersion is too old",
}
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "host", "authorization", "keep-alive"}
_SLOW = 1.5
#: Seconds after which a silent watch is given up by this side too.
_SILENCE = 30.0


class FaultServer:
    """share: of the requests that are spoilt; counts: how often each fault has happened.

    token: the one that is known, any other is answered with 401; "": all are. before_each: called before each request, one after the other.
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
        """What happens to the next request, "" for nothing."""
        with self._lock:
            if self._random.random() >= self._share:
                return ""
            found = self._random.choice(self._faults)
            if found.endswith("watch") and not watch:
                return ""
            self.counts[found] += 1
            return found

    def knows(self, authorization: str) -> bool:
        """Whether the bearer of this token is let in now."""
        with self._lock:
            self.requests += 1
            self.before_each(self)
            if self.token and authorization != f"Bearer {self.token}":
                self.counts["401"] += 1
                return False
            return True

    def kubeconfig(self, path: pathlib.Path, **user: str) -> str:
        """Of somebody who talks to this server. user: how a kubeconfig says who that is."""
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        name = "spoilt"
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
    with serving(FaultServer(kubeconfig, faults, share, seed)) as made:
        yield made


@contextlib.contextmanager
def serving(made: FaultServer) -> t.Iterator[FaultServer]:
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join(timeout=10)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: FaultServer

    def log_message(self, *_words: t.Any) -> None:
        """What happens is counted, not printed."""

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.front.knows(self.headers.get("Authorization", "")):
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
            # What is left of a watch is unread.
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
        data = json.dumps(_status(code, "Spoilt")).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chunks: t.Iterable[bytes], answer: t.Any = None) -> None:
        """Until the one or the other side ends it."""
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
        "message": "spoilt by the test",
        "reason": reason,
        "code": code,
    }


def _address(url: str) -> tuple[str, int]:
    parts = urllib3.util.parse_url(url)
    return str(parts.host), int(parts.port or 443)
