# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA's sample deviceQuery reports of integrated GPUs, for which nvidia-smi reports little or nothing. Pure.

The format is that of NVIDIA/cuda-samples (c94ff366), Samples/1_Utilities/deviceQuery/deviceQuery.cpp.
"""

from __future__ import annotations

import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool

_HEAD = re.compile(r"^ ?CUDA Device Query \(Runtime API\)", re.MULTILINE)
#: Its last line if CUDA found devices.
PASSED = re.compile(r"^Result = PASS\s*$", re.MULTILINE)
_ERROR = re.compile(r"^cudaGetDeviceCount returned (?P<code>\d+)\n-> (?P<text>.*)$", re.MULTILINE)
_DEVICE = re.compile(r"^Device \d+: \"(.*)\"\s*$", re.MULTILINE)
_CUDA = re.compile(
    r"^\s*CUDA Driver Version / Runtime Version\s+(?P<driver>[\d.]+) / (?P<runtime>[\d.]+)\s*$", re.MULTILINE
)
_MEMORY = re.compile(r"^\s*Total amount of global memory:\s+(?P<mib>\d+) MBytes", re.MULTILINE)
_INTEGRATED = re.compile(r"^\s*Integrated GPU sharing Host Memory:\s+Yes\s*$", re.MULTILINE)
#: The kernel and firmware reserve some of the shared memory: a board sold with 64 GB has 62841 MBytes.
_MEMORY_TOLERANCE = 0.15


@dataclasses.dataclass(frozen=True)
class Device:
    """cuda: the newest CUDA version that the driver supports; memory in MiB, 0 if it was not reported."""

    name: str
    cuda: str = ""
    memory_mib: int = 0
    integrated: bool = False


def needed(node: NodeFacts) -> bool:
    """Whether a node's GPU is integrated, so that it needs programs that were built for such boards."""
    return node.tegra and node.architecture == "arm64"


def queried(log: str) -> bool:
    """Whether deviceQuery ran."""
    return bool(_HEAD.search(log))


def devices_in(log: str) -> list[Device]:
    """The devices, in order."""
    _before, *parts = _DEVICE.split(log)
    return [_device(name, text) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def error(log: str) -> str:
    """CUDA's error message if it found no device, else ""."""
    match = _ERROR.search(log)
    return f"CUDA error {match['code']}: {match['text'].strip()}" if match else ""


def deviations(log: str, pool: Pool) -> list[str]:
    """Differences from the integrated GPU that the pool declares; empty if there are none."""
    if why := error(log):
        return [f"deviceQuery found no GPU: {why}"]
    devices = devices_in(log)
    found = [] if PASSED.search(log) else ["its log has no line 'Result = PASS'"]
    if not devices:
        return [*found, "deviceQuery listed no GPU"]
    found += [
        f"the pod sees {device.name}, which is not an integrated GPU" for device in devices if not device.integrated
    ]
    if pool.gpu is None:
        return found
    device = devices[0]
    if pool.gpu.product and _plain(pool.gpu.product) != _plain(device.name):
        found.append(f"the pod sees a {device.name}, {pool.gpu.product} is expected")
    expected = pool.gpu.memory_mib
    if expected and device.memory_mib and abs(device.memory_mib - expected) > expected * _MEMORY_TOLERANCE:
        found.append(f"the pod sees {device.memory_mib} MiB of memory, {expected} MiB are expected")
    return found


def _device(name: str, text: str) -> Device:
    cuda, memory = _CUDA.search(text), _MEMORY.search(text)
    return Device(
        name, cuda["driver"] if cuda else "", int(memory["mib"]) if memory else 0, bool(_INTEGRATED.search(text))
    )


def _plain(product: str) -> str:
    return re.sub(r"[\s_-]+", " ", product).strip().casefold()
