# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches: events of one kind until a deadline, over as many connections as needed."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import math
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import errors
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.retry import Policy
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Request, Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Event
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Overloaded, Unreachable

#: Seconds without an event or bookmark after which the connection counts as lost, because a half-open one never reports an error.
SILENCE = 60.0
#: The longest that the server is asked to keep one watch open.
_LONGEST = 300


def events(
    transport: Transport,
    request: Request,
    resource_version: str,
    deadline: float,
    *,
    silence: float = SILENCE,
    clock: c.Callable[[], float] = time.monotonic,
    sleep: c.Callable[[float], None] = time.sleep,
) -> c.Iterator[Event]:
    """request: the LIST request, without the parameters of a watch.

    Raises Gone if the caller must list again; Unreachable and Overloaded if there was no connection, so that nothing was watched.
    """
    version, quick_ends, connected = resource_version, 0, False
    while (left := deadline - clock()) > 0:
        began, heard = clock(), False
        query = (
            *request.query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(max(1, min(_LONGEST, math.ceil(left))))),
        )
        # Retried until the caller's deadline, because a server that restarts becomes available again.
        try:
            response = transport.stream(
                dataclasses.replace(request, query=query),
                max(0.05, min(silence, left)),
                Policy(attempts=10**6, patience=left),
            )
        except (Unreachable, Overloaded):
            if connected:
                # The server was available when the watch began. If it no longer is, the next request of the caller reports that.
                return
            raise
        connected = True
        try:
            for event in _lines(transport, request, response, deadline, silence, clock):
                heard = True
                version = (event.object.get("metadata") or {}).get("resourceVersion") or version
                yield event
        finally:
            # The connection is not returned to the pool, because the rest of the stream is unread.
            response.close()
        # This limits the rate of requests to a server that ends every watch at once.
        quick_ends = 0 if heard or clock() - began > 1 else quick_ends + 1
        if quick_ends and (left := deadline - clock()) > 0:
            sleep(min(left, 0.1 * 2 ** min(quick_ends, 6)))


def _lines(
    transport: Transport,
    request: Request,
    response: t.Any,
    deadline: float,
    silence: float,
    clock: c.Callable[[], float],
) -> c.Iterator[Event]:
    """Events of one connection. Returns when it ends, breaks or stalls, or when the deadline has passed."""
    exceptions = transport.urllib3.exceptions
    rest = b""
    chunks = (
        response.read_chunked(decode_content=True)
        if _chunked(response)
        else response.stream(65536, decode_content=True)
    )
    while True:
        _limit(response, max(0.05, min(silence, deadline - clock())))
        try:
            chunk = next(chunks, None)
        except (exceptions.HTTPError, OSError):
            return
        if chunk is None:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                event = _event(request, transport.where, line)
                if event is None:
                    return
                yield event
        if clock() >= deadline:
            return


def _event(request: Request, where: str, line: bytes) -> Event | None:
    """None if the line is damaged. The connection is then closed, and the watch continues after the last valid event."""
    try:
        parsed = json.loads(line)
        kind, obj = parsed["type"], parsed["object"]
    except (ValueError, KeyError, TypeError):
        return None
    if kind == "ERROR":
        status = int(obj.get("code") or 500)
        if status in (429, 500, 503, 504):
            return None
        raise errors.from_status(status, obj, "", request.what, where + request.path)
    return Event(kind, obj)


def _chunked(response: t.Any) -> bool:
    return bool(getattr(response, "chunked", False)) and hasattr(response, "read_chunked")


def _limit(response: t.Any, seconds: float) -> None:
    """Limits the next read, so that a stalled server cannot block the caller past the deadline."""
    connection = getattr(response, "_connection", None) or getattr(response, "connection", None)
    sock = getattr(connection, "sock", None)
    if sock is not None:
        sock.settimeout(seconds)
