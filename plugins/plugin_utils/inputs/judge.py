# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All errors in the public variables of a cluster that can be detected without a request. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import driver_matrix
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.inputs import table

#: Variables of roles that may differ from the common one, which then need not be reported as well.
_DEFAULT_NAMESPACES = {"hwaccel_namespace": "hwaccel-gpu", "hwaccel_system_namespace": "hwaccel-gpu-system"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """variable: the one that was judged. stages: those that cannot be planned with it."""

    variable: str
    fault: Fault
    stages: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        return {**self.fault.as_dict(), "variable": self.variable, "stages": list(self.stages)}


def judge(given: c.Mapping[str, t.Any], stages: c.Sequence[str] = table.STAGES) -> list[Finding]:
    """given: the variables that are set, evaluated. stages: those whose variables are judged in addition to the common ones."""
    found: list[Finding] = []
    for name in table.names(stages):
        if name in given:
            found += [
                _finding(name, fault, stages)
                for fault in _faults(name, given[name])
                if not _reported_by_all(name, given)
            ]
    wrong = {one.variable for one in found}
    usable = {name: value for name, value in given.items() if name not in wrong and not values.unset(value)}
    return found + [_finding(name, fault, stages) for name, fault in _together(usable, stages)]


def taken(given_value: t.Any) -> list[str]:
    """Stages of `hwaccel_stages`; all of them if it is not set or contains an unknown stage."""
    try:
        names = values.list_of_text(given_value) if isinstance(given_value, str) else given_value
    except ValueError:
        names = []
    if not isinstance(names, (list, tuple)) or not all(name in table.STAGES for name in names):
        return list(table.STAGES)
    return [stage for stage in table.STAGES if stage in names] or list(table.STAGES)


def _reported_by_all(name: str, given: c.Mapping[str, t.Any]) -> bool:
    """Whether a role's variable has the value of the common one, for which errors are reported."""
    end = next((name.removeprefix(f"{role}_") for role in table.ROLES if name.startswith(f"{role}_")), "")
    whole = f"hwaccel_{end}"
    if not end or whole not in given or whole not in table.SHARED:
        return False
    given_value = given[whole]
    try:
        return given[name] in (
            given_value,
            values.list_of_text(given_value) if isinstance(given_value, str) else given_value,
        )
    except ValueError:
        return False


def _finding(name: str, fault: Fault, stages: c.Sequence[str]) -> Finding:
    variable = table.of(name)
    whose = list(stages) if name in table.SHARED else [stage for stage in stages if name in table.ROLES[stage]]
    return Finding(name, fault, tuple(whose) if variable and variable.planned else ())


def _faults(name: str, value: t.Any) -> list[Fault]:
    variable = table.of(name)
    if variable is None:
        return []
    if values.unset(value):
        return (
            [Fault(f"{name} is empty", name, "it has no default for an empty value", f"remove {name}, or set a value")]
            if variable.needed
            else []
        )
    if variable.as_text and isinstance(value, str):
        try:
            value = values.list_of_text(value)
        except ValueError as error:
            return [Fault("the list cannot be read", name, str(error), "set a list in JSON or YAML")]
    if name in table.SHARED and value in ({}, []):
        return []
    return variable.check(value, name)


def _together(given: c.Mapping[str, t.Any], stages: c.Sequence[str]) -> c.Iterator[tuple[str, Fault]]:
    """Errors of values that are valid alone but not together."""
    names = {name: str(given.get(name, default)) for name, default in _DEFAULT_NAMESPACES.items()}
    if len(set(names.values())) == 1 and given.keys() & names:
        why = "node agents need Pod Security privileged, controllers must meet level restricted"
        name = "hwaccel_system_namespace" if "hwaccel_system_namespace" in given else "hwaccel_namespace"
        yield name, Fault("node agents and controllers have the same namespace", name, why, "set different ones")
    if "driver" in stages:
        yield from _extra_versions(given)
        yield from _versions(given)


def _pools(given: c.Mapping[str, t.Any]) -> tuple[str, list[dict[str, t.Any]]]:
    """Pools whose validation passed: the driver's own, or the common ones."""
    name = "driver_pools" if given.get("driver_pools") else "hwaccel_pools"
    value = given.get(name) or []
    return name, values.list_of_text(value) if isinstance(value, str) else list(value)


def _extra_versions(given: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, Fault]]:
    known = {"default", *(str(pool.get("name")) for pool in _pools(given)[1])}
    for name in given.get("driver_extra_versions") or ():
        if str(name) not in known:
            next_step = f"set one of {', '.join(sorted(known))}"
            yield (
                "driver_extra_versions",
                Fault(f"there is no pool {name}", f"driver_extra_versions.{name}", values.near(name, known), next_step),
            )


def _versions(given: c.Mapping[str, t.Any]) -> c.Iterator[tuple[str, Fault]]:
    """Branches without an image of NVIDIA, as far as known, or of the user."""
    own = [str(tag) for name in ("driver_precompiled_images", "driver_build_images") for tag in given.get(name) or ()]
    if not values.unset(given.get("driver_repository")):
        return
    name, pools = _pools(given)
    places = [("driver_version", "driver_version", given.get("driver_version"))]
    places += [
        (name, f"{name}[{number}].driver.version", (pool.get("driver") or {}).get("version"))
        for number, pool in enumerate(pools)
    ]
    for variable, where, version in places:
        if (
            values.unset(version)
            or driver_matrix.is_known_branch(str(version))
            or any(tag.startswith(driver_matrix.branch(str(version))) for tag in own)
        ):
            continue
        why = f"no image of branch {driver_matrix.branch(str(version))} is known"
        next_step = f"set one such as {driver_matrix.DEFAULT_VERSION}, or add your image's tag to driver_build_images or driver_precompiled_images"
        yield variable, Fault(f"driver {version} is unknown", where, why, next_step)
