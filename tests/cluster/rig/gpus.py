# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs of the cluster rig's agents: the simulated ones of tests/node, with its programs and its substitutes of NVIDIA's images."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib
import platform
import shutil
import typing as t

from ansible_collections.hwaccel.gpu.tests.node.rig import images, nvidia_images
from ansible_collections.hwaccel.gpu.tests.node.rig.components import ensure_components
from ansible_collections.hwaccel.gpu.tests.node.rig.host_driver import LIBRARY, install_driver, install_jetpack
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import (
    CONTAINERD,
    MEMORY_MIB,
    PRODUCT,
    PROGRAMS,
    describe_gpus,
    show_modules,
    simulate_gpus,
    use_containerd_2,
)
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

IMAGES = "/opt/gpu-images"
#: Driver images for operating system and kernel of the machines.
DRIVERS = nvidia_images.driver_images(platform.release(), "debian", "12")
#: As NVML calls it on JetPack 6, by which NVIDIA's programs tell such a GPU from others (UsesOnlyNVGPUModule in NVIDIA/go-nvlib, pkg/nvlib/info).
BOARD: dict[str, t.Any] = {"product": "Orin (nvgpu)", "memory_mib": 15388, "count": 1, "integrated": True}
#: What a loaded driver and its packages have beside the files that NVIDIA's container toolkit reads.
_LOADED = f"""cp {PROGRAMS}/stand-in /usr/bin/nvidia-smi
for module in nvidia nvidia_uvm nvidia_modeset; do
  mkdir -p /sys/module/$module; cd /sys/module/$module; [ -e version ] || cp ../nvidia/version .; echo 0 >refcnt; echo live >initstate
done"""


@dataclasses.dataclass(frozen=True)
class Gpus:
    """programs, images: folders of the components and of the archive."""

    programs: pathlib.Path
    images: pathlib.Path

    @property
    def shares(self) -> dict[str, str]:
        return {str(self.programs): PROGRAMS, str(self.images): IMAGES}

    def install(self, machine: Machine, count: int) -> None:
        """Before the machine becomes a node: containerd 2, which knows CDI, the images of the GPU stack, and `count` GPUs, which may be none."""
        show_modules(machine)
        machine.write("/etc/containerd/config.toml", CONTAINERD)
        use_containerd_2(machine)
        machine.sh("systemctl daemon-reload && systemctl restart containerd")
        machine.sh(
            f'for file in {IMAGES}/*.tar; do {PROGRAMS}/ctr --namespace k8s.io images import --local --all-platforms=false "$file"; done',
            seconds=900,
        )
        if count:
            simulate_gpus(machine, count)

    def install_with_driver(self, machine: Machine, count: int) -> None:
        """Before the machine becomes a node whose distribution brings containerd and imports the images: `count` GPUs with a driver, which may be none."""
        show_modules(machine)
        if count:
            simulate_gpus(machine, count)
            install_driver(machine, count)
            machine.sh(_LOADED)

    def install_board(self, machine: Machine) -> None:
        """The same for a Jetson board: JetPack, and a GPU that is part of the processor."""
        show_modules(machine)
        describe_gpus(machine, BOARD)
        install_driver(machine, BOARD["count"])
        machine.sh(_LOADED)
        libraries = [LIBRARY, LIBRARY.replace("libcuda", "libnvidia-ml")]
        install_jetpack(machine, ("/dev/nvidiactl", "/dev/nvidia0"), [*libraries, "/usr/bin/nvidia-smi"])

    @property
    def archives(self) -> list[pathlib.Path]:
        """Of the images, on the host."""
        return sorted(self.images.glob("*.tar"))


def ensure_gpus(say: c.Callable[[str], None], drivers: c.Mapping[str, str]) -> Gpus:
    """The parts, from the cache or made now. drivers: images for the kernel of the machines. Raises what ensure_components does."""
    busybox = shutil.which("busybox")
    assert busybox, "the rig requires busybox"
    components = ensure_components(say)
    return Gpus(components.folder, images.ensure_images(components, pathlib.Path(busybox), say, drivers).parent)


def variables(pools: list[dict[str, t.Any]], drivers: c.Mapping[str, str]) -> dict[str, t.Any]:
    """Of a cluster with such agents. NVIDIA publishes no driver images for their operating system."""
    return {
        "hwaccel_pools": pools,
        "hwaccel_wait_timeout": 600,
        "gpu_validation_schedule_timeout": 240,
        "feature_discovery_sleep_interval": "1s",
        "driver_build_images": [reference.rpartition(":")[2] for reference in drivers],
    }


def pool(name: str, selector: str, count: int) -> dict[str, t.Any]:
    gpu = {"product": PRODUCT.replace(" ", "-"), "count": count, "memory_mib": MEMORY_MIB}
    return {"name": name, "selector": selector, "gpu": gpu}
