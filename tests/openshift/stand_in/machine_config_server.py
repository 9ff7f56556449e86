# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the server of machine configs, on 22623 with TLS and on 22624 without: a process, as on the bootstrap machine and on masters.

python -m ...machine_config_server FOLDER ADDRESS SECURE_PORT INSECURE_PORT

FOLDER has served.json (Served of machine_configs.py), tls.crt and tls.key, which it reads again when they change, and gets requests: a line of JSON for each
request of a config. It prints a line when it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import email
import http
import json
import pathlib
import ssl
import sys
import time

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_configs import CONFIGS, Answer, Served, answer

SERVED, CERTIFICATE, KEY, REQUESTS = "served.json", "tls.crt", "tls.key", "requests"
#: Seconds within which a request has to arrive, and between two looks at the certificate.
_PATIENCE, _LOOK = 60.0, 0.2
#: Bytes of a body, which is read and not used.
_BODY = 65536


@dataclasses.dataclass(frozen=True)
class Request:
    """As it is recorded. time: seconds since 1970. address: of the client, which may be a load balancer. status: of the answer; reason: of a refusal."""

    time: float
    address: str
    method: str
    path: str
    accept: str
    agent: str
    tls: bool
    status: int
    reason: str


class Server:
    """One for both ports."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._loaded = self._state()
        self._certified = self._load()

    async def listen(self, address: str, secure: int, insecure: int) -> None:
        await asyncio.start_server(self._serve, address, secure, ssl=self._context())
        await asyncio.start_server(self._serve, address, insecure)
        print(f"a stand-in for machine-config-server listens on {address}: {secure}, {insecure}", flush=True)
        while True:
            await asyncio.sleep(_LOOK)
            if self._loaded != self._state():
                # Between the two files they do not match: then the former ones are served on.
                with contextlib.suppress(ssl.SSLError):
                    self._loaded, self._certified = self._state(), self._load()

    def _state(self) -> list[int]:
        return [(self._folder / name).stat().st_mtime_ns for name in (CERTIFICATE, KEY)]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / CERTIFICATE, self._folder / KEY)
        return context

    def _context(self) -> ssl.SSLContext:
        """One that gives each connection the present certificate. A context itself keeps one of each kind of key."""

        def choose(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self._certified

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = choose
        return context

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError)
        with contextlib.suppress(*gone), contextlib.closing(writer):
            async with asyncio.timeout(_PATIENCE):
                line, _end, head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
                headers = email.message_from_string(head)
                await reader.readexactly(min(int(headers["Content-Length"] or 0), _BODY))
                method, path = line.split()[:2]
                accept, agent = headers["Accept"] or "", headers["User-Agent"] or ""
                given = answer(self._served(), method, path.partition("?")[0], accept)
                if path.startswith(CONFIGS):
                    peer, tls = writer.get_extra_info("peername")[0], writer.get_extra_info("sslcontext") is not None
                    self._record(
                        Request(time.time(), peer, method, path, accept, agent, tls, given.status, given.reason)
                    )
                writer.write(_written(given, body=method != "HEAD"))
                await writer.drain()

    def _served(self) -> Served:
        return Served.of(json.loads((self._folder / SERVED).read_bytes()))

    def _record(self, request: Request) -> None:
        with (self._folder / REQUESTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(dataclasses.asdict(request)) + "\n")


def _written(given: Answer, *, body: bool) -> bytes:
    lines = [f"HTTP/1.1 {given.status} {http.HTTPStatus(given.status).phrase}", f"Content-Length: {len(given.body)}"]
    lines += ["Content-Type: application/json"] * bool(given.body) + ["Connection: close", "", ""]
    return "\r\n".join(lines).encode() + (given.body if body else b"")


def main(folder: str, address: str, secure: str, insecure: str) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(Server(pathlib.Path(folder)).listen(address, int(secure), int(insecure)))


if __name__ == "__main__":
    main(*sys.argv[1:])
