# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server of machine configs of a cluster: serves the file config/ROLE of a folder over TLS, and /healthz. Appends a line of JSON to LOG for each request
of a config.

machine_config.py PORT CERTIFICATE FOLDER LOG
"""

from __future__ import annotations

import asyncio
import contextlib
import email
import json
import pathlib
import ssl
import sys


def answer(path: str, folder: pathlib.Path) -> bytes:
    file = folder / path.removeprefix("/")
    status, body = (
        ("200 OK", b"")
        if path == "/healthz"
        else ("200 OK", file.read_bytes())
        if file.is_file()
        else ("404 Not Found", b"")
    )
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def main(port: str, certificate: str, folder: str, log: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            line, _end, head = (await reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")
            path = line.split()[1]
            if path.startswith("/config/"):
                headers = email.message_from_string(head)
                request = {
                    "path": path,
                    "peer": writer.get_extra_info("peername")[0],
                    "accept": headers["Accept"],
                    "agent": headers["User-Agent"],
                }
                with open(log, "a", encoding="utf-8") as file:
                    file.write(json.dumps(request) + "\n")
            writer.write(answer(path, pathlib.Path(folder)))
            await writer.drain()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(serve, "0.0.0.0", int(port), ssl=context)
    print("serves", flush=True)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
