# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of the kernel that containers and networks of pods need, by what they bring: parts of the kernel itself are no modules that could be listed. Pure.

https://kubernetes.io/docs/setup/production-environment/container-runtimes has overlay. With br_netfilter rules see packets of bridges.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import CommandRequest, Host

FACTS = {
    "overlay": ("lines", "/proc/filesystems", r"\boverlay$"),
    "br_netfilter": ("exists", "/proc/sys/net/bridge"),
}
#: Whether the kernel has them, without loading any.
REQUEST = CommandRequest("modprobe", ("modprobe", "--dry-run", "--all", *FACTS))


def missing(host: Host) -> list[str]:
    return [name for name in FACTS if not host.fact(name)]


def faults(host: Host) -> list[Fault]:
    """Those that are missing and cannot be loaded."""
    names, tried = missing(host), host.commands.get("modprobe")
    if not names or tried is None or tried.status == 0:
        return []
    next_step = "install the package with the modules of the kernel that runs, or restart the machine with the kernel that is installed"
    why = tried.error.strip().splitlines()[-1] if tried.error.strip() else f"modprobe ends with {tried.status}"
    return [Fault(f"the kernel does not have {' and '.join(names)}", "modprobe", why, next_step)]
