# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the cache with what the rig's machines are made of and install, while there is a network: the rig itself has none.

python -m ansible_collections.hwaccel.gpu.tests.boot.rig.prepare

A machine that cannot have the rig is no error here: the tests are skipped with that reason.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import (
    HYPERVISOR,
    VIRTUAL_MACHINE,
    ensure_arm64,
    ensure_packages,
    ensure_virtualbmc,
)
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.tools import environments


def main() -> None:
    # For machines' BMCs, which need no rig.
    environments.ensure("bmc")
    if reason := unmet_precondition():
        say(reason)
        return
    ensure_packages(say)
    for packages in (VIRTUAL_MACHINE, HYPERVISOR):
        ensure_packages(say, packages)
    ensure_arm64(say)
    ensure_virtualbmc(say)


if __name__ == "__main__":
    main()
