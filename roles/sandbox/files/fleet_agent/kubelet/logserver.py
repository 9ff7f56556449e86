# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubelet's HTTPS endpoint, as far as `kubectl logs` needs it. Only the API server's client certificate is accepted."""

from __future__ import annotations

import http.server
import os
import ssl
import sys
import threading
import urllib.parse
from typing import Any


class _Handler(http.server.BaseHTTPRequestHandler):
    agent: Any = None
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, code: int, text: str) -> None:
        data = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        if parts == ["healthz"]:
            return self._answer(200, "ok")
        if len(parts) != 4 or parts[0] != "containerLogs":
            return self._answer(404, "the simulated kubelet serves logs only\n")
        query = dict(urllib.parse.parse_qsl(url.query))
        self._answer(*read_log(self.agent, parts[1], parts[2], parts[3], query))


def read_log(agent: Any, namespace: str, pod_name: str, container_name: str, query: dict[str, str]) -> tuple[int, str]:
    """(status, body) in kubelet's format. Follow returns the current log."""
    pods = [
        p
        for node in list(agent.nodes.values())
        for p in list(node.pods.values())
        if (p.namespace, p.name) == (namespace, pod_name)
    ]
    container = next((c for p in pods for c in p.containers if c.name == container_name), None)
    if container is None:
        return 404, f'pod "{pod_name}" or container "{container_name}" does not exist on this node\n'
    previous = query.get("previous") == "true"
    log = container.previous_log if previous else container.log
    if previous and log is None:
        return 400, f'previous terminated container "{container_name}" in pod "{pod_name}" not found'
    if not previous and not container.container_id:
        reason = container.state.get("waiting", {}).get("reason", "")
        return 400, f'container "{container_name}" in pod "{pod_name}" is waiting to start: {reason}'
    lines = list(log or ())
    if query.get("tailLines", "").isdigit():
        count = int(query["tailLines"])
        lines = lines[-count:] if count else []
    if query.get("timestamps") != "true":
        lines = [line.partition(" ")[2] for line in lines]
    text = "".join(line + "\n" for line in lines)
    if query.get("limitBytes", "").isdigit():
        text = text[: int(query["limitBytes"])]
    return 200, text


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    expected = b""

    def handle_error(self, request: Any, client_address: Any) -> None:
        print(f"log endpoint: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True)

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(30)
        request.do_handshake()  # Done in the connection's own thread, so that a slow client does not block the others.
        if request.getpeercert(binary_form=True) != self.expected:
            raise PermissionError("a client certificate that is not the API server's")
        super().finish_request(request, client_address)


def serve(agent: Any, port: int) -> int:
    """Starts in a thread, and returns the port (0 = any free one)."""
    folder = os.path.join(agent.state, "pki")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "kubelet.crt"), os.path.join(folder, "kubelet.key"))
    context.load_verify_locations(os.path.join(folder, "ca.crt"))
    context.verify_mode = ssl.CERT_REQUIRED
    handler = type("Handler", (_Handler,), {"agent": agent})
    server = _Server(("127.0.0.1", port), handler)
    with open(os.path.join(folder, "kubelet-client.crt"), encoding="ascii") as stream:
        server.expected = ssl.PEM_cert_to_DER_cert(stream.read())
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True, name="logs").start()
    return int(server.server_address[1])
