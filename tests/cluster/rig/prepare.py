# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the cache with the programs, images and packages of the rig while there is a network, which the rig does not have.

python -m ansible_collections.hwaccel.gpu.tests.cluster.rig.prepare [docker]

docker: what K3s on Docker needs beside them.

If the rig cannot run on this machine, this is no error: the tests are skipped with the reason.
"""

from __future__ import annotations

import sys

from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import ensure_packages
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ensure_parts
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import ensure_cri_dockerd, ensure_k3s
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT
from ansible_collections.hwaccel.gpu.tests.cluster.rig.small_debian import PROGRAMS
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say


def main() -> None:
    if reason := unmet_precondition():
        say(reason)
        return
    try:
        if sys.argv[1:] == ["docker"]:
            ensure_cri_dockerd(say)
            return
        ensure_parts(say)
        ensure_k3s(say)
        ensure_k3s(say, NEXT)
        ensure_packages(say, PROGRAMS)
    except Unavailable as missing:
        say(str(missing))


if __name__ == "__main__":
    main()
