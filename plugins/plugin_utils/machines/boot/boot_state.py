# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a machine's power and boot device, whatever it was read by. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault

YES, NO, UNKNOWN = "yes", "no", "unknown"
ONCE, ALWAYS = "once", "always"


@dataclasses.dataclass(frozen=True)
class BootState:
    """power: on, off, or what the BMC says while it changes. device: what the next boot is to take (network, disk, media), empty where none is set.

    lasts: once, or always, as on a BMC that knows no "once". mode: the firmware's, as the BMC has it. devices: what it can be set to, empty where unknown.
    images: addresses of media that are inserted. holder: who holds media, a category and a name of Redfish, empty where nobody does or none was looked for.
    written: whether something is on its disk, or may be, which is known of virtual machines alone. unread: that it is not known which.
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
    """Whether the machine runs a node of its cluster: yes, no or unknown, and why that is not known."""

    state: str
    why: str = ""


def joined(names: c.Iterable[str], nodes: c.Mapping[str, object]) -> Joined:
    """names: those that the machine's node may have. nodes: what the cluster has said: known, names, why."""
    if not nodes.get("known"):
        return Joined(UNKNOWN, str(nodes.get("why") or "nothing is known of its cluster's nodes"))
    there = nodes.get("names") or ()
    return Joined(YES if set(names) & set(there if isinstance(there, (list, tuple)) else ()) else NO)


#: What BMCs, and the way to them, say no with. The first that fits is reported.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        r"HTTP Error 401|HTTP Error 403|RAKP 2|unauthorized|Invalid user name|authentication type",
        "refuses the credentials",
        "correct hwaccel_bmc_username and hwaccel_bmc_password; some BMCs lock an account after a few wrong ones",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|Hostname mismatch",
        "has a certificate that is not trusted",
        "set hwaccel_bmc_ca to the authority that has signed it; its name must be the one in hwaccel_bmc_address",
    ),
    (
        r"timed out|Timeout|Get Auth Capabilities error|Unable to establish IPMI v2",
        "does not answer in time",
        "see whether it can be reached from here; a slow one may need more of machine_boot_bmc_timeout; a hung one is reset by its own reset button",
    ),
    (
        r"Connection refused|No route to host|Network is unreachable|Name or service not known|Temporary failure in name|Address lookup|nodename nor servname",
        "cannot be reached",
        "see that hwaccel_bmc_address is right, that the BMC has power and its network is reached from here",
    ),
    (
        r"ipmitool['\u2018\u2019:]*.*(No such file|not found)",
        "cannot be asked: there is no ipmitool",
        "install ipmitool on the host in machine_boot_from",
    ),
    (
        r"HTTP Error 404|not found|Systems resource",
        "has no such system",
        "set hwaccel_bmc_system to one that its /redfish/v1/Systems lists",
    ),
    (
        r"HTTP Error 5\d\d|Remote end closed|Connection reset|EOF occurred",
        "fails by itself",
        "look at its own log; its reset does not touch the machine",
    ),
)


def refused(name: str, address: str, message: str) -> Fault:
    """Why nothing could be read of, or told to, a machine's BMC."""
    for pattern, what, next_step in _REFUSALS:
        if re.search(pattern, message, re.IGNORECASE):
            return Fault(f"machine {name}: its BMC {what}", address, _short(message), next_step)
    return Fault(f"machine {name}: its BMC says no", address, _short(message), "look at the BMC's own log")


def _short(message: str) -> str:
    """Without the bodies that BMCs attach, which are long and say nothing."""
    lines = message.partition(", extended message")[0].strip().splitlines()
    return lines[-1][:300] if lines else ""
