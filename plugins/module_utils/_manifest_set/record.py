# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a set: an ApplySet parent (KEP-3659) with each member's uid, hash of the desired state and owned fields. Pure.

Names, labels, annotations and the format are API: a cluster's records outlive every release.
"""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import datetime
import hashlib
import json
import typing as t
import zlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import canonical, digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

PART_OF = "applyset.kubernetes.io/part-of"
ID = "applyset.kubernetes.io/id"
TOOLING = "applyset.kubernetes.io/tooling"
GROUP_KINDS = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
TOOLING_VALUE = "hwaccel.gpu/v1"

RECORD_OF = "hwaccel.gpu/record-of"
HELD_BY = "hwaccel.gpu/held-by"
HELD_SINCE = "hwaccel.gpu/held-since"
HELD_RENEWED = "hwaccel.gpu/held-renewed"
HELD_SECONDS = "hwaccel.gpu/held-seconds"
PARTS = "hwaccel.gpu/parts"
MOVING = "hwaccel.gpu/moving"

FORMAT = "1"
#: The API server limits objects to a little more than 1 MiB, which includes base64 and metadata.
PART_LIMIT = 900 * 1024
#: Long enough for the slowest request between two renewals, and short enough that a run that died on another host does not block for long.
HOLD_SECONDS = 90.0


@dataclasses.dataclass(frozen=True)
class Entry:
    """One member. uid and ask are empty until it was applied once; fields are those that the set owned after that."""

    key: ObjectKey
    uid: str = ""
    ask: str = ""
    fields: fieldsets.FieldSet = fieldsets.EMPTY
    adopted: bool = False
    #: Managers from which the last write reclaimed fields. The same one twice in a row is a conflict between two writers.
    fought: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Hold:
    """The lease on the set: part of the record, so that taking it and writing the union of members is one atomic write.

    since and renewed are timestamps of the holder's clock. They are for users, and a change of renewed shows that the holder is alive. They are never
    compared with another clock. seconds: time without a change after which the hold expires (a Lease's leaseDurationSeconds).
    """

    holder: str
    since: str
    renewed: str
    seconds: float = HOLD_SECONDS


@dataclasses.dataclass(frozen=True)
class Record:
    """What is known of a set. resource_version is empty until it is stored."""

    kind: str
    namespace: str
    name: str
    members: c.Mapping[ObjectKey, Entry] = dataclasses.field(default_factory=dict)
    hold: Hold | None = None
    resource_version: str = ""
    uid: str = ""
    parts: tuple[str, ...] = ()
    #: For a ConfigMap: its set now contains a Secret, so the record is being moved to a Secret.
    moving: bool = False
    #: The ConfigMap that an incomplete move left.
    stale: Record | None = None

    @property
    def id(self) -> str:
        return applyset_id(self.name, self.namespace, self.kind)

    @property
    def stored(self) -> bool:
        return bool(self.resource_version)


def applyset_id(name: str, namespace: str, kind: str, group: str = "") -> str:
    raw = hashlib.sha256(".".join((name, namespace, kind, group)).encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(raw).decode().rstrip('=')}-v1"


def to_objects(record: Record, set_name: str) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    """The parent, and the objects with the members that do not fit into it.

    Parts are named after their content and are written before the parent that lists them, so that a kill in between leaves the old state intact.
    """
    chunks = [_encode(entries) for entries in _chunks(list(record.members.values()))] or [_encode([])]
    parts = [_part(record, set_name, chunk) for chunk in chunks[1:]]
    namespaces = sorted({entry.key.namespace for entry in record.members.values()} - {"", record.namespace})
    kinds = sorted({f"{key.kind}.{key.group}" if key.group else key.kind for key in record.members})
    annotations = {TOOLING: TOOLING_VALUE, GROUP_KINDS: ",".join(kinds), NAMESPACES: ",".join(namespaces)}
    if parts:
        annotations[PARTS] = ",".join(part["metadata"]["name"] for part in parts)
    if record.moving:
        annotations[MOVING] = "true"
    if record.hold:
        hold = record.hold
        annotations |= {
            HELD_BY: hold.holder,
            HELD_SINCE: hold.since,
            HELD_RENEWED: hold.renewed,
            HELD_SECONDS: f"{hold.seconds:g}",
        }
    metadata: dict[str, t.Any] = {
        "name": record.name,
        "namespace": record.namespace,
        "labels": {ID: record.id, RECORD_OF: set_name, "app.kubernetes.io/managed-by": "hwaccel.gpu"},
        "annotations": annotations,
    }
    if record.resource_version:
        metadata |= {"resourceVersion": record.resource_version, "uid": record.uid}
    return _payload(record.kind, metadata, chunks[0]), parts


def from_objects(parent: dict[str, t.Any], parts: c.Iterable[dict[str, t.Any]]) -> Record:
    """Reads what `to_objects` wrote. Raises HwaccelError if the object is not a record or cannot be read."""
    metadata = parent["metadata"]
    annotations = metadata.get("annotations") or {}
    where = f"{parent['kind']} {metadata.get('namespace')}/{metadata['name']}"
    if annotations.get(TOOLING) != TOOLING_VALUE:
        raise HwaccelError(
            "the object with the name of the set's record is not a record of this collection",
            where,
            f"its {TOOLING} is {annotations.get(TOOLING, 'missing')!r}",
            "set another name or another record_namespace",
        )
    members: dict[ObjectKey, Entry] = {}
    try:
        for obj in (parent, *parts):
            members |= {entry.key: entry for entry in _decode(obj)}
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise HwaccelError(
            "the record of the set cannot be read",
            where,
            f"{type(error).__name__}: {error}",
            "restore it, or delete it: the next run finds its members by their label and recreates it",
        ) from None
    named = annotations.get(PARTS)
    return Record(
        kind=parent["kind"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        members=members,
        hold=_hold(annotations),
        resource_version=metadata["resourceVersion"],
        uid=metadata.get("uid") or "",
        parts=tuple(named.split(",")) if named else (),
        moving=MOVING in annotations,
    )


def part_names(parent: dict[str, t.Any]) -> list[str]:
    named = ((parent.get("metadata") or {}).get("annotations") or {}).get(PARTS)
    return named.split(",") if named else []


def _chunks(entries: list[Entry]) -> c.Iterator[list[Entry]]:
    """Members in parts that stay below the limit. Only very large sets have more than one part."""
    if not entries or _size(_encode(entries)) <= PART_LIMIT:
        yield entries
        return
    if len(entries) == 1:
        raise HwaccelError(
            f"{entries[0].key} alone is too large for the set's record",
            why="it has too many fields",
            next_step="split the object",
        )
    middle = len(entries) // 2
    yield from _chunks(entries[:middle])
    yield from _chunks(entries[middle:])


def _size(chunk: dict[str, str]) -> int:
    # The data of a Secret is base64-encoded once more.
    return sum(len(value) for value in chunk.values()) * 4 // 3 + 4096


def _encode(entries: c.Sequence[Entry]) -> dict[str, str]:
    """Members as readable lines, and their compressed field sets in the same order."""
    lines = []
    for entry in entries:
        line: dict[str, t.Any] = {
            "group": entry.key.group,
            "kind": entry.key.kind,
            "namespace": entry.key.namespace,
            "name": entry.key.name,
        }
        line |= {"uid": entry.uid, "ask": entry.ask}
        line |= {"adopted": True} if entry.adopted else {}
        line |= {"fought": list(entry.fought)} if entry.fought else {}
        lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
    fields = canonical([fieldsets.unparse(entry.fields) for entry in entries])
    return {
        "format": FORMAT,
        "members": "\n".join(lines),
        "fields": base64.b64encode(zlib.compress(fields.encode(), 6)).decode(),
    }


def _decode(obj: dict[str, t.Any]) -> list[Entry]:
    data = obj.get("data") or {}
    if obj["kind"] == "Secret":
        data = {key: base64.b64decode(value).decode() for key, value in data.items()}
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r:.20}, this release reads {FORMAT}")
    lines = [json.loads(line) for line in data["members"].split("\n") if line]
    fields = json.loads(zlib.decompress(base64.b64decode(data["fields"])))
    if len(lines) != len(fields):
        raise ValueError("members and fields do not match")
    return [
        Entry(
            key=ObjectKey(line["group"], line["kind"], line["namespace"], line["name"]),
            uid=line["uid"],
            ask=line["ask"],
            fields=fieldsets.parse(tree),
            adopted=bool(line.get("adopted")),
            fought=tuple(line.get("fought") or ()),
        )
        for line, tree in zip(lines, fields, strict=True)
    ]


def _part(record: Record, set_name: str, chunk: dict[str, str]) -> dict[str, t.Any]:
    metadata = {
        "name": f"{record.name}.{digest(chunk)[:16]}",
        "namespace": record.namespace,
        "labels": {RECORD_OF: set_name, "app.kubernetes.io/managed-by": "hwaccel.gpu"},
    }
    return _payload(record.kind, metadata, chunk)


def _payload(kind: str, metadata: dict[str, t.Any], chunk: dict[str, str]) -> dict[str, t.Any]:
    body: dict[str, t.Any] = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    if kind == "Secret":
        return body | {
            "type": "Opaque",
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in chunk.items()},
        }
    return body | {"data": chunk}


def stamp(moment: float) -> str:
    """time.time() in a readable format."""
    return datetime.datetime.fromtimestamp(moment, tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _hold(annotations: c.Mapping[str, str]) -> Hold | None:
    if not annotations.get(HELD_BY):
        return None
    written = annotations.get(HELD_SECONDS) or ""
    # With an invalid number the hold would never expire.
    seconds = float(written) if written.isdecimal() and len(written) <= 3 else HOLD_SECONDS
    return Hold(annotations[HELD_BY], annotations.get(HELD_SINCE) or "", annotations.get(HELD_RENEWED) or "", seconds)
