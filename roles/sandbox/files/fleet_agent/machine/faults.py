# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults by name, which the fleet file enables for nodes.

To add one: a name in FAULTS, and a method that the simulated program calls.
"""

from __future__ import annotations

from fleet_agent.machine import products
from fleet_agent.machine.fleet import NodeSpec

FAULTS = {
    "driver_load_failure": "modprobe of the NVIDIA module fails (parameter `message` replaces the kernel's message)",
    "driver_daemons_stuck": "modules are loaded, but the driver container's daemons never become ready",
    "gpu_unsupported": "modprobe of the NVIDIA module fails: this driver release does not support the GPU",
    "plugin_fewer_gpus": "the device plugin reports fewer GPUs (parameter `missing`, default 1)",
    "cuda_failure": "CUDA kernels fail on one GPU (parameter `gpu`, default the last)",
    "fabric_manager_down": "CUDA does not start on any GPU, as behind NVSwitches without fabric manager",
    "gpu_off_bus": "the last GPU falls off the bus once GPUs are offered, Xid 79; it is available again after a reboot",
    "gpu_ecc_error": "the last GPU's memory fails once GPUs are offered (parameter `xid`: 48, 94 or 95; default 48), until a reboot",
    "image_pull_failure": "the registry answers 503 (parameter `image`: a repository basename; all images without it)",
    "out_of_memory": "the kernel repeatedly kills a container for lack of memory (parameter `container`: its name)",
    "node_not_ready": "the kubelet reports that the node is not Ready",
    "node_flapping": "the kubelet reports so every other minute",
    "kubelet_gone": "the kubelet ends and its pods keep running: nothing about them is reported",
    "slow_node": "all work takes longer (parameter `factor`, default 10)",
}

# dmesg of a driver whose GPU firmware does not come up; Xid 119 is a GSP RPC timeout (NVIDIA's Xid catalog).
GSP_FAILURE = (
    "modprobe: ERROR: could not insert 'nvidia': No such device\n"
    "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x62:0x40:2477)\n"
    "NVRM: Xid (PCI:0000:18:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"
    "NVRM: GPU 0000:18:00.0: rm_init_adapter failed, device minor number 0\n"
    "Could not load NVIDIA driver kernel modules"
)
#: ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS (open-gpu-kernel-modules, src/common/sdk/nvidia/inc/nverror.h).
OFF_THE_BUS = 79


class Faults:
    """Methods that programs call."""

    @staticmethod
    def driver_load(spec: NodeSpec, version: str, open_modules: bool) -> str:
        """Why the modules of this driver do not load; empty if they do."""
        if spec.gpu is not None:
            product, count = spec.gpu.product, spec.gpu.count
            if spec.fault("gpu_unsupported") is not None:
                return products.unsupported(product, count, version)
            if refused := products.fault(product, count, version, open_modules):
                return refused
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

    @staticmethod
    def fabric_down(spec: NodeSpec) -> bool:
        return spec.fault("fabric_manager_down") is not None

    @staticmethod
    def xid(spec: NodeSpec, count: int) -> tuple[int, int] | None:
        """(index of the GPU that fails under load, the Xid that its driver reports)."""
        if spec.fault("gpu_off_bus") is not None:
            return count - 1, OFF_THE_BUS
        fault = spec.fault("gpu_ecc_error")
        return None if fault is None else (count - 1, int(fault.get("xid", "48")))

    @staticmethod
    def out_of_memory(spec: NodeSpec, container: str) -> bool:
        fault = spec.fault("out_of_memory")
        return fault is not None and fault.get("container") == container

    @staticmethod
    def not_ready(spec: NodeSpec) -> bool:
        return spec.fault("node_not_ready") is not None

    @staticmethod
    def flapping(spec: NodeSpec) -> bool:
        return spec.fault("node_flapping") is not None

    @staticmethod
    def kubelet_gone(spec: NodeSpec) -> bool:
        return spec.fault("kubelet_gone") is not None

    @staticmethod
    def slowness(spec: NodeSpec) -> float:
        """Factor by which work takes longer."""
        fault = spec.fault("slow_node")
        return 1.0 if fault is None else float(fault.get("factor", "10"))
