# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendered objects of all roles, and what rules ask of them."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import functools
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations import rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

_KEPT = 256
#: A sentence that names the object, the field, and what is wrong with it.
Finding = str


@dataclasses.dataclass(frozen=True)
class Workload:
    """name: of its manifest, without what follows from pools and kernels. template: of its pods; of a Pod the object itself."""

    role: str
    name: str
    item: Obj
    template: Obj
    prefix: str

    @property
    def spec(self) -> Obj:
        spec: Obj = self.template["spec"]
        return spec

    @property
    def labels(self) -> dict[str, str]:
        return (self.template.get("metadata") or {}).get("labels") or {}

    @property
    def namespace(self) -> str:
        return str(self.item["metadata"].get("namespace") or "")

    @property
    def where(self) -> str:
        return f"{self.item['kind']} {self.name}: {self.prefix}"

    def containers(self) -> c.Iterator[tuple[str, Obj]]:
        """The field of each container, and the container, in the order in which they start."""
        for kind in ("initContainers", "containers"):
            for index, one in enumerate(self.spec.get(kind) or ()):
                yield f"{self.where}spec.{kind}[{index}]", one

    def volume(self, name: str) -> Obj:
        return next((one for one in self.spec.get("volumes") or () if one.get("name") == name), {})


class Manifests:
    """objects: by role, in the order of site."""

    def __init__(self, objects: dict[str, list[Obj]]) -> None:
        self.by_role = objects
        self.all = [item for found in objects.values() for item in found]
        self.workloads = [made for role, found in objects.items() for item in found if (made := _workload(role, item))]

    def of(self, *kinds: str) -> list[Obj]:
        return [item for item in self.all if item.get("kind") in kinds]

    def names(self, kind: str) -> set[tuple[str, str]]:
        """Namespace, "" if it has none, and name of all objects of a kind."""
        return {
            (str(item["metadata"].get("namespace") or ""), str(item["metadata"].get("name"))) for item in self.of(kind)
        }


def once(judge: c.Callable[[Obj], list[Finding]]) -> c.Callable[[Obj], list[Finding]]:
    """Of an object that does not change, the findings are made once. Objects are the same if they are one, since to compare them takes as long."""
    known: collections.OrderedDict[int, tuple[Obj, list[Finding]]] = collections.OrderedDict()

    def judged(item: Obj) -> list[Finding]:
        # The object is kept with its findings, so that none gets its identity.
        if id(item) not in known:
            known[id(item)] = item, judge(item)
            if len(known) > _KEPT:
                known.popitem(last=False)
        known.move_to_end(id(item))
        return known[id(item)][1]

    return judged


@functools.cache
def tables(role: str) -> dict[str, list[Obj]]:
    """Tables of a role's rights, by their name without the role's: rights, api_rights, api_calls."""
    found = stack.load(stack.TOP / "roles" / role / "vars" / "rights.yml")
    return {name.removeprefix(f"__{role}_"): rows for name, rows in found.items()}


def where(item: Obj) -> str:
    return f"{item.get('kind')} {(item.get('metadata') or {}).get('name')}:"


def _workload(role: str, item: Obj) -> Workload | None:
    kind, spec = item.get("kind"), item.get("spec")
    if kind not in ("DaemonSet", "Deployment", "Pod") or not isinstance(spec, dict):
        return None
    name = rendered.component(item) if (item.get("metadata") or {}).get("name") else ""
    template: t.Any = item if kind == "Pod" else spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return None
    return Workload(role, name, item, template, "" if kind == "Pod" else "spec.template.")
