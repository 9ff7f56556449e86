# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed power and boot device of a machine, independent of the provider. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

YES, NO, UNKNOWN = "yes", "no", "unknown"
ONCE, ALWAYS = "once", "always"


@dataclasses.dataclass(frozen=True)
class BootState:
    """power: on, off, or what the BMC reports during a change. device: of the next boot (network, disk, media), empty if none is set.

    lasts: once, or always, as on a BMC without one-time boot. mode: of the firmware, in the BMC's words. devices: those that can be set, empty if unknown.
    images: addresses of inserted media. holder: Redfish category and name of the resource with virtual media, empty if there is none or media were not read.
    written: whether its disk has, or may have, content; observed only for virtual machines. unread: that this could not be observed.
    """

    power: str
    device: str = ""
    lasts: str = ""
    mode: str = ""
    devices: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    holder: tuple[str, str] = ("", "")
    written: bool = False
    unread: bool = False


@dataclasses.dataclass(frozen=True)
class Joined:
    """Whether the machine runs a node of its cluster: yes, no or unknown, and why it is unknown."""

    state: str
    why: str = ""


def joined(names: c.Iterable[str], nodes: c.Mapping[str, object]) -> Joined:
    """names: possible names of the machine's node. nodes: those of the cluster, as known, names and why."""
    if not nodes.get("known"):
        return Joined(UNKNOWN, str(nodes.get("why") or "the nodes of its cluster are unknown"))
    there = nodes.get("names") or ()
    return Joined(YES if set(names) & set(there if isinstance(there, (list, tuple)) else ()) else NO)


#: Errors of BMCs and of connections to them. The first match is reported.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        r"HTTP Error 401|HTTP Error 403|RAKP 2|unauthorized|Invalid user name|authentication type",
        "refuses the credentials",
        "correct hwaccel_bmc_username and hwaccel_bmc_password; some BMCs lock an account after a few wrong ones",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|Hostname mismatch",
        "has a certificate that is not trusted",
        "set hwaccel_bmc_ca to the CA that has signed it; the name in the certificate must be that in hwaccel_bmc_address",
    ),
    (
        r"timed out|Timeout|Get Auth Capabilities error|Unable to establish IPMI v2",
        "does not answer in time",
        "verify that it can be reached from here; raise machine_boot_bmc_timeout for a slow BMC; reset the BMC if it hangs",
    ),
    (
        r"Connection refused|No route to host|Network is unreachable|Name or service not known|Temporary failure in name|Address lookup|nodename nor servname",
        "cannot be reached",
        "verify hwaccel_bmc_address, that the BMC is on, and that its network can be reached from here",
    ),
    (
        r"ipmitool['\u2018\u2019:]*.*(No such file|not found)",
        "cannot be queried: ipmitool is not installed",
        "install ipmitool on the host in machine_boot_from",
    ),
    (
        r"HTTP Error 404|not found|Systems resource",
        "does not have this system",
        "set hwaccel_bmc_system to one that its /redfish/v1/Systems lists",
    ),
    (
        r"HTTP Error 5\d\d|Remote end closed|Connection reset|EOF occurred",
        "has an internal error",
        "inspect the BMC's log; resetting the BMC does not affect the machine",
    ),
)


def refused(name: str, address: str, message: str) -> Fault:
    """Why a request to a machine's BMC failed."""
    for pattern, what, next_step in _REFUSALS:
        if re.search(pattern, message, re.IGNORECASE):
            return Fault(f"machine {name}: its BMC {what}", address, _short(message), next_step)
    return Fault(f"machine {name}: its BMC refuses the request", address, _short(message), "inspect the BMC's log")


def _short(message: str) -> str:
    """The error without the response bodies that BMCs attach, because they are long and add nothing."""
    lines = message.partition(", extended message")[0].strip().splitlines()
    return lines[-1][:300] if lines else ""
