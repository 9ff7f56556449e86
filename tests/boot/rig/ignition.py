# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ignition as on the first start of a machine: Debian's package in an initramfs, and a disk that it writes to."""

from __future__ import annotations

import base64
import dataclasses
import pathlib
import subprocess
import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import BLOCK, Installer, Program
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

#: Kernel arguments with which Ignition uses a machine's ignition file as its config.
ARGUMENTS = ("ignition.firstboot", "ignition.platform.id=metal", "ignition.config.url={ignition_url}")
PASSED = "ALL-STAGES-OF-IGNITION-HAVE-PASSED"
_ENGINE = "/usr/lib/dracut/modules.d/30ignition/ignition"
#: Stages in the order of the units of an initramfs.
_STAGES = "fetch-offline fetch kargs disks mount files umount"
_PROGRAM = Program(
    f"""export PATH=/bin
for a in $(cat /proc/cmdline); do case $a in ignition.platform.id=*) platform=${{a#*=}};; esac; done
mount -t ext4 /dev/vda /sysroot
passed=
for stage in {_STAGES}; do {_ENGINE} --platform=$platform --root=/sysroot --log-to-stdout --stage=$stage && passed="$passed $stage" || break; done
[ "$passed" != " {_STAGES}" ] || echo {PASSED}
umount /sysroot; poweroff -f
""",
    (BLOCK,),
)


def igniting(folder: pathlib.Path, machine: Machine) -> Installer:
    """An initramfs that runs Ignition on a disk with a file system, and ends. machine: it can install Debian's package of Ignition and its libraries."""
    machine.sh(
        "apt-get -qq install --no-install-recommends ignition >/dev/null 2>&1; "
        f"tar --create --dereference --absolute-names --file /rig/ignition.tar {_ENGINE} $(ldd {_ENGINE} | grep -o '/[^ ]*')",
        seconds=300,
    )
    root = folder / "root"
    for name in ("sysroot", "run", "tmp", "bin"):
        (root / name).mkdir(parents=True)
    subprocess.run(
        ["tar", "--extract", "--file", str(machine.folder / "rig" / "ignition.tar"), "--directory", str(root)],
        check=True,
        capture_output=True,
    )
    # Ignition always labels files for SELinux, for which Debian has no program.
    (root / "bin" / "setfiles").write_text("#!/bin/sh\n", encoding="ascii")
    (root / "bin" / "setfiles").chmod(0o755)
    return Installer.of(folder, _PROGRAM)


def pointer(url: str, authority: str) -> dict[str, t.Any]:
    """The ignition file of a role as by OpenShift's installer: the URL of the config, and the authority of the certificate there."""
    signer = {"source": f"data:text/plain;charset=utf-8;base64,{base64.b64encode(authority.encode()).decode()}"}
    return {
        "ignition": {
            "version": "3.2.0",
            "config": {"merge": [{"source": url}]},
            "security": {"tls": {"certificateAuthorities": [signer]}},
        }
    }


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk of computers, in the machine that runs them. It can be read while no computer uses it."""

    machine: Machine
    path: str

    @classmethod
    def of(cls, machine: Machine, name: str) -> Disk:
        """Creates a disk with a file system, and with the SELinux configuration that Ignition reads."""
        path = f"/var/tmp/{name}"
        machine.sh(
            f"mkdir -p {path}.root/etc/selinux; echo SELINUXTYPE=targeted >{path}.root/etc/selinux/config; mkfs.ext4 -q -d {path}.root {path} 32M",
            seconds=120,
        )
        return cls(machine, path)

    def read(self, path: str) -> str:
        """The contents of a file, "" if it does not exist."""
        return self.machine.execute("debugfs", "-R", f"cat {path}", self.path).stdout

    def mode(self, path: str) -> str:
        words = self.machine.execute("debugfs", "-R", f"stat {path}", self.path).stdout.split()
        return words[words.index("Mode:") + 1]
