# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the cache with what the tests on OpenShift need while there is a network.

python -m ansible_collections.hwaccel.gpu.tests.openshift.rig.prepare

Without Go, or where machines cannot run, this is no error: the tests are skipped with the reason.
"""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import PROGRAMS
from ansible_collections.hwaccel.gpu.tests.openshift.rig.definitions import ensure_definitions
from ansible_collections.hwaccel.gpu.tests.openshift.rig.node_program import ensure_machine


def main() -> None:
    try:
        ensure_definitions(say)
        ensure_machine(say)
    except Unavailable as missing:
        say(str(missing))
    if not unmet_precondition():
        ensure_packages(say, PROGRAMS)


if __name__ == "__main__":
    main()
