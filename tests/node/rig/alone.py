# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device plugin, GPU feature discovery and config-manager alone: without a node, in a root folder with the files of a machine.

run(programs, folder, row) starts the program of a row of real_programs.yml by chroot, and returns what it did. The kubelet is played by the rig's
stand-in. Each row takes a fraction of a second.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import architecture
from ansible_collections.hwaccel.gpu.tests.node.rig import foreign as foreign_programs
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Layer
from ansible_collections.hwaccel.gpu.tests.node.rig.components import MANAGEMENT_LIBRARY, Components
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import write_pci_device
from ansible_collections.hwaccel.gpu.tests.node.rig.nvidia_images import DEVICE_PLUGIN, LIBRARIES, device_plugin

DRIVER_ROOT, SOCKETS, LABELS = "driver-root", "var/lib/kubelet/device-plugins", "tmp/labels"
PLUGIN, DISCOVERY = "nvidia-device-plugin", "gpu-feature-discovery"
_EMULATOR = "emulator"
SERIAL, MACHINE_TYPE = "alone", "simulated"
#: What a row changes of this.
DEFAULTS: dict[str, t.Any] = {
    "arguments": [],
    "environment": {},
    "product": "NVIDIA H100 80GB HBM3",
    "count": 2,
    "memory_mib": 81559,
    "mig_capable": True,
    "driver": "595.91.07",
    "without": [],
    "tegra": False,
}
#: Seconds in which a program registers, writes its labels, or ends.
PATIENCE = 20
#: A program that has neither ended nor registered after these seconds waits.
_QUIET = 2.0
#: The same, once it has registered.
_AFTER = 0.3
#: What a record has of a resource.
_OFFERED = ("resource", "devices", "allocated", "error")
#: The head of a line of klog, without time, process and line number.
_HEAD = re.compile(r"^([IWEF])\d{4} [\d:.]+ +\d+ (\S+\.go):\d+\] ")
#: What differs from run to run: names of responses and of temporary files, and time stamps.
_CHANGES = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"(?<=/\.labels)\d+"), "NUMBER"),
    (re.compile(r"(?<=timestamp=)\d+"), "TIME"),
)


def run(
    components: Components, folder: pathlib.Path, row: c.Mapping[str, t.Any], *, foreign: Components | None = None
) -> dict[str, t.Any]:
    """What the program did. status: its exit status, None if it kept running. messages: its log. resource, devices, allocated, labels: what it offers;
    resources: the first three by resource, if there are several.

    foreign: the programs of another processor, to run them instead.
    """
    case = DEFAULTS | dict(row)
    machine = _Foreign(components, folder, case, foreign) if foreign else _Root(components, folder, case)
    machine.lay_out()
    with machine.kubelet() as offers:
        status, text = machine.start(offers)
    found: dict[str, t.Any] = {"status": status, "messages": machine.messages(text)}
    if offers.exists():
        read = (json.loads(machine.numbered(line)) for line in offers.read_text(encoding="utf-8").splitlines())
        offered = {offer["resource"]: {key: offer[key] for key in _OFFERED if key in offer} for offer in read}
        if len(offered) > 1:
            # Their plugins start in the order of a Go map, which changes from run to run.
            found |= {"resources": offered, "messages": sorted(found["messages"])}
        else:
            found |= next(iter(offered.values()), {})
    labels = folder / LABELS
    if labels.is_file():
        pairs = (line.partition("=") for line in machine.numbered(labels.read_text(encoding="utf-8")).splitlines())
        found["labels"] = {key: value for key, _equals, value in sorted(pairs)}
    return found


