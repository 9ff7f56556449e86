# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One member's part in a plan."""

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

#: Actions that leave the cluster as it was.
QUIET = frozenset((UNCHANGED, KEPT))


@dataclasses.dataclass(frozen=True)
class Reclaimed:
    """A field that was ours and is again. manager is who has it, empty where it was removed."""

    path: str
    manager: str


@dataclasses.dataclass(frozen=True)
class Step:
    """What is to be done with one object. member is None where it is no longer asked for."""

    key: ObjectKey
    resource: Resource
    action: str
    member: Member | None = None
    entry: Entry | None = None
    #: What is sent; a field that a known controller rightly has is left out of it.
    body: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    #: Of the living object: precondition of the write. Empty where it is to be created.
    uid: str = ""
    write: bool = False
    force: bool = False
    #: How the old object is deleted before the new one is made, "" where it is not.
    propagation: str = ""
    #: Why the server could not be asked, "" where it was.
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
    #: The old object is being deleted: ours can only be made once it is gone.
    await_gone: bool = False

    @property
    def reported(self) -> str:
        marks = [self.reason] if self.reason else []
        if self.unvalidated:
            marks.append(f"planned, not validated: {self.unvalidated}")
        return "; ".join(marks)
