# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that the cluster in memory records, and hooks of tests, which inspect a request, write like another client, or raise an error."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

#: Verbs for authorization that differ from the name of the method.
_RIGHTS = {"apply": "patch", "replace": "update", "logs": "get", "evict": "create"}
_SUBRESOURCES = {"logs": "/log", "evict": "/eviction"}
WRITES = ("apply", "create", "replace", "patch", "delete", "evict")


@dataclasses.dataclass(frozen=True)
class Request:
    """`verb`: method of the client. `body`: an object or a patch. `paged`: a list that is read page by page. `printed`: a list of lines.

    `subresource`: of a replacement.
    """

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    body: t.Any = None
    selector: str = ""
    paged: bool = False
    metadata_only: bool = False
    printed: bool = False
    subresource: str = ""

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def right(self) -> tuple[str, str]:
        part = f"/{self.subresource}" if self.subresource else _SUBRESOURCES.get(self.verb, "")
        return _RIGHTS.get(self.verb, self.verb), self.resource.plural + part

    @property
    def place(self) -> tuple[str, str, str]:
        """Key of the object in the cluster."""
        return self.resource.plural, self.namespace, self.name


@dataclasses.dataclass
class Hook:
    """`call` is called for each request of these verbs, kind and name ("" is any), from the `at`-th on, `times` times (0 is always).

    `dry_run`: for dry runs as well. A call that raises an error simulates a fault.
    """

    call: c.Callable[[Request], object]
    verbs: tuple[str, ...] = ()
    kind: str = ""
    name: str = ""
    at: int = 1
    times: int = 0
    dry_run: bool = False
    matched: int = 0

    def __call__(self, request: Request) -> None:
        if (
            (self.verbs and request.verb not in self.verbs)
            or self.kind not in ("", request.kind)
            or self.name not in ("", request.name)
            or (request.dry_run and not self.dry_run)
        ):
            return
        self.matched += 1
        if self.matched >= self.at and (not self.times or self.matched < self.at + self.times):
            self.call(request)


def failing(error: BaseException) -> c.Callable[[Request], object]:
    """A hook that raises an error: an error status of the server, or a lost connection."""

    def fail(_request: Request) -> t.NoReturn:
        raise error

    return fail
