# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a machine is: by a third and more two of them differ that have as many cores, and so do the seconds that the same jobs take."""

from __future__ import annotations

import json
import time

#: The best of these counts: what else the host of a machine does makes single ones longer, never shorter.
TRIES = 7


def once() -> float:
    """Seconds of processor time for what tests do most: compile, allocate, call, write and read."""
    began = time.process_time()
    compile(
        "\n".join(f"def f{number}(a, b=1):\n    return [one + a for one in b if one]" for number in range(1000)),
        "pace",
        "exec",
    )
    rows = {str(number): [number, {"name": number}] for number in range(60_000)}
    json.loads(json.dumps(rows))
    sorted(rows, key=lambda name: rows[name][1]["name"] % 97)
    return time.process_time() - began


def seconds() -> float:
    return min(once() for _try in range(TRIES))
