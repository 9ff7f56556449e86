# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC that requires sessions, and supports only few: a proxy of an emulated BMC, which has no sessions."""

from __future__ import annotations

import base64
import http.server
import json
import pathlib
import secrets
import ssl
import threading
import typing as t
import urllib.error
import urllib.request

from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import HOST, PATIENCE, USERNAME, Bmc

_SERVICE = "/redfish/v1/SessionService"
_SESSIONS = f"{_SERVICE}/Sessions"


class Sessions:
    """open: paths of open sessions by token. begun: number of all sessions."""

    #: Maximum number of open sessions.
    LIMIT = 1

    def __init__(self, bmc: Bmc) -> None:
        self.open: dict[str, str] = {}
        self.begun = 0
        self._bmc = bmc
        sessions = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer, headers = sessions._answer(
                    self.command, self.path, body, self.headers.get("X-Auth-Token", "")
                )
                self.send_response(status)
                for key, value in {
                    **headers,
                    "Content-Type": "application/json",
                    "Content-Length": str(len(answer)),
                }.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PATCH = do_DELETE = _do

            def log_message(self, *_arguments: t.Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(bmc.ca, pathlib.Path(bmc.ca).parent / "key.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"{HOST}:{self._server.server_port}"

    def _answer(self, method: str, path: str, body: bytes, token: str) -> tuple[int, bytes, dict[str, str]]:
        if (method, path) == ("POST", _SESSIONS):
            return self._begin(json.loads(body))
        if path.rstrip("/") == "/redfish/v1":
            status, answer, _headers = self._forward(method, path, body)
            root = json.loads(answer)
            root |= {"SessionService": {"@odata.id": _SERVICE}, "Links": {"Sessions": {"@odata.id": _SESSIONS}}}
            return status, json.dumps(root).encode(), {}
        if token not in self.open:
            return 401, b"{}", {}
        if method == "DELETE" and path == self.open[token]:
            del self.open[token]
            return 204, b"", {}
        return self._forward(method, path, body)

    def _begin(self, credentials: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if (credentials.get("UserName"), credentials.get("Password")) != (USERNAME, self._bmc.password):
            return 401, b"{}", {}
        if len(self.open) >= self.LIMIT:
            return 503, b"{}", {}
        self.begun += 1
        token = secrets.token_hex(16)
        self.open[token] = f"{_SESSIONS}/{self.begun}"
        return 201, b"{}", {"X-Auth-Token": token, "Location": self.open[token]}

    def _forward(self, method: str, path: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        password = base64.b64encode(f"{USERNAME}:{self._bmc.password}".encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {password}"}
        request = urllib.request.Request(f"https://{self._bmc.address}{path}", body or None, headers, method=method)
        try:
            with urllib.request.urlopen(
                request, timeout=PATIENCE, context=ssl.create_default_context(cafile=self._bmc.ca)
            ) as answer:
                return answer.status, answer.read(), {}
        except urllib.error.HTTPError as error:
            return error.code, error.read(), {}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
