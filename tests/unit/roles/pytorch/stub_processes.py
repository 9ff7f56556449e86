# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process for each GPU. If one fails, the others are ended, and the caller fails too."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
from collections.abc import Callable


def start_processes(work: Callable[[int], None], *, nprocs: int, start_method: str) -> None:
    context = multiprocessing.get_context(start_method)
    left = [context.Process(target=work, args=(number,)) for number in range(nprocs)]  # type: ignore[attr-defined]
    for process in left:
        process.start()
    while left:
        multiprocessing.connection.wait([process.sentinel for process in left])
        # Each exit code is read once: a process that ends between two readings would be dropped without its failure.
        codes = [process.exitcode for process in left]
        left = [process for process, code in zip(left, codes, strict=True) if code is None]
        if any(codes):
            for process in left:
                process.terminate()
            raise SystemExit(1)
