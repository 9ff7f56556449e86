# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of the rig: Debian with systemd as its first process, in a container that represents a computer."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import os
import pathlib
import shutil
import subprocess
import time

from ansible_collections.hwaccel.gpu.tests.node.rig.machine_image import NAME, Podman
from ansible_collections.hwaccel.gpu.tests.node.rig.network import Port

#: The kubelet sets these for the whole machine, because they have no namespaces. In the rig it writes to files instead, which have the values already.
SHIELDED = {
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.keys.root_maxkeys": "1000000",
    "kernel.keys.root_maxbytes": "25000000",
}

#: Folder that makes Python faster (tests/tools/quick), if the runner sets it, and the Python of machines for Ansible.
_QUICK = os.environ.get("HWACCEL_QUICK", "")
PYTHON = "/opt/quick/python3" if _QUICK else "/usr/bin/python3"

#: Runs at each boot, before other programs of the rig. systemd mounts hierarchies of control groups that the host does not have,
#: in which pods would leave groups behind.
_PREPARE = r"""#!/bin/sh -e
mount --make-rshared /
for group in net_cls,net_prio perf_event hugetlb; do umount "/sys/fs/cgroup/$group" 2>/dev/null || :; done
for file in /rig/settings/*; do mount --bind "$file" "/proc/sys/$(basename "$file" | tr . /)"; done
mount --bind /rig/devices /sys/bus/pci/devices
if [ -x /rig/boot ]; then /rig/boot; fi
"""
_PREPARE_UNIT = """[Unit]
Description=what a container lacks to stand for a machine
Before=containerd.service docker.service kubelet.service ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /rig/prepare
[Install]
WantedBy=multi-user.target
"""


