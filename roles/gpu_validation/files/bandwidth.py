# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All-reduces over the GPUs of two pods, run in each of them by an image with PyTorch; hwaccel.gpu.node_bandwidth sets its environment.

The bus bandwidth is that of NVIDIA/nccl-tests a0b82b2, doc/PERFORMANCE.md: bytes / seconds * 2 * (ranks - 1) / ranks, in GB/s.
"""

from __future__ import annotations

import datetime
import json
import os
import time

import torch
import torch.distributed
import torch.multiprocessing

PORT = 29500
#: Sizes of the data in bytes. The largest one takes two seconds on a link of 1 GB/s.
SIZES = (1 << 24, 1 << 27, 1 << 30)
WARM_UP, ROUNDS = 2, 10


def work(local: int) -> None:
    """One process for each GPU; local: its number in the pod."""
    devices, first, ranks, patience = (
        int(os.environ[name]) for name in ("DEVICES", "FIRST_RANK", "RANKS", "PATIENCE_SECONDS")
    )
    if (seen := torch.cuda.device_count()) != devices:
        raise RuntimeError(f"the pod sees {seen} GPUs, {devices} are expected")
    torch.cuda.set_device(local)
    rank, address = first + local, os.environ.get("PEER_ADDRESS") or os.environ["POD_ADDRESS"]
    timeout = datetime.timedelta(seconds=patience)
    store = torch.distributed.TCPStore(
        address, PORT, ranks, is_master=rank == 0, timeout=timeout, wait_for_workers=False
    )
    if rank == 0:
        print(f"listening at {address}", flush=True)
    torch.distributed.init_process_group("nccl", store=store, rank=rank, world_size=ranks, timeout=timeout)
    found = [measure(size, ranks) for size in SIZES]
    if rank == 0:
        print(json.dumps(max(found, key=lambda one: one["bus_bandwidth"])), flush=True)
    torch.distributed.destroy_process_group()


def measure(size: int, ranks: int) -> dict[str, float]:
    """Raises RuntimeError if the sum is wrong."""
    data = torch.ones(size // 4, dtype=torch.float32, device="cuda")
    torch.distributed.all_reduce(data)
    if not bool((data == ranks).all()):
        raise RuntimeError(f"an all-reduce of {size} bytes over {ranks} GPUs has a wrong sum")
    data.zero_()
    for _round in range(WARM_UP):
        torch.distributed.all_reduce(data)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _round in range(ROUNDS):
        torch.distributed.all_reduce(data)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / ROUNDS
    return {
        "ranks": ranks,
        "bytes": size,
        "seconds": seconds,
        "bus_bandwidth": size / seconds * 2 * (ranks - 1) / ranks / 1e9,
    }


if __name__ == "__main__":
    # Processes are forked, because a program from `python3 -c` cannot be imported again. This process must not use CUDA before.
    torch.multiprocessing.start_processes(work, nprocs=int(os.environ["DEVICES"]), start_method="fork")
