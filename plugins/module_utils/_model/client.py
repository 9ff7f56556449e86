# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of the client that the engine needs. `_api.client.Client` implements it, and tests have their own.

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
        """Source of the credentials, without the credentials themselves."""

    def before_repeats(self, look: c.Callable[[], None]) -> None:
        """look is called before a write without an answer is retried, except for replaces with a resourceVersion. Its error ends the request."""

    def resource(self, api_version: str, kind: str) -> Resource:
        """Discovery, cached per process. Raises UnknownKind."""

    def resource_by_group(self, group: str, kind: str) -> Resource:
        """The preferred version of a group and kind. Raises UnknownKind."""

    def all_resources(self) -> list[Resource]:
        """Every resource of the server, each in its preferred version."""

    def forget_discovery(self) -> None:
        """Must be called after a CRD or APIService was created, so that the next resource() queries the server again."""

    def server_version(self) -> dict[str, t.Any]:
        """The server's version: gitVersion, platform and so on."""

    def server_time(self) -> float | None:
        """Seconds since 1970 by the server's clock, None if unknown. Timestamps of objects must only be compared with this clock."""

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
        """Pages of 500; a 410 in the middle restarts the list once from the beginning (the caller gets each restarted item only once)."""

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> Page:
        """All pages as one list."""

    def rows(self, resource: Resource, namespace: str = "") -> t.Iterable[c.Mapping[str, t.Any]]:
        """What `kubectl get -o wide` prints: a line for each object, by the name of the column in lower case. A fiftieth of a list of Pods."""

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
        """POST; raises Conflict if the name exists."""

    def replace(
        self,
        obj: dict[str, t.Any],
        resource: Resource,
        *,
        field_manager: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """PUT: metadata.resourceVersion and uid, if set, are the preconditions."""

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
        """Merge patch by default; JSON patch as application/json-patch+json. Not retried after a dropped connection unless it has a resourceVersion."""

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
        """With preconditions if uid and resource_version are set. Raises NotFound, Conflict (another uid, or changed since)."""

    def evict(self, name: str, namespace: str, *, uid: str, dry_run: bool = False) -> None:
        """Evicts the Pod with that uid. Raises BudgetRefused, NotFound, Conflict (another uid)."""

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
        """Events until `deadline` (time.monotonic() seconds); reconnects automatically.

        Raises Gone if the caller must list again, Unreachable or Overloaded if nothing could be watched.
        """

    def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, tail_lines: int = 20) -> str:
        """The last lines of a container's log."""

    def allowed(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        """SelfSubjectAccessReview."""
