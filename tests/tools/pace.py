# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The speed of a machine. Machines with the same number of cores differ by a third and more, and so do the times of jobs."""

from __future__ import annotations

import json
import time

#: Number of measurements, of which the shortest counts, because other work of the host can only prolong them.
TRIES = 7


def once() -> float:
    """Seconds of processor time for typical work of tests: compilation, allocation, calls, serialization."""
    start = time.process_time()
    compile(
        "\n".join(f"def f{number}(a, b=1):\n    return [one + a for one in b if one]" for number in range(1000)),
        "pace",
        "exec",
    )
    rows = {str(number): [number, {"name": number}] for number in range(60_000)}
    json.loads(json.dumps(rows))
    sorted(rows, key=lambda name: rows[name][1]["name"] % 97)
    return time.process_time() - start


def seconds() -> float:
    return min(once() for _try in range(TRIES))
