# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds and objects by name."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, order=True)
class Resource:
    """One resource of the API from discovery. Subresources are not included."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = dataclasses.field(default=frozenset(), compare=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> tuple[str, str]:
        return self.group, self.kind

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path; an empty namespace of a namespaced resource means all namespaces."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)


@dataclasses.dataclass(frozen=True, order=True)
class ObjectKey:
    """The permanent identity of an object, which does not include its version."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, obj: dict) -> ObjectKey:
        group, separator, _version = obj["apiVersion"].partition("/")
        metadata = obj["metadata"]
        return cls(group if separator else "", obj["kind"], metadata.get("namespace") or "", metadata["name"])

    @property
    def short(self) -> str:
        """Short form for messages, without the group: `DaemonSet hwaccel-gpu/driver`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"
