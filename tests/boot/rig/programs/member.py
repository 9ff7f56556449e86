# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of a load balancer: responds to every request with its name, over TLS on ports with "=tls".

member.py NAME CERTIFICATE PORT[=tls]...
"""

from __future__ import annotations

import asyncio
import ssl
import sys


class Answer(asyncio.Protocol):
    def __init__(self, name: str) -> None:
        body = f"{name}\n"
        self.answer = f"HTTP/1.0 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        self.request = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.request += data
        # A request for /slow stays in flight until the end of the member.
        if b"\r\n\r\n" in self.request and not self.request.startswith(b"GET /slow "):
            self.transport.write(self.answer)  # type: ignore[attr-defined]
            self.transport.close()


async def main(name: str, certificate: str, *ports: str) -> None:
    loop = asyncio.get_running_loop()
    for port, _equals, tls in (one.partition("=") for one in ports):
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
        await loop.create_server(lambda: Answer(name), "0.0.0.0", int(port), ssl=context, backlog=1024)
    print("serves", flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
