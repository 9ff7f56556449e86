# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown of a load balancer does."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import restoring
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.machine import Machine
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer.places import (
    CHECKS,
    DROP_IN,
    FOLDER,
    KEEPALIVED_DROP_IN,
    ROLE,
)


def restored(machine: Machine) -> dict[str, t.Any]:
    """What teardown does, as restoring.restored documents it.

    keepalived stops first, so that another load balancer has the addresses before this one stops serving.
    """
    programs = [path for path in CHECKS.values() if path in machine.files]
    drop_ins = {"keepalived": KEEPALIVED_DROP_IN, "haproxy": DROP_IN}
    return restoring.restored(machine, ROLE, drop_ins, absent=programs, removed=[FOLDER])
