# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine needs of a client; `_api.client.Client` has it, tests bring their own.

Every method raises only the errors of `_model.errors`.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource


@dataclasses.dataclass(frozen=True)
class Answer:
    """One object as the server returned it, with the `Warning:` headers of that answer."""

    object: dict[str, t.Any]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Page:
    """One page of a LIST. resource_version is the list's, the same on every page."""

    items: list[dict[str, t.Any]]
    resource_version: str
    remaining: int | None = None


@dataclasses.dataclass(frozen=True)
class Event:
    """One watch event: type is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: dict[str, t.Any]


class Client(t.Protocol):
    """Requests by resource. namespace is "" for cluster-scoped resources and for all namespaces."""

    @property
    def where(self) -> str:
        """The API server's address, without credentials."""

    @property
    def source(self) -> str:
        """Where the credentials are from, without any of them."""

    def before_repeats(self, look: c.Callable[[], None]) -> None:
        """look is called before a write that got no answer is sent again, replaces apart, which carry a resourceVersion; what it raises ends the request."""

    def resource(self, api_version: str, kind: str) -> Resource:
        """Discovery, cached per process. Raises UnknownKind."""

    def resource_by_group(self, group: str, kind: str) -> Resource:
        """The preferred version of a group and kind. Raises UnknownKind."""

    def all_resources(self) -> list[Resource]:
        """Every resource of the server, each in its preferred version."""

    def forget_discovery(self) -> None:
        """After a CRD or APIService was made: the next resource() asks the server again."""

    def server_version(self) -> dict[str, t.Any]:
        """What the server says of itself: gitVersion, platform and so on."""

    def server_time(self) -> float | None:
        """Seconds since 1970 by the server's clock, None where it has not reported it: timestamps of objects are compared with nothing else."""

    def get(
        self, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False
    ) -> dict[str, t.Any]:
        """The object; raises NotFound."""

    def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> c.Iterator[Page]:
        """Pages of 500; a 410 in the middle restarts the list once from the beginning (the caller sees a page with restarted items only once)."""

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> Page:
        """All pages as one."""

    def apply(
        self,
        obj: dict[str, t.Any],
        resource: Resource,
        *,
        field_manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> Answer:
        """Server-side apply."""

    def create(
        self, obj: dict[str, t.Any], resource: Resource, *, field_manager: str = "", dry_run: bool = False
    ) -> Answer:
        """POST; raises Conflict where there is one of that name."""

    def replace(
        self, obj: dict[str, t.Any], resource: Resource, *, field_manager: str = "", dry_run: bool = False
    ) -> Answer:
        """PUT: metadata.resourceVersion, where it is set, is the precondition."""

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: t.Any,
        *,
        patch_type: str = "application/merge-patch+json",
        field_manager: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Merge patch by default; JSON patch as application/json-patch+json. Not repeated after a dropped connection unless it carries a resourceVersion."""

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> None:
        """With preconditions where uid and resource_version are given. Raises NotFound, Conflict (another one, or it was written since)."""

    def evict(self, name: str, namespace: str, *, uid: str, dry_run: bool = False) -> None:
        """The Pod of that uid is asked to terminate. Raises BudgetRefused, NotFound, Conflict (another uid)."""

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        deadline: float,
    ) -> c.Iterator[Event]:
        """Events until `deadline` (time.monotonic() seconds); reconnects by itself.

        Raises Gone where the caller must list again, Unreachable or Overloaded where nothing could be watched.
        """

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, tail_lines: int = 20) -> str:
        """The last lines of a container's log."""

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        """SelfSubjectAccessReview."""
