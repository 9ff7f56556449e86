# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and writes the record of a set."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import (
    RECORD_OF,
    Record,
    from_objects,
    part_names,
    to_objects,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Answer, Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Forbidden,
    HwaccelError,
    NotFound,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
SECRET = Resource("", "v1", "Secret", "secrets", True)
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
RESOURCES = {"ConfigMap": CONFIG_MAP, "Secret": SECRET}

_LEAVING_TRIES = 60

#: Label of the namespace that the collection creates for records. Only a namespace with it is deleted.
OWNED = {"app.kubernetes.io/managed-by": "hwaccel.gpu", "hwaccel.gpu/holds": "records"}


class RecordChanged(HwaccelError):
    """Another run wrote the record since this run read it."""

    def __init__(self, where: str) -> None:
        super().__init__("another run changed the record of the set in the meantime", where, next_step="run again")


class RecordStore:
    """One set's record. It is a Secret if the set contains a Secret, because secrets could be guessed from their hashes."""

    def __init__(self, client: Client, options: SetOptions, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._options = options
        self._manager = options.manager

    def read(self, *, holds_secret: bool) -> Record:
        """The record, an empty one if none is stored. The other kind is only read if the expected one is missing."""
        kinds = ("Secret", "ConfigMap") if holds_secret else ("ConfigMap", "Secret")
        for kind in kinds:
            try:
                found = self.read_kind(kind)
            except Forbidden:
                # A run that may not read the other kind has not written such a record.
                if kind == kinds[0]:
                    raise
                continue
            if found is not None:
                return self._after_a_move(found, holds_secret=holds_secret)
        return Record(kinds[0], self._options.record_namespace, self._options.name)

    def _after_a_move(self, found: Record, *, holds_secret: bool) -> Record:
        """An incomplete move leaves a ConfigMap and a Secret. The Secret is newer, and entries that only the ConfigMap has are members as well."""
        newer = (
            self.read_kind("Secret")
            if found.kind == "ConfigMap" and found.moving
            else found
            if found.kind == "Secret"
            else None
        )
        older = found if found.kind == "ConfigMap" else self.read_kind("ConfigMap") if holds_secret else None
        if newer is None or older is None:
            return found
        return dataclasses.replace(newer, members={**older.members, **newer.members}, stale=older)

    def write(self, record: Record) -> Record:
        """Stores the record and returns it. Raises RecordChanged if it changed since it was read."""
        parent, parts = to_objects(record, self._options.name)
        resource = RESOURCES[record.kind]
        for part in parts:
            self._create_part(part, resource)
        try:
            answer = (
                self._client.replace(parent, resource, field_manager=self._manager)
                if record.stored
                else self._create(parent, resource)
            )
        except Conflict:
            raise RecordChanged(self.where(record)) from None
        except NotFound:
            raise RecordChanged(self.where(record)) from None
        metadata = answer.object["metadata"]
        names = tuple(part["metadata"]["name"] for part in parts)
        written = dataclasses.replace(
            record, resource_version=metadata["resourceVersion"], uid=metadata["uid"], parts=names
        )
        if record.parts and set(record.parts) != set(names):
            self._drop_parts(resource, keep=names)
        return written

    def delete(self, record: Record) -> None:
        """Deletes the record and its parts. Raises RecordChanged if it changed since it was read. The caller holds the set.

        The parts are deleted first, because once the record is gone, the set is free and another run may create its own parts.
        """
        resource = RESOURCES[record.kind]
        # This includes parts that a killed run left and that no record lists.
        self._drop_parts(resource, keep=())
        try:
            self._client.delete(
                resource, record.name, record.namespace, uid=record.uid, resource_version=record.resource_version
            )
        except NotFound:
            return
        except Conflict:
            raise RecordChanged(self.where(record)) from None

    def drop_namespace(self) -> bool:
        """Deletes the namespace of the records if this collection created it and it is empty. True if it was deleted."""
        name = self._options.record_namespace
        try:
            namespace = self._client.get(NAMESPACE, name, metadata_only=True)
        except NotFound:
            return False
        labels = namespace["metadata"].get("labels") or {}
        if namespace["metadata"].get("deletionTimestamp") or any(
            labels.get(key) != value for key, value in OWNED.items()
        ):
            return False
        left = [item["metadata"]["name"] for item in self._client.list(CONFIG_MAP, name, metadata_only=True).items]
        left += [item["metadata"]["name"] for item in self._client.list(SECRET, name, metadata_only=True).items]
        if set(left) - {"kube-root-ca.crt", "openshift-service-ca.crt"}:
            return False
        try:
            self._client.delete(NAMESPACE, name, uid=namespace["metadata"]["uid"])
        except (NotFound, Conflict):
            return False
        return True

    def namespace_gone(self) -> bool:
        """Also true if another run recreated it."""
        try:
            namespace = self._client.get(NAMESPACE, self._options.record_namespace, metadata_only=True)
        except NotFound:
            return True
        return not namespace["metadata"].get("deletionTimestamp")

    def where(self, record: Record) -> str:
        return f"{record.kind} {record.namespace}/{record.name}"

    def beside(self, record: Record) -> Record | None:
        """The record of the other kind, None if there is none."""
        try:
            return self.read_kind("ConfigMap" if record.kind == "Secret" else "Secret")
        except Forbidden:
            # A run that may not read the other kind has not written such a record.
            return None

    def read_kind(self, kind: str) -> Record | None:
        """The record of this kind, None if there is none."""
        try:
            parent = self._client.get(RESOURCES[kind], self._options.name, self._options.record_namespace)
        except NotFound:
            return None
        parts: list[dict[str, t.Any]] = []
        for name in part_names(parent):
            try:
                parts.append(self._client.get(RESOURCES[kind], name, self._options.record_namespace))
            except NotFound:
                # Members that only it listed are found by their label when they are in the definition.
                continue
        return from_objects(parent, parts)

    def _create_part(self, part: dict[str, t.Any], resource: Resource) -> None:
        try:
            self._create(part, resource)
        except Conflict:
            # Its name is the hash of its content, so the existing one is equal.
            return

    def _create_namespace(self) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self._options.record_namespace, "labels": dict(OWNED)},
        }
        try:
            self._client.create(body, NAMESPACE, field_manager=self._manager)
        except (Conflict, Forbidden):
            # The namespace exists, or it must exist because this run may not create it.
            return

    def _create(self, obj: dict[str, t.Any], resource: Resource) -> Answer:
        """Creates an object in the namespace of the records, which may not exist yet (for a cluster's first set) or may be terminating."""
        for _try in range(_LEAVING_TRIES):
            try:
                return self._client.create(obj, resource, field_manager=self._manager)
            except NotFound:
                self._create_namespace()
            except Forbidden as error:
                if "being terminated" not in str(error):
                    raise
                self._clock.sleep(1.0)
        return self._client.create(obj, resource, field_manager=self._manager)

    def _drop_parts(self, resource: Resource, *, keep: tuple[str, ...]) -> None:
        namespace = self._options.record_namespace
        for item in self._client.list(
            resource, namespace, label_selector=f"{RECORD_OF}={self._options.name}", metadata_only=True
        ).items:
            name = item["metadata"]["name"]
            if name != self._options.name and name not in keep:
                try:
                    self._client.delete(resource, name, namespace, uid=item["metadata"]["uid"])
                except (NotFound, Conflict):
                    continue
