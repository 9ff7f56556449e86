# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that opens a new connection for each request, at a constant rate, until its standard input is closed. Prints the results as JSON.

client.py ADDRESS PORT RATE
"""

from __future__ import annotations

import asyncio
import collections
import json
import sys
import time

REQUEST = b"GET / HTTP/1.0\r\n\r\n"
#: Maximum number of open connections, so that a member without responses does not reduce the rate, and the limit of open files is not reached.
MAX_OPEN = 400
TIMEOUT = 15


async def request(address: str, port: int, answers: collections.Counter[str], lost: list[tuple[float, str]]) -> None:
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(REQUEST)
                answer = await reader.read()
            finally:
                writer.close()
        head, _blank, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.0 200"):
            raise ConnectionError(f"answer {answer[:40]!r}")
        answers[body.decode().strip()] += 1
    except (OSError, TimeoutError) as error:
        lost.append((time.time(), repr(error)))


async def main(address: str, port: str, rate: str) -> None:
    loop = asyncio.get_running_loop()
    end = loop.run_in_executor(None, sys.stdin.read)
    answers: collections.Counter[str] = collections.Counter()
    lost: list[tuple[float, str]] = []
    running: set[asyncio.Task[None]] = set()
    start = due = loop.time()
    while not end.done():
        if len(running) < MAX_OPEN:
            task = loop.create_task(request(address, int(port), answers, lost))
            running.add(task)
            task.add_done_callback(running.discard)
        due = max(due + 1 / float(rate), loop.time() - 1)
        await asyncio.sleep(max(0.0, due - loop.time()))
    seconds = loop.time() - start
    await asyncio.gather(*running)
    print(json.dumps({"seconds": seconds, "answers": answers, "lost": lost}))


asyncio.run(main(*sys.argv[1:]))
