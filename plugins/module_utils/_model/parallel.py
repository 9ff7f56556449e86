# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the same function on many objects in parallel."""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

T = t.TypeVar("T")
R = t.TypeVar("R")


def map_all(work: c.Callable[[T], R], items: c.Sequence[T], threads: int) -> list[R | HwaccelError]:
    """Results in the order of the items. A HwaccelError takes its item's place, so that one error does not hide the others."""

    def guarded(item: T) -> R | HwaccelError:
        try:
            return work(item)
        except HwaccelError as error:
            return error

    if len(items) <= 1 or threads <= 1:
        return [guarded(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(threads, len(items))) as pool:
        return list(pool.map(guarded, items))


def map_or_raise(work: c.Callable[[T], R], items: c.Sequence[T], threads: int) -> list[R]:
    """Like map_all, but raises the first error once all have ended."""
    results: list[R] = []
    for result in map_all(work, items, threads):
        if isinstance(result, HwaccelError):
            raise result
        results.append(result)
    return results
