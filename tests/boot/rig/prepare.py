# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the cache with the components and packages of the rig's machines while there is a network, which the rig does not have.

python -m ansible_collections.hwaccel.gpu.tests.boot.rig.prepare

If the rig cannot run on this machine, this is no error: the tests are skipped with the reason.
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
    # Tests of BMCs do not need the rig.
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
