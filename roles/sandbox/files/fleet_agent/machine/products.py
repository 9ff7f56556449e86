# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU products that fleets name, and which drivers they take."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Product:
    """pci: device id. compute: capability, major and minor."""

    pci: str
    family: str
    compute: tuple[int, int]


#: By a part of the name. Device ids: pci-ids of the PCI SIG's public list; families and capabilities: NVIDIA's CUDA GPUs page.
PRODUCTS = {
    "H100": Product("0x2330", "hopper", (9, 0)),
    "H200": Product("0x2335", "hopper", (9, 0)),
    "A100": Product("0x20b2", "ampere", (8, 0)),
    "A10": Product("0x2236", "ampere", (8, 6)),
    "L40S": Product("0x26b9", "ada-lovelace", (8, 9)),
    "L4": Product("0x27b8", "ada-lovelace", (8, 9)),
    "T4": Product("0x1eb8", "turing", (7, 5)),
    "V100": Product("0x1db1", "volta", (7, 0)),
    "P100": Product("0x15f8", "pascal", (6, 0)),
    "B200": Product("0x2901", "blackwell", (10, 0)),
}
#: NVIDIA's matrix of CUDA toolkit, driver and architecture: the last branch of families that later ones do not have.
_LAST_BRANCH = {"volta": 580, "pascal": 580}
#: GPUs without a GSP, which the open modules need.
_NOT_OPEN = ("volta", "pascal")
#: NVIDIA's driver installation guide, kernel modules.
_ONLY_OPEN = ("blackwell",)

_HEAD = "modprobe: ERROR: could not insert 'nvidia': No such device\nNVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:{device})\n"
_TAIL = (
    "NVRM: The NVIDIA probe routine failed for {count} device(s).\nNVRM: None of the NVIDIA devices were initialized.\n"
    "Could not load NVIDIA driver kernel modules"
)
#: Of a driver that does not take a GPU: open-gpu-kernel-modules df1c9a3, src/nvidia/arch/nvalloc/unix/src/osapi.c (RmIsDeviceSupported) and
#: kernel-open/nvidia/nv.c. The last one is that of the proprietary modules, as users report it.
_UNSUPPORTED = (
    _HEAD + "NVRM: installed in this system is not supported by the\nNVRM: NVIDIA {version} driver release.\n"
    "NVRM: Please see 'Appendix A - Supported NVIDIA GPU Products'\n"
    "NVRM: in this release's README, available on the operating system\n"
    "NVRM: specific graphics driver download page at www.nvidia.com.\n" + _TAIL
)
_WITHOUT_GSP = (
    _HEAD + "NVRM: installed in this system is not supported by open\n"
    "NVRM: nvidia.ko because it does not include the required GPU\nNVRM: System Processor (GSP).\n"
    "NVRM: Please see the 'Open Linux Kernel Modules' and 'GSP\n"
    "NVRM: Firmware' sections in the driver README, available on\n"
    "NVRM: the Linux graphics driver download page at\nNVRM: www.nvidia.com.\n" + _TAIL
)
_NEEDS_OPEN = _HEAD + "NVRM: installed in this system requires use of the NVIDIA open kernel modules.\n" + _TAIL


def find(name: str) -> Product:
    """Unknown products count as an H100."""
    return next((product for part, product in PRODUCTS.items() if part in name), PRODUCTS["H100"])


def recommended_open(name: str) -> bool:
    """nvidia-installer --print-recommended-kernel-module-type."""
    return find(name).family not in _NOT_OPEN


def fault(name: str, count: int, version: str, open_modules: bool) -> str:
    """The kernel's message where this driver does not take the GPU, empty if it does."""
    product = find(name)
    if int(version.split(".", maxsplit=1)[0]) > _LAST_BRANCH.get(product.family, 10**6):
        return unsupported(name, count, version)
    if open_modules and product.family in _NOT_OPEN:
        return _filled(_WITHOUT_GSP, name, count, version)
    if not open_modules and product.family in _ONLY_OPEN:
        return _filled(_NEEDS_OPEN, name, count, version)
    return ""


def unsupported(name: str, count: int, version: str) -> str:
    """The kernel's message of a driver release that does not know the GPU."""
    return _filled(_UNSUPPORTED, name, count, version)


def _filled(message: str, name: str, count: int, version: str) -> str:
    return message.format(device=find(name).pci.removeprefix("0x"), version=version, count=count)
