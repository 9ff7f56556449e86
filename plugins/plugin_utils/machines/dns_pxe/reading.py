# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads variables of the role dns_pxe, and collects their problems. Pure."""

from __future__ import annotations

import collections.abc as c
import ipaddress
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Address, Network

Settings = c.Mapping[str, t.Any]
_Item = t.TypeVar("_Item")
#: A path below a served folder: no parent folder, and no character that is special in a shell, a boot loader or nginx.
_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*")
#: From which playbooks take keys of a cluster.
_VARIABLES = {"domain": "hwaccel_domain", "api": "hwaccel_load_balancer_address"}


class Reader:
    """Reads variables of the role, and collects problems."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.faults: list[Fault] = []

    def fault(self, what: str, where: str, why: str, next_step: str) -> None:
        self.faults.append(Fault(what, f"dns_pxe_{where}", why, next_step))

    def entries(
        self, name: str, make: c.Callable[[Settings, str], _Item | None], needs: c.Sequence[str]
    ) -> tuple[_Item, ...]:
        """A list of dictionaries. needs: keys that each must have."""
        found = []
        for number, entry in enumerate(self.settings[name] or ()):
            where = f"{name}[{number}]"
            if not isinstance(entry, c.Mapping):
                self.fault(
                    "an entry cannot be read",
                    where,
                    f"it is {type(entry).__name__}",
                    f"make it a dictionary with {', '.join(needs)}",
                )
                continue
            missing = [key for key in needs if entry.get(key) in (None, "", [])]
            for key in missing:
                variable = f" ({_VARIABLES[key]})" if key in _VARIABLES else ""
                self.fault(f"{key} is missing", where, "", f"set its {key}{variable}")
            made = make(entry, where) if not missing else None
            if made is not None:
                found.append(made)
        return tuple(found)

    def address(self, value: t.Any, where: str) -> Address | None:
        if value in (None, ""):
            return None
        try:
            return ipaddress.ip_address(str(value))
        except ValueError:
            self.fault(f"{value} is not an IP address", where, "", "write it as 10.0.0.5, without a prefix length")
            return None

    def addresses(self, value: t.Any, where: str) -> tuple[Address, ...]:
        return tuple(found for one in listed(value) if (found := self.address(one, where)) is not None)

    def networks(self, value: t.Any, where: str) -> tuple[Network, ...]:
        found = []
        for one in listed(value):
            try:
                found.append(ipaddress.ip_network(str(one)))
            except ValueError as error:
                self.fault(
                    f"{one} is not a network",
                    where,
                    str(error),
                    "write it as 10.0.0.0/24, without host bits",
                )
        return tuple(found)

    def truth(self, value: t.Any, where: str) -> bool:
        found = machines.truth(value)
        if found is None:
            self.fault(f"{value} is neither true nor false", where, "", "write it as true or false")
        return bool(found)

    def path(self, value: t.Any, where: str) -> str:
        if not _PATH.fullmatch(str(value)):
            self.fault(
                f"{value} is not a path of a served file",
                where,
                "",
                "use letters, digits and . _ + - /, without a dot at the start of a part",
            )
        return str(value)

    def name(self, value: t.Any, where: str) -> str:
        if not machines.is_name(str(value)):
            self.fault(
                f"{value} is not a DNS name",
                where,
                "",
                "use lower-case letters, digits and hyphens, with dots between labels of 63 characters at most",
            )
        return str(value)


def listed(value: t.Any) -> list[t.Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
