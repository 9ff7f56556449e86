# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A TCP proxy on loopback that adds a round-trip time, as if the API server were in another city."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator


class DelayProxy:
    """Every chunk is sent `one_way` seconds after its arrival, in order and in both directions. This adds latency without reducing bandwidth."""

    def __init__(self, host: str, port: int, one_way: float) -> None:
        self.target = (host, port)
        self.one_way = one_way
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._stop: Callable[[], object] = lambda: None

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(timeout=10)

    def stop(self) -> None:
        self._stop()
        self._thread.join(timeout=10)

    async def _serve(self) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(ended.set)
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await ended.wait()
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection. At the end, asyncio.run cancels open ones, so that both sides are always closed."""
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            upstream_reader, upstream_writer = await asyncio.open_connection(*self.target)
            with contextlib.closing(upstream_writer):
                await asyncio.gather(self._pipe(reader, upstream_writer), self._pipe(upstream_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sender = asyncio.create_task(self._send_late(queue, writer))
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                queue.put_nowait((asyncio.get_running_loop().time() + self.one_way, chunk))
        queue.put_nowait((asyncio.get_running_loop().time() + self.one_way, b""))
        await sender

    async def _send_late(self, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            while True:
                due, chunk = await queue.get()
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                if not chunk:
                    break
                writer.write(chunk)
                await writer.drain()
        with contextlib.suppress(ConnectionError, RuntimeError):
            writer.close()


@contextlib.contextmanager
def delayed(host: str, port: int, round_trip: float) -> Iterator[int]:
    """The port of a proxy to host:port that adds round_trip seconds to each exchange."""
    proxy = DelayProxy(host, port, round_trip / 2)
    proxy.start()
    try:
        yield proxy.port
    finally:
        proxy.stop()
