# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and result of one call of the engine."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

#: This is permanent API: a field manager with this prefix is a set of this collection.
FIELD_MANAGER_PREFIX = "hwaccel.gpu/"
DEFAULT_RECORD_NAMESPACE = "hwaccel-gpu-records"

_SET_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True)
class SetOptions:
    """Options of one set; names are those of the module."""

    name: str
    record_namespace: str = DEFAULT_RECORD_NAMESPACE
    prune: bool = True
    max_prune: str = "20%"
    adopt: bool = False
    force_conflicts: bool = False
    strict: bool = False
    on_immutable: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    ready_when: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    wait: bool = True
    wait_timeout: float = 300.0
    lock_timeout: float = 120.0
    check_mode: bool = False
    diff: bool = False
    threads: int = 8
    option_variables: c.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _SET_NAME.fullmatch(self.name):
            raise HwaccelError(
                f"{self.name!r:.80} is not a valid name of a set",
                "name",
                "it becomes the name of an object",
                "use lower case letters, digits and hyphens",
            )

    @property
    def manager(self) -> str:
        return FIELD_MANAGER_PREFIX + self.name

    def called(self, option: str) -> str:
        """The name that a message uses for an option: the variable that sets it, if the task names one."""
        return self.option_variables.get(option, option)


@dataclasses.dataclass
class Row:
    """One member in the result."""

    key: ObjectKey
    action: str
    ready: bool | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "kind": self.key.kind,
            "name": self.key.name,
            "namespace": self.key.namespace,
            "action": self.action,
            "ready": self.ready,
            "reason": self.reason,
        }


@dataclasses.dataclass
class Report:
    """What a call observed and did so far. A failed call reports what it did."""

    changed: bool = False
    rows: dict[ObjectKey, Row] = dataclasses.field(default_factory=dict)
    reclaimed: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    foreign_fields: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    conflicts: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    missing_rights: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    diff: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    progress: list[str] = dataclasses.field(default_factory=list)
    record: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    failure: HwaccelError | None = None
    pending: dict[str, t.Any] | None = None

    def warn(self, texts: c.Iterable[str]) -> None:
        self.warnings += [text for text in dict.fromkeys(texts) if text not in self.warnings]


class SetFailed(HwaccelError):
    """Some members could not be written; the report has the rest."""

    def __init__(self, faults: c.Sequence[Fault], done: str) -> None:
        super().__init__(
            f"{len(faults)} {'objects' if len(faults) > 1 else 'object'} could not be brought to the desired state; {done}"
        )
        self.faults = tuple(faults)
        self.args = ("\n".join([f"{self.args[0]}:"] + [f"- {fault}" for fault in faults]),)


def object_dict(key: ObjectKey) -> dict[str, str]:
    return {"kind": key.kind, "name": key.name, "namespace": key.namespace}
