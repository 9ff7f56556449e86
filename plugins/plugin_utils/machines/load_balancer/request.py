# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role load_balancer observes of a machine."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import restoring
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Request
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import (
    CHECKS,
    DROP_IN,
    FOLDER,
    FOREIGN,
    KEEPALIVED_DROP_IN,
    MAIN,
    RECORD,
    SETTINGS,
    SOCKETS,
    UNITS,
)

INFO, STATISTICS = "show info", "show stat"
#: The SELinux boolean that allows HAProxy to connect to any port.
BOOLEAN = "haproxy_connect_any"


def request(settings: c.Mapping[str, t.Any]) -> Request:
    """settings: the role's variables by their names without load_balancer_."""
    return Request(
        files=(FOREIGN, DROP_IN, KEEPALIVED_DROP_IN, *CHECKS.values(), RECORD, MAIN, SETTINGS),
        patterns=(f"{FOLDER}/*", f"{FOLDER}/*/*", *restoring.beside((DROP_IN, KEEPALIVED_DROP_IN))),
        units=UNITS,
        sockets=dict.fromkeys(SOCKETS.values(), (INFO, STATISTICS)),
        processes=("haproxy",),
        facts={
            "programs": ("programs", *UNITS),
            "libraries": ("libraries", "selinux", "semanage"),
            "limit": ("lines", "/proc/1/limits", "^Max open files"),
            "memory": ("lines", "/proc/meminfo", "^MemTotal"),
            "free_bytes": ("free", FOLDER),
            BOOLEAN: ("output", "getsebool", BOOLEAN),
        },
        network=True,
    )