class _Root:
    """The folder in which a program runs."""

    architecture = architecture()

    def __init__(self, components: Components, folder: pathlib.Path, case: dict[str, t.Any]) -> None:
        self._components, self._folder, self._case = components, folder, case

    def _programs(self) -> Layer:
        return device_plugin(self._components)

    def _management_library(self) -> pathlib.Path:
        return self._components.program(MANAGEMENT_LIBRARY)

    def _command(self, program: str) -> list[str]:
        return [f"/usr/bin/{program}"]

    def lay_out(self) -> None:
        layer = self._programs() | {"usr/bin/stand-in": self._components.program("stand-in")}
        for path, content in layer.items():
            target = self._folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            assert isinstance(content, pathlib.Path), path
            self._link(content, target)
        for name in ("dev", "tmp", "var/run/cdi", SOCKETS, DRIVER_ROOT, "sys/module"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._write("sys/class/dmi/id/product_name", f"{MACHINE_TYPE}\n")
        if "config" in self._case:
            config = self._case["config"]
            self._write("config/config.yaml", config if isinstance(config, str) else json.dumps(config))
        self._gpus()
        if "library" not in self._case["without"]:
            self._library()
        if self._case["tegra"]:
            self._write("etc/nv_tegra_release", "# R36 (release), REVISION: 4.0\n")
            self._write(f"{DRIVER_ROOT}/etc/nv_tegra_release", "# R36 (release), REVISION: 4.0\n")

    @staticmethod
    def _link(source: pathlib.Path, target: pathlib.Path) -> None:
        source = source.resolve()
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copy2(source, target)

    def _write(self, path: str, text: str) -> None:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def _gpus(self) -> None:
        case, modules = self._case, self._folder / "sys" / "module"
        described = {"serial": SERIAL, **{key: case[key] for key in ("product", "count", "memory_mib", "mig_capable")}}
        self._write("sys/module/nvidia_standin/machine.json", json.dumps(described | {"mig": case.get("mig", {})}))
        (modules / "nvidia_standin" / "gpus").write_text(
            self._in_root(["stand-in", "describe"]).stdout, encoding="utf-8"
        )
        if "module" not in case["without"]:
            self._write("sys/module/nvidia/version", f"{case['driver']}\n")
            for name in ("ctl", *map(str, range(case["count"]))):
                os.mknod(self._folder / "dev" / f"nvidia{name}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        if case.get("mig"):
            self._capabilities()
        devices = self._folder / "sys" / "bus" / "pci" / "devices"
        for number in range(case["count"]):
            write_pci_device(devices / f"0000:{16 + number:02x}:00.0", "0x10de", "0x2330", "0x030200")

    def _capabilities(self) -> None:
        """Minor numbers of the device files that open a MIG device (MIG User Guide, "/dev based nvidia-capabilities")."""
        names = [
            f"gpu{gpu}/gi{place}{part}"
            for gpu, profiles in self._case["mig"].items()
            for place in range(1, len(profiles) + 1)
            for part in ("", "/ci0")
        ]
        lines = [f"{name}/access {minor}" for minor, name in enumerate(names, 3)]
        self._write("proc/driver/nvidia-caps/mig-minors", "\n".join(lines) + "\n")

    def _library(self) -> None:
        """In the driver's root for the plugin, and in the container for the others, to which NVIDIA's runtime gives it."""
        for root in (DRIVER_ROOT, ""):
            target = (
                self._folder
                / root
                / LIBRARIES[self.architecture]
                / f"libnvidia-ml.so.{self._case.get('libraries', self._case['driver'])}"
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            self._link(self._management_library(), target)
            target.with_name("libnvidia-ml.so.1").symlink_to(target.name)

    def _in_root(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        argv = ["chroot", str(self._folder), f"/usr/bin/{command[0]}", *command[1:]]
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=240)

    @contextlib.contextmanager
    def kubelet(self) -> c.Iterator[pathlib.Path]:
        """The file to which the stand-in for the kubelet writes what plugins offer."""
        offers = self._folder / "tmp" / "offers"
        if "kubelet" in self._case["without"]:
            yield offers
            return
        argv = ["chroot", str(self._folder), "/usr/bin/stand-in", "kubelet", f"/{SOCKETS}"]
        socket = self._folder / SOCKETS / "kubelet.sock"
        with offers.open("w", encoding="utf-8") as file, subprocess.Popen(argv, stdout=file) as process:
            try:
                _until(socket.exists)
                yield offers
            finally:
                process.terminate()

    def start(self, offers: pathlib.Path) -> tuple[int | None, str]:
        """The exit status, None if the program keeps running, and its output."""
        case, output = self._case, self._folder / "tmp" / "output"
        argv = ["chroot", str(self._folder), *self._command(case["program"]), *case["arguments"]]
        with output.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                argv,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/usr/sbin:/bin:/sbin", **case["environment"]},
            )
            with process:
                last, size = time.monotonic(), -1

                def settled() -> bool:
                    nonlocal last, size
                    if (now := output.stat().st_size) != size:
                        last, size = time.monotonic(), now
                    quiet = time.monotonic() - last
                    return process.poll() is not None or quiet > (_AFTER if _has(offers) else _QUIET)

                _until(settled)
                status = process.poll()
                process.kill()
        return status, output.read_text(encoding="utf-8")

    def messages(self, text: str) -> list[str]:
        """Lines of klog without what differs from run to run, and the first line about arguments that are wrong."""
        found = []
        for line in text.splitlines():
            if head := _HEAD.match(line):
                found.append(f"{head[1]} {head[2]}] {self.numbered(line[head.end() :])}".rstrip())
            elif line.startswith("Incorrect Usage"):
                found.append(line)
        # Specifications are written in the order of a Go map as well.
        groups = itertools.groupby(found, lambda line: " cdi.go] " in line)
        return [line for of_cdi, lines in groups for line in (sorted(lines) if of_cdi else lines)]

    def numbered(self, text: str) -> str:
        """GPUs and MIG devices by their number in place of their UUID."""
        for number, uuid in enumerate(re.findall(r"^gpu \d+ (\S+)", self._described(), re.MULTILINE)):
            text = text.replace(uuid, f"gpu#{number}")
        for gpu, instance, uuid in re.findall(r"^mig (\d+) (\d+) \d+ (\S+)", self._described(), re.MULTILINE):
            text = text.replace(uuid, f"mig#{gpu}.{instance}")
        for pattern, word in _CHANGES:
            text = pattern.sub(word, text)
        return text.replace(str(self._folder), "")

    def _described(self) -> str:
        return (self._folder / "sys/module/nvidia_standin/gpus").read_text(encoding="utf-8")


class _Foreign(_Root):
    """With programs for another processor, which an emulator runs. The stand-ins are still those of this machine."""

    architecture = foreign_programs.ARCHITECTURE

    def __init__(
        self, components: Components, folder: pathlib.Path, case: dict[str, t.Any], foreign: Components
    ) -> None:
        super().__init__(components, folder, case)
        self._foreign = foreign

    def _programs(self) -> Layer:
        programs = {f"usr/bin/{name}": self._foreign.program(name) for name in DEVICE_PLUGIN}
        return programs | foreign_programs.libraries() | {f"usr/bin/{_EMULATOR}": foreign_programs.emulator()}

    def _management_library(self) -> pathlib.Path:
        return self._foreign.program(MANAGEMENT_LIBRARY)

    def _command(self, program: str) -> list[str]:
        return [f"/usr/bin/{_EMULATOR}", f"/usr/bin/{program}"]


def _has(file: pathlib.Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _until(done: c.Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"not after {PATIENCE} s"
        time.sleep(0.02)
