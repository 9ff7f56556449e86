# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver on the host, or JetPack: the files that NVIDIA's container toolkit reads when it describes GPUs, without a GPU.

The toolkit is real. The driver's management library is a stand-in (tests/node/components/nvml); device files have the numbers of the real ones,
for which the kernel here has no driver.
"""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import architecture
from ansible_collections.hwaccel.gpu.tests.node.rig.components import MANAGEMENT_LIBRARY
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import PROGRAMS
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import LIBRARIES, defaults

TEGRA = "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic, EABI: aarch64, DATE: Fri Sep 13 04:36:44 UTC 2024\n"
CSV_FOLDER = "/etc/nvidia-container-runtime/host-files-for-container.d"
JETSON_LIBRARY = "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1"
LIBRARY = f"/{LIBRARIES[architecture()]}/libcuda.so.{defaults('driver')['driver_version']}"
#: Error when a container opens a device that it is permitted to use, because the kernel has no driver for it. Otherwise: `Operation not permitted`.
PERMITTED = "No such device or address"
#: A script for containers that opens each present device and prints the result.
OPEN_DEVICES = 'for file in /dev/nvidia[0-9]* /dev/nvhost-gpu; do [ ! -e "$file" ] || echo "$file: $(head -c 1 "$file" 2>&1 | sed "s/.*: //")"; done'

# The folder of the loaded module exists already: KubernetesNode.set_gpus has created it.
_INSTALL = r"""
mkdir -p /sys/module/nvidia; echo "$version" >/sys/module/nvidia/version
cp "$library" "$folder/libnvidia-ml.so.$version"; ln -sf "libnvidia-ml.so.$version" "$folder/libnvidia-ml.so.1"
echo 'stand-in for libcuda.so' >"$folder/libcuda.so.$version"; ln -sf "libcuda.so.$version" "$folder/libcuda.so.1"
mknod -m 666 /dev/nvidiactl c 195 255
for gpu in $(seq 0 $((gpus - 1))); do mknod -m 666 "/dev/nvidia$gpu" c 195 "$gpu"; done
"""


def permitted(*devices: str) -> str:
    """The output of OPEN_DEVICES in a container that is permitted to use these devices and has no others."""
    return "".join(f"{device}: {PERMITTED}\n" for device in devices)


def install_driver(machine: Machine, gpus: int) -> None:
    """Installs the same files as packages of the driver, on a machine with the rig's programs."""
    folder, library = f"/{LIBRARIES[architecture()]}", f"{PROGRAMS}/{MANAGEMENT_LIBRARY}"
    settings = f"version={defaults('driver')['driver_version']} folder={folder} library={library} gpus={gpus}"
    machine.sh(f"{settings}\n{_INSTALL}")


def install_jetpack(machine: Machine, devices: c.Iterable[str] = (), files: c.Iterable[str] = ()) -> None:
    """Installs files of a Jetson board, without one that JetPack lists. devices, files: more paths that it lists, and that the machine has."""
    machine.write("/etc/nv_tegra_release", TEGRA)
    machine.write(JETSON_LIBRARY, "stand-in for libcuda.so\n")
    lists = {
        "devices": [f"dev, {path}\n" for path in ("/dev/nvhost-gpu", *devices)],
        "drivers": [f"lib, {path}\n" for path in (JETSON_LIBRARY, f"{JETSON_LIBRARY}.gone", *files)],
    }
    for name, lines in lists.items():
        machine.write(f"{CSV_FOLDER}/{name}.csv", "".join(lines))
    machine.sh("mknod -m 666 /dev/nvhost-gpu c 506 1")
