# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A computer without an operating system, in software emulation, with a card on the rig's bridge. It reports on its serial line what it boots."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import VIRTUAL_MACHINE, ensure_arm64, ensure_packages
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

DISK = "THE-DISK-HAS-BOOTED"
_REPOSITORY = "/computers"
#: Folder of machines with packages of aarch64.
ARM64 = "/arm64"
_FOLDER = "/var/tmp"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of computer: arguments of QEMU. code, variables: files of UEFI, empty for a BIOS."""

    arguments: tuple[str, ...]
    code: str = ""
    variables: str = ""
    architecture: str = "x86_64"


_OVMF, _AAVMF = "/usr/share/OVMF", "/usr/share/AAVMF"
# These disable TFTP in the firmware, so that it uses HTTP at once.
_ONLY_HTTP = (
    "-fw_cfg",
    "name=opt/org.tianocore/IPv4PXESupport,string=no",
    "-fw_cfg",
    "name=opt/org.tianocore/IPv6PXESupport,string=no",
    "-device",
    "virtio-rng-pci",
)
_X86 = ("-cpu", "max", "-m", "512")
BIOS = Kind((*_X86, "-machine", "pc", "-boot", "order=nc"))
UEFI = Kind((*_X86, "-machine", "q35"), f"{_OVMF}/OVMF_CODE_4M.fd", f"{_OVMF}/OVMF_VARS_4M.fd")
# Only code in system management mode may write to the firmware's variables; otherwise Secure Boot is not effective.
_SMM = ("-machine", "q35,smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on")
SECURE_BOOT = Kind((*_X86, *_SMM), f"{_OVMF}/OVMF_CODE_4M.ms.fd", f"{_OVMF}/OVMF_VARS_4M.ms.fd")
UEFI_BY_HTTP = dataclasses.replace(UEFI, arguments=(*UEFI.arguments, *_ONLY_HTTP))
AARCH64 = Kind(
    ("-cpu", "cortex-a57", "-m", "1024", "-machine", "virt"),
    f"{_AAVMF}/AAVMF_CODE.fd",
    f"{_AAVMF}/AAVMF_VARS.fd",
    architecture="aarch64",
)


def boot_sector() -> bytes:
    """A boot sector that prints DISK on the serial line and halts."""
    code = (
        b"\xba\xf8\x03" + b"".join(b"\xb0" + bytes([one]) + b"\xee" for one in f"{DISK}\n".encode()) + b"\xf4\xeb\xfd"
    )
    return code.ljust(510, b"\0") + b"\x55\xaa"


class Computers:
    """A machine of the rig that runs computers, one after the other or at once."""

    def __init__(self, rig: BootRig, name: str) -> None:
        self.machine: Machine = rig.machine(
            name, {str(ensure_packages(say, VIRTUAL_MACHINE)): _REPOSITORY, str(ensure_arm64(say)): ARM64}
        )
        self.machine.sh(
            f"echo 'deb [trusted=yes] file:{_REPOSITORY} ./' >>/etc/apt/sources.list; apt-get -qq update; "
            "apt-get -qq install --no-install-recommends qemu-system-x86 seabios ipxe-qemu ovmf qemu-system-arm qemu-efi-aarch64 "
            "shim-signed grub-efi-amd64-signed >/dev/null 2>&1; "
            f"for package in shim-signed grub-efi-arm64-signed; do dpkg-deb --extract {ARM64}/${{package}}_*.deb {_FOLDER}/arm64; done; "
            # The machine's card is bridged, so that its computers are on the rig's bridge.
            "ip link add br0 type bridge forward_delay 0; ip link set eth0 master br0; ip link set br0 up",
            seconds=300,
        )
        self._lay_out_disks()

    def blank(self, name: str) -> str:
        """Path in the machine of a new disk without contents."""
        path = f"{_FOLDER}/{name}.disk"
        self.machine.sh(f"rm -f {path}; truncate -s 1M {path}")
        return path

    def boot(
        self,
        mac: str,
        kind: Kind = BIOS,
        *,
        until: str = DISK,
        times: int = 1,
        seconds: int = 300,
        disk: str = "",
        second_disk: str = "",
        restarts: bool = False,
    ) -> str:
        """Boots a computer, and returns its console output up to its end, or until it has the text `until` so many times. disk, second_disk: paths of disks in
        the machine; without the first, a disk that boots. restarts: whether a restart of the computer is not its end.
        """
        own = f"{_FOLDER}/{mac.replace(':', '')}"
        tap = f"tap{mac[-2:]}"
        card = f"virtio-net-pci,netdev=n0,mac={mac}"
        if kind.code:
            # Without the card's own program, which is iPXE, the firmware's is used.
            card += ",romfile=,bootindex=1"
            firmware = f"-drive if=pflash,format=raw,readonly=on,file={kind.code} -drive if=pflash,format=raw,file={own}.variables"
            disk = f"-drive if=none,id=disk,format=raw,readonly=on,file=fat:{_FOLDER}/system -device virtio-blk-pci,drive=disk,bootindex=2"
        else:
            firmware = ""
            disk = (
                f"-drive file={disk},format=raw,if=virtio"
                if disk
                else f"-drive file={_FOLDER}/sector,format=raw,if=ide,snapshot=on"
            )
        if second_disk:
            disk += f" -drive file={second_disk},format=raw,if=virtio"
        argv = (
            f"qemu-system-{kind.architecture} -accel tcg -display none -monitor none {'' if restarts else '-no-reboot'} -serial file:{own}.serial "
            f"-netdev tap,id=n0,ifname={tap},script=no,downscript=no -device {card} {firmware} {disk} {' '.join(kind.arguments)}"
        )
        copied = f"cp {kind.variables} {own}.variables; " if kind.code else ""
        self.machine.sh(f"{copied}: >{own}.serial; ip tuntap add dev {tap} mode tap; ip link set {tap} master br0 up")
        script = f"{argv} & computer=$!; for _ in $(seq {seconds * 5}); do kill -0 $computer 2>/dev/null || break; "
        script += (
            f"if [ $(grep -c '{until}' {own}.serial) -ge {times} ]; then kill $computer; break; fi; sleep 0.2; done; "
        )
        script += "kill $computer 2>/dev/null || :; wait $computer || :; "
        script += f"ip link delete {tap}; cat {own}.serial"
        return self.machine.sh(script, check=False, seconds=seconds + 60)

    def _lay_out_disks(self) -> None:
        """The disk for a BIOS is a boot sector, the disk for UEFI contains Debian's boot loader."""
        sector = "".join(f"\\{byte:03o}" for byte in boot_sector())
        efi = f"{_FOLDER}/system/EFI"
        shim, grub = "/usr/lib/shim", "/usr/lib/grub"
        self.machine.sh(
            f"printf '{sector}' >{_FOLDER}/sector; truncate -s 1M {_FOLDER}/sector; mkdir -p {efi}/BOOT {efi}/debian; "
            f"cp {shim}/shimx64.efi.signed {efi}/BOOT/BOOTX64.EFI; cp {grub}/x86_64-efi-signed/grubx64.efi.signed {efi}/BOOT/grubx64.efi; "
            f"cd {_FOLDER}/arm64; cp .{shim}/shimaa64.efi.signed {efi}/BOOT/BOOTAA64.EFI; "
            f"cp .{grub}/arm64-efi-signed/grubaa64.efi.signed {efi}/BOOT/grubaa64.efi; "
            f"echo 'echo {DISK}; sleep 600' >{efi}/debian/grub.cfg"
        )
