# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown of a load balancer does."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import firewall
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import (
    CHECKS,
    DROP_IN,
    KEEPALIVED_DROP_IN,
)

_DROP_INS = {"haproxy": DROP_IN, "keepalived": KEEPALIVED_DROP_IN}


def restored(machine: Machine) -> dict[str, t.Any]:
    """What teardown does, in plain data. keepalived goes first: another load balancer takes the addresses before this one serves no more.

    absent: drop-ins and programs that are removed. services: those that are given back, each with unit, state and enabled.
    packages: those that the role has installed. firewall: openings that are closed.
    """
    kept = record.read(machine)
    pointed = [name for name in ("keepalived", "haproxy") if _DROP_INS[name] in machine.files]
    services = [
        {"unit": name, "state": "restarted" if name in kept.active else "stopped", "enabled": name in kept.enabled}
        for name in pointed
    ]
    absent = [*(_DROP_INS[name] for name in pointed), *(path for path in CHECKS.values() if path in machine.files)]
    return {
        "absent": absent,
        "services": services,
        "packages": list(kept.packages),
        "firewall": firewall.changes(machine.firewalls, (), kept.openings),
    }
