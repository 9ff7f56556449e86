# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk that a BIOS boots: a boot record, a partition that syslinux boots, and one with the root file system."""

from __future__ import annotations

import pathlib
import shutil
import struct

SECTOR = 512
#: First sector of the boot partition.
FIRST = 2048
#: Types of partitions: FAT16 with LBA, and Linux.
_FAT, _LINUX, _ACTIVE = 0x0E, 0x83, 0x80


def write_disk(parts: pathlib.Path, target: pathlib.Path, boot_sectors: int, root_sectors: int) -> None:
    """Up to the end of the root file system, which may end before its partition. parts: folder with the files mbr, boot and root."""
    entries = ((_ACTIVE, _FAT, FIRST, boot_sectors), (0, _LINUX, FIRST + boot_sectors, root_sectors))
    table = b"".join(struct.pack("<B3xB3xII", *entry) for entry in entries)
    record = (parts / "mbr").read_bytes().ljust(446, b"\0") + table.ljust(64, b"\0") + b"\x55\xaa"
    with target.open("wb") as disk:
        disk.write(record.ljust(FIRST * SECTOR, b"\0"))
        for name in ("boot", "root"):
            with (parts / name).open("rb") as part:
                shutil.copyfileobj(part, disk, 1 << 20)
