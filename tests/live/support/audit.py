# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests and writes in the API server's audit log. The definition of a write is that of the design (budgets)."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib
import typing as t
import urllib.parse

MUTATING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
#: Kinds whose objects a POST sends but no server stores.
NOT_STORED = frozenset(
    {
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "localsubjectaccessreviews",
        "selfsubjectreviews",
        "tokenreviews",
    }
)

#: https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens
_NODE = "authentication.kubernetes.io/node-name"


@dataclasses.dataclass(frozen=True)
class Request:
    """One completed request. user: the impersonated user, if any. status: the HTTP status.

    node: of the pod that sent the request, "" if it was no pod. received: the time in the server's format. A watch is logged after it has ended.
    """

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    user_agent: str
    uri: str
    status: int
    node: str = ""
    received: str = ""

    @property
    def is_write(self) -> bool:
        if self.verb not in MUTATING or self.resource in NOT_STORED or self.subresource == "token":
            return False
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.uri).query)
        return "All" not in query.get("dryRun", []) and self.status < 400

    def __str__(self) -> str:
        return f"{self.verb} {self.uri} by {self.user} ({self.user_agent.split(' ', maxsplit=1)[0]}) -> {self.status}"


def _request(event: dict[str, t.Any]) -> Request | None:
    if event.get("stage") != "ResponseComplete":
        return None
    ref = event.get("objectRef") or {}
    user = event.get("impersonatedUser") or event.get("user") or {}
    return Request(
        verb=event["verb"],
        group=ref.get("apiGroup", ""),
        resource=ref.get("resource", ""),
        subresource=ref.get("subresource", ""),
        namespace=ref.get("namespace", ""),
        name=ref.get("name", ""),
        user=user.get("username", ""),
        user_agent=event.get("userAgent", ""),
        uri=event.get("requestURI", ""),
        status=(event.get("responseStatus") or {}).get("code", 0),
        node=next(iter((user.get("extra") or {}).get(_NODE, ())), ""),
        received=event.get("requestReceivedTimestamp", ""),
    )


class AuditLog:
    """The part of an audit log that was written after this object was created (or after `mark`)."""

    def __init__(self, path: str | pathlib.Path) -> None:
        self.path = pathlib.Path(path)
        self.offset = 0
        self._read: list[Request] = []
        #: Offsets of the first and behind the last line whose requests are kept in memory.
        self._span = (0, 0)
        self.mark()

    def mark(self) -> None:
        """Ignore all requests up to now."""
        self.offset = self.path.stat().st_size if self.path.exists() else 0

    def events(self) -> c.Iterator[dict[str, t.Any]]:
        """Events of complete lines, because the last line may still be incomplete in the file."""
        return (event for event, _end in self._events(self.offset))

    def _events(self, start: int) -> c.Iterator[tuple[dict[str, t.Any], int]]:
        """Each event with the offset behind its line."""
        with self.path.open("rb") as stream:
            if start:
                # The offset may be within a line that the API server was writing. Its request is older than the mark and does not count.
                stream.seek(start - 1)
                if not stream.readline().endswith(b"\n"):
                    return
            for line in iter(stream.readline, b""):
                # An incomplete line is read again later, when it is complete.
                if not line.endswith(b"\n"):
                    return
                yield json.loads(line), stream.tell()

    def requests(self) -> c.Iterator[Request]:
        """Each line is read once, also by repeated calls, because logs of long tests have a hundred MiB."""
        start, end = self._span
        if start != self.offset:
            self._read, end = [], self.offset
        for event, after in self._events(end):
            end = after
            if request := _request(event):
                self._read.append(request)
        self._span = (self.offset, end)
        return iter(tuple(self._read))

    def ours(self) -> list[Request]:
        """Requests of the collection's own client."""
        return [request for request in self.requests() if request.user_agent.startswith("hwaccel.gpu/")]

    def our_writes(self) -> list[Request]:
        return [request for request in self.ours() if request.is_write]
