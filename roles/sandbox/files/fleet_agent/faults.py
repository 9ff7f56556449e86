# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults by name, as the fleet file switches them on and off per node.

A new one: a name in FAULTS, and the question that the simulated program asks about it.
"""

from __future__ import annotations

from fleet_agent.fleet import NodeSpec

FAULTS = {
    "driver_load_failure": "modprobe of the NVIDIA module fails (parameter `message` replaces the kernel's words)",
    "driver_daemons_stuck": "modules are loaded, but the driver container's daemons never become ready",
    "plugin_fewer_gpus": "the device plugin reports fewer GPUs (parameter `missing`, default 1)",
    "cuda_failure": "CUDA kernels fail on one GPU (parameter `gpu`, default the last)",
    "image_pull_failure": "the registry answers 503 (parameter `image`: a repository basename; all images without it)",
}

# dmesg of a driver whose GPU firmware does not come up; Xid 119 is a GSP RPC timeout (NVIDIA's Xid catalogue).
GSP_FAILURE = ("modprobe: ERROR: could not insert 'nvidia': No such device\n"
               "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x62:0x40:2477)\n"
               "NVRM: Xid (PCI:0000:18:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"
               "NVRM: GPU 0000:18:00.0: rm_init_adapter failed, device minor number 0\n"
               "Could not load NVIDIA driver kernel modules")


class Faults:
    """Questions that programs ask."""

    @staticmethod
    def driver_load(spec: NodeSpec) -> str:
        fault = spec.fault("driver_load_failure")
        return "" if fault is None else fault.get("message") or GSP_FAILURE

    @staticmethod
    def daemons_stuck(spec: NodeSpec) -> bool:
        return spec.fault("driver_daemons_stuck") is not None

    @staticmethod
    def plugin_gpus(spec: NodeSpec, count: int) -> int:
        fault = spec.fault("plugin_fewer_gpus")
        return count if fault is None else max(0, count - int(fault.get("missing", "1")))

    @staticmethod
    def cuda_broken(spec: NodeSpec, count: int) -> int | None:
        """Index of the GPU on which kernels fail."""
        fault = spec.fault("cuda_failure")
        return None if fault is None else int(fault.get("gpu", str(count - 1)))
