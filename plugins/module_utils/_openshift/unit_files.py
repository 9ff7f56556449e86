# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd in an ignition file. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.ignition_schema import Findings

_TYPES = frozenset(
    (
        "service",
        "socket",
        "device",
        "mount",
        "automount",
        "swap",
        "target",
        "path",
        "timer",
        "snapshot",
        "slice",
        "scope",
    )
)
#: Bytes of a line that systemd reads (go-systemd, unit/deserialize.go, SYSTEMD_LINE_MAX).
_LONGEST_LINE = 2048


class _Invalid(ValueError):
    """Contents that are no unit. Its text says why."""


def check(units: c.Iterable[c.Mapping[str, t.Any]], findings: Findings) -> None:
    for position, unit in enumerate(units):
        place, name = f"systemd.units[{position}]", unit.get("name", "")
        if name and name.rpartition(".")[2] not in _TYPES:
            findings.add(
                "the name of the unit is not valid", f"{place}.name", "it has no suffix of a unit, as .service"
            )
        sections = _sections(unit.get("contents", ""), f"{place}.contents", findings)
        if unit.get("enabled") and unit.get("contents") and sections is not None and "Install" not in sections:
            findings.warnings.append(f"{place}.enabled has no effect: the unit has no section [Install]")
        for number, dropin in enumerate(unit.get("dropins", ())):
            below = f"{place}.dropins[{number}]"
            if dropin.get("name") and not dropin["name"].endswith(".conf"):
                findings.add("the name of the drop-in is not valid", f"{below}.name", "it does not end with .conf")
            _sections(dropin.get("contents", ""), f"{below}.contents", findings)


def _sections(text: str, place: str, findings: Findings) -> set[str] | None:
    """Names of its sections, None with a fault if it has no form of a unit."""
    try:
        return set(_read(text))
    except _Invalid as error:
        findings.add("the unit cannot be read", place, str(error))
        return None


def _read(text: str) -> c.Iterator[str]:
    """As go-systemd reads units: what stands before the first section is ignored."""
    inside = continued = False
    for number, line in enumerate(text.split("\n"), 1):
        if len(line.encode("utf-8", "replace")) >= _LONGEST_LINE:
            raise _Invalid(f"line {number} has {_LONGEST_LINE} bytes or more, which systemd does not read")
        bare = line.strip()
        if continued:
            continued = line.endswith("\\") and bool(bare)
        elif bare.startswith(("#", ";")):
            continued = line.rstrip(" ").endswith("\\")
        elif bare.startswith("["):
            name, end, rest = bare[1:].partition("]")
            if not end or rest.strip():
                raise _Invalid(f"line {number} is no name of a section")
            inside = True
            yield name
        elif bare and inside:
            if "=" not in line:
                raise _Invalid(f"line {number} has no equals sign")
            continued = line.endswith("\\")
