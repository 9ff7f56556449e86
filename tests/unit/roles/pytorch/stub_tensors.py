# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tensors with one value for all of their elements, and GPUs that are a number. STUB_GPUS: how many there are."""

from __future__ import annotations

import os
from types import SimpleNamespace

float32 = "float32"


class Tensor:
    def __init__(self, count: int, value: float) -> None:
        self.count, self.value = count, value

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return Tensor(self.count, float(self.value == other))

    __hash__ = None  # type: ignore[assignment]

    def all(self) -> bool:
        return bool(self.value)

    def zero_(self) -> None:
        self.value = 0.0


def ones(count: int, *, dtype: str, device: str) -> Tensor:
    assert (dtype, device) == ("float32", "cuda")
    return Tensor(count, 1.0)


def _set_device(number: int) -> None:
    assert 0 <= number < int(os.environ["STUB_GPUS"])


cuda = SimpleNamespace(
    device_count=lambda: int(os.environ["STUB_GPUS"]), set_device=_set_device, synchronize=lambda: None
)
