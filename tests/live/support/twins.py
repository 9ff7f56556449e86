# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One real cluster that a server on loopback presents as many, each with its own path and its own uid of kube-system.

Each read request is sent to the real API server once and its response is cached, so that a run over many clusters shows the cost of the
controller only. This is suitable for runs that write nothing.
"""

from __future__ import annotations

import re
import threading
import typing as t
import uuid

from ansible_collections.hwaccel.gpu.tests.live.support.fault_server import FaultServer, Handler

_PLACE = re.compile(r"^/clusters/(\d+)(/.*)$")


class _Twin(Handler):
    front: Twins

    def do_GET(self) -> None:
        place = _PLACE.match(self.path)
        assert place is not None, self.path
        self.path = place[2]
        if self.command == "GET" and "watch=true" not in self.path and "/log" not in self.path:
            status, content_type, data = self.front.cached(self.path, self.headers.get("Accept", ""))
            data = data.replace(self.front.uid, str(uuid.uuid5(uuid.NAMESPACE_URL, place[1])).encode())
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        else:
            super().do_GET()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET


class Twins(FaultServer):
    """uid: that of the real kube-system."""

    def __init__(self, kubeconfig: str, uid: str) -> None:
        super().__init__(kubeconfig, handler=_Twin)
        self.uid = uid.encode()
        self._cache: dict[tuple[str, str], tuple[int, str, bytes]] = {}
        self._cache_lock = threading.Lock()

    def cached(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Status, content type and body of the real server's response."""
        with self._cache_lock:
            if (path, accept) not in self._cache:
                answer = self.pool.request("GET", path, headers={"Accept": accept})
                self._cache[(path, accept)] = (answer.status, answer.headers.get("Content-Type", ""), answer.data)
        return self._cache[(path, accept)]

    def host(self, number: int) -> dict[str, t.Any]:
        """Connection options of one of the clusters."""
        return {"host": f"http://127.0.0.1:{self.server.server_address[1]}/clusters/{number}", "api_key": "none"}
