# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror that interrupts its responses."""

from __future__ import annotations

import http.server
import typing as t

CONTENT = bytes(range(256)) * 8000


class Mirror(http.server.ThreadingHTTPServer):
    """`breaks`: lengths after which a response is interrupted, each once. `ranges`: whether ranges are supported. `requested`: Range header of each request."""

    def __init__(self, breaks: list[int], ranges: bool = True, address: str = "127.0.0.1") -> None:
        self.breaks, self.ranges, self.requested = breaks, ranges, t.cast("list[str]", [])
        super().__init__((address, 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]}:{self.server_port}/rootfs"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        byte_range = self.headers.get("Range", "")
        self.server.requested.append(byte_range)
        begin = int(byte_range[len("bytes=") : -1]) if byte_range and self.server.ranges else 0
        if begin >= len(CONTENT):
            self.send_error(416)
            return
        part = CONTENT[begin:]
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part[: self.server.breaks.pop(0)] if self.server.breaks else part)
        self.close_connection = True

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: t.Any) -> None:
        pass
