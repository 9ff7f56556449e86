# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A minimal API server for tests: it responds to reads, without TLS and without authentication."""

from __future__ import annotations

import collections.abc as c
import contextlib
import http.server
import json
import threading
import typing as t

#: Status and object for a path without its query.
Answer = c.Callable[[str], tuple[int, dict[str, t.Any]]]


class Api(contextlib.AbstractContextManager[t.Any]):
    """It runs until the context ends."""

    def __init__(self, host: str, answer: Answer) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, document = answer(self.path.partition("?")[0])
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: t.Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self._host = host
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def connection(self) -> dict[str, t.Any]:
        return {"host": f"http://{self._host}:{self._server.server_port}"}

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
