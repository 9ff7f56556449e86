# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of PyTorch as roles/gpu_validation/files/bandwidth.py uses: processes and sums are real, GPUs are numbers."""

from __future__ import annotations

import sys

import stub_distributed as distributed
import stub_processes as multiprocessing
from stub_tensors import cuda, float32, ones

__all__ = ["cuda", "distributed", "float32", "multiprocessing", "ones"]

sys.modules.update({"torch.distributed": distributed, "torch.multiprocessing": multiprocessing})