@dataclasses.dataclass
class Machine:
    """One machine. A reboot keeps its disk and its network, but not /run and its processes."""

    name: str
    podman: Podman
    folder: pathlib.Path
    port: Port
    #: Folders of the host that are mounted read-only: {path on the host: path in the machine}.
    shares: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def address(self) -> str:
        return self.port.address

    def start(self) -> None:
        self.port.plug()
        self._lay_out()
        mounts = [
            f"--volume={self.folder}/rig:/rig",
            *(f"--volume={host}:{inside}:ro" for host, inside in self.shares.items()),
        ]
        if _QUICK:
            mounts.append(f"--volume={_QUICK}:/opt/quick")
        # Container engines cannot store their overlays on the overlay of the machine.
        for state in ("containerd", "containers", "docker", "kubelet", "rancher"):
            (self.folder / state).mkdir()
            mounts.append(f"--volume={self.folder}/{state}:/var/lib/{state}")
        self.podman.run(
            "run",
            "--detach",
            f"--name={self.name}",
            f"--hostname={self.name}",
            f"--network=ns:{self.port.namespace}",
            "--privileged",
            # Otherwise podman would mount the host's hierarchy of systemd, in which groups of the machine would remain.
            "--systemd=false",
            "--cgroupns=private",
            f"--cgroup-parent=/{control_group()}",
            "--tmpfs=/run:rw,mode=755,size=256m",
            "--tmpfs=/tmp",
            "--env=container=podman",
            *mounts,
            NAME,
        )
        self._await_boot()
        unit = "/etc/systemd/system/rig-prepare.service"
        self.write(unit, _PREPARE_UNIT)
        self.sh("systemctl daemon-reload && systemctl enable --quiet --now rig-prepare")

    def reboot(self) -> None:
        self.podman.run("restart", "--time=2", self.name)
        self._await_boot()

    def stop(self) -> None:
        self.podman.run("rm", "--force", "--time=0", self.name, check=False)
        self.port.unplug()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(
        self, *argv: str, check: bool = True, stdin: str | None = None, seconds: float = 300
    ) -> subprocess.CompletedProcess[str]:
        return self.podman.run(
            "exec",
            *(("--interactive",) if stdin is not None else ()),
            self.name,
            *argv,
            check=check,
            stdin=stdin,
            seconds=seconds,
        )

    def sh(self, script: str, *, check: bool = True, seconds: float = 300) -> str:
        return self.execute("sh", "-ec", script, check=check, seconds=seconds).stdout

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        self.execute(
            "sh", "-ec", 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"', "write", path, mode, stdin=text
        )

    def read(self, path: str) -> str:
        return self.execute("cat", path).stdout

    def devices(self) -> list[str]:
        """Slots of its PCI devices."""
        return sorted(path.name for path in (self.folder / "rig" / "devices").iterdir())

    def plug_device(self, slot: str, vendor: str, device: str, class_code: str) -> None:
        write_pci_device(self.folder / "rig" / "devices" / slot, vendor, device, class_code)

    def unplug_device(self, slot: str) -> None:
        shutil.rmtree(self.folder / "rig" / "devices" / slot)

    def wait(self, what: str, done: c.Callable[[], bool], seconds: float = 240) -> None:
        """Waits until `done`. Fails with the last lines of the machine's log."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                log = self.sh("journalctl --no-pager --lines 40", check=False)
                raise AssertionError(f"{self.name}: {what}: not after {seconds:.0f} s\n{log}")
            time.sleep(0.1)

    def _lay_out(self) -> None:
        rig = self.folder / "rig"
        for folder in ("devices", "settings"):
            (rig / folder).mkdir(parents=True)
        (rig / "prepare").write_text(_PREPARE, encoding="utf-8")
        for setting, value in SHIELDED.items():
            (rig / "settings" / setting).write_text(f"{value}\n", encoding="ascii")

    def _await_boot(self) -> None:
        # The option --wait avoids polling, which would need as much processor time as the boot.
        command = "systemctl is-system-running --wait || :"
        self.wait(
            "systemd has started its units", lambda: self.sh(command, check=False).strip() in ("running", "degraded")
        )


def write_pci_device(folder: pathlib.Path, vendor: str, device: str, class_code: str) -> None:
    """A PCI device in sysfs. NFD's source pci reads the first five files of each device, GPU feature discovery the others of NVIDIA's."""
    folder.mkdir(parents=True)
    values = {
        "class": class_code,
        "vendor": vendor,
        "device": device,
        "subsystem_vendor": vendor,
        "subsystem_device": "0x1234",
        "numa_node": "-1",
        "resource": " ".join(["0x0000000000000000"] * 3),
    }
    for file, value in values.items():
        (folder / file).write_text(f"{value}\n", encoding="ascii")
    (folder / "config").write_bytes(bytes(256))


def release_storage(folder: pathlib.Path, seconds: float = 240) -> None:
    """Prepares podman's folder for its deletion. Monitors of removed containers still use it during their cleanup, and when two programs end at the
    same time, neither unmounts the storage that both have used.
    """
    end = time.monotonic() + seconds
    while users := [
        path.parent.name for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if str(folder).encode() in _read(path)
    ]:
        assert time.monotonic() < end, f"processes {', '.join(users)} still use {folder} after {seconds:.0f} s"
        time.sleep(0.1)
    mounted = [
        line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    ]
    for point in reversed([point for point in mounted if point.startswith(f"{folder}/")]):
        subprocess.run(["umount", point], check=True, capture_output=True, text=True, timeout=240)


def _read(path: pathlib.Path) -> bytes:
    """A file of a process, b"" if the process has just ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def control_group() -> str:
    """Parent of the control groups of all machines, without any others (tests/tools/isolated sets its name)."""
    return os.environ["HWACCEL_ISOLATED"]


def remove_control_groups() -> None:
    """Removes the control groups of removed machines. They are empty, but no other program removes them."""
    for root in pathlib.Path("/sys/fs/cgroup").glob(f"*/{control_group()}"):
        for folder, _folders, _files in os.walk(root, topdown=False):
            pathlib.Path(folder).rmdir()
