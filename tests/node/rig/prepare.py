# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills the cache with the components of real nodes while there is a network, which the rig does not have.

python -m ansible_collections.hwaccel.gpu.tests.node.rig.prepare

If the rig cannot run on this machine, this is no error: the tests are skipped with the reason.
"""

from __future__ import annotations

import sys

from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig import components, foreign
from ansible_collections.hwaccel.gpu.tests.node.rig.machine_image import ensure_machine_image
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    if reason := unmet_precondition():
        say(reason)
        return
    find_programs()
    try:
        components.ensure_components(say)
        if not foreign.unmet():
            foreign.ensure_programs(say)
    except components.Unavailable as missing:
        say(str(missing))
        return
    ensure_machine_image(say)


if __name__ == "__main__":
    main()
