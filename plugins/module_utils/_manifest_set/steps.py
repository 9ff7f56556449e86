# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The step of one member in a plan."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.causes import FieldConflict
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.record import Entry
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import Member
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey, Resource

CREATED, CONFIGURED, RECLAIMED, UNCHANGED = "created", "configured", "reclaimed", "unchanged"
ADOPTED, RECREATED, DELETED, RELEASED, KEPT = "adopted", "recreated", "deleted", "released", "kept"

#: Actions that do not change the cluster.
QUIET = frozenset((UNCHANGED, KEPT))


@dataclasses.dataclass(frozen=True)
class Reclaimed:
    """A field of the set that was changed and corrected. manager is the one that changed it, empty if it was removed."""

    path: str
    manager: str


@dataclasses.dataclass(frozen=True)
class Step:
    """The action for one object. member is None if it is no longer in the definition."""

    key: ObjectKey
    resource: Resource
    action: str
    member: Member | None = None
    entry: Entry | None = None
    #: The body to send, without fields that a known controller owns by design.
    body: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    #: uid of the live object as precondition of the write. Empty if the object does not exist.
    uid: str = ""
    write: bool = False
    force: bool = False
    #: How the old object is deleted before the new one is created, "" if it is not deleted.
    propagation: str = ""
    #: Why the server could not validate the step, "" if it did.
    unvalidated: str = ""
    reason: str = ""
    before: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    after: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    live: dict[str, t.Any] | None = None
    reclaimed: tuple[Reclaimed, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    warnings: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    rights: tuple[tuple[str, str, str, str], ...] = ()
    adopted: bool = False
    #: The old object is being deleted, and the new one can only be created once it is gone.
    await_gone: bool = False

    @property
    def reported(self) -> str:
        marks = [self.reason] if self.reason else []
        if self.unvalidated:
            marks.append(f"planned, not validated: {self.unvalidated}")
        return "; ".join(marks)
