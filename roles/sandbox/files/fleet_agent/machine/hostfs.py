# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks and kernel of a simulated machine, as far as simulated programs read them."""

from __future__ import annotations

import dataclasses
import functools
import posixpath
import re
import uuid
from collections.abc import Callable

from fleet_agent.machine import products
from fleet_agent.machine.fleet import NodeSpec

RUNTIME_FILES = {
    "containerd": {
        "/usr/bin/containerd": "",
        "/run/containerd/containerd.sock": "",
        "/etc/containerd/config.toml": "version = 3\n",
    },
    "cri-o": {"/var/run/crio/crio.sock": "", "/run/crio/crio.sock": "", "/etc/crio/crio.conf": ""},
    "docker": {"/var/run/docker.sock": "", "/run/docker.sock": "", "/etc/docker/daemon.json": "{}\n"},
}


@dataclasses.dataclass(frozen=True)
class Mount:
    """A file system that is mounted on the machine, visible below `path`."""

    path: str
    sequence: int
    files: dict[str, str]


def pci_address(index: int) -> str:
    return f"0000:{0x18 + index:02x}:00.0"


@functools.lru_cache(maxsize=256)
def base_files(
    architecture: str,
    os_id: str,
    os_version: str,
    os_image: str,
    kernel: str,
    gpu: tuple[str, int] | None,
    host_driver: str,
    runtime: str,
) -> dict[str, str]:
    """Files of the operating system; one dictionary for all equal machines."""
    major = os_version.split(".", maxsplit=1)[0]
    release = f'NAME="{os_image.split(" ", maxsplit=1)[0]}"\nID={os_id}\nVERSION_ID="{os_version}"\nPRETTY_NAME="{os_image}"\n'
    files = {
        "/etc/os-release": release,
        "/usr/lib/os-release": release,
        "/proc/sys/kernel/osrelease": kernel + "\n",
        "/proc/version": f"Linux version {kernel}\n",
        "/proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
        f"/boot/config-{kernel}": "CONFIG_NO_HZ=y\n",
        f"/lib/modules/{kernel}/modules.dep": "",
        "/sys/module/firmware_class/parameters/path": "\n",
        "/var/lib/kubelet/device-plugins/kubelet.sock": "",
        "/var/lib/kubelet/pod-resources/kubelet.sock": "",
        **RUNTIME_FILES.get(runtime, {}),
        "/usr/bin/env": "",
        "/dev/log": "",
        "/dev/null": "",
        "/sys/devices/system/cpu/online": "0-63\n",
        "/var/log/syslog": "",
        "/etc/issue": f"{os_id} {major}\n",
    }
    if gpu and gpu[0].lower().startswith(("tegra", "orin", "jetson")):
        files["/etc/nv_tegra_release"] = "# R36 (release)\n"
    elif gpu:
        device = products.find(gpu[0]).pci
        for index in range(gpu[1]):
            folder = f"/sys/bus/pci/devices/{pci_address(index)}"
            files.update(
                {
                    f"{folder}/vendor": "0x10de\n",
                    f"{folder}/device": device + "\n",
                    f"{folder}/class": "0x030200\n",
                    f"{folder}/subsystem_vendor": "0x10de\n",
                    f"{folder}/subsystem_device": "0x16c1\n",
                }
            )
    if host_driver:
        files.update(dict.fromkeys(("/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"), ""))
    return files


#: Of the packages of the container toolkit, its runtime first.
TOOLKIT_FILES = (
    "/usr/bin/nvidia-container-runtime",
    "/usr/bin/nvidia-ctk",
    "/etc/nvidia-container-runtime/config.toml",
)
DRIVER_FILES = (
    "/usr/bin/nvidia-smi",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/src/nvidia/LICENSE",
)


def firmware(version: str) -> str:
    """Of the GSP, below a folder that the kernel searches (open-gpu-kernel-modules, nv_firmware_path in kernel-open/common/inc/nv-firmware.h)."""
    return f"nvidia/{version}/gsp_ga10x.bin"


#: What containerd reads when it starts.
CONTAINERD_CONFIG = "/etc/containerd/config.toml"
_RUNTIME = re.compile(r'^runtime "(.+)" = "(.+)"$', re.MULTILINE)
_IMPORT = re.compile(r'^imports = \["(.+)/\*\.toml"\]$', re.MULTILINE)
#: What CDI needs in the configuration of containerd before 2.0, where it is off.
CDI_LINE = "enable_cdi = true"


def runtime_line(handler: str, binary: str) -> str:
    """In place of the tables that containerd has for a handler."""
    return f'runtime "{handler}" = "{binary}"'


def import_line(folder: str) -> str:
    return f'imports = ["{folder}/*.toml"]'


class Host:
    """One machine: files, mounts, kernel modules, runtime handlers, images present."""

    def __init__(self, spec: NodeSpec, incarnation: str) -> None:
        self.spec = spec
        self.incarnation = incarnation
        self.version = 0
        self.files: dict[str, str] = {}
        self.folders: set[str] = set()
        self.mounts: dict[str, Mount] = {}
        self.modules: dict[str, str] = {}  # kernel module -> driver version
        self.clients: set[str] = set()  # ids of containers that have GPU devices open
        self.computing: dict[
            str, list[int]
        ] = {}  # id of a job's container -> GPUs on which it computes, with all of their memory
        self.struck: dict[int, int] = {}  # GPUs that have failed since boot -> the Xid
        self.handlers: dict[str, str] = {
            "": "",
            "runc": "",
        }  # runtime handler -> its binary on the machine, empty for the system's own
        self._configured: set[str] = set()  # handlers from containerd's files
        self._cdi_enabled = False
        self.default_handler = ""
        if spec.host_toolkit:
            # nvidia-ctk runtime configure --set-as-default, as an administrator runs it.
            self.handlers["nvidia"] = TOOLKIT_FILES[0]
            self.default_handler = "nvidia"
            self.files.update(dict.fromkeys(TOOLKIT_FILES, ""))
        self.driver_owner = ""  # id of the driver container that holds the lock
        self.images: set[str] = set()
        self.mount_sequence = 0
        self._waiting: list[Callable[[], None]] = []
        self._base_of: tuple[NodeSpec | None, dict[str, str]] = (None, {})
        self.boot()

    def boot(self) -> None:
        """Powers on: memory is empty, disks are unchanged."""
        self.boot_id = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.spec.name}/{self.spec.boot}/{self.incarnation}"))
        for path in [p for p in self.files if p.startswith(("/run/", "/var/run/", "/dev/", "/sys/", "/tmp/"))]:
            del self.files[path]
        self.folders = {p for p in self.folders if not p.startswith(("/run/", "/var/run/", "/dev/"))}
        self.mounts.clear()
        self.modules.clear()
        self.clients.clear()
        self.computing.clear()
        self.struck.clear()
        self.driver_owner = ""
        self.needs_firmware = self.initialized = False
        if self.spec.host_driver:
            self.modules = dict.fromkeys(("nvidia", "nvidia_uvm", "nvidia_modeset"), self.spec.host_driver)
        self.changed()

    @property
    def _base(self) -> dict[str, str]:
        spec, (known, files) = self.spec, self._base_of
        if known is not spec:
            gpu = (spec.gpu.product, spec.gpu.count) if spec.gpu else None
            runtime = spec.container_runtime.split(":", maxsplit=1)[0]
            files = base_files(
                spec.architecture,
                spec.os_id,
                spec.os_version,
                spec.os_image,
                spec.kernel,
                gpu,
                spec.host_driver,
                runtime,
            )
            self._base_of = spec, files
        return files

    def reload_containerd(self) -> None:
        """Handlers come from its own file and those that it imports, wherever else files were written."""
        own = self.read(CONTAINERD_CONFIG) or ""
        folders = _IMPORT.findall(own)
        drop_ins = [f"{folder}/{name}" for folder in folders for name in self.names(folder) if name.endswith(".toml")]
        texts = [own, *(self.read(path) or "" for path in drop_ins)]
        configured = {handler: binary for text in texts for handler, binary in _RUNTIME.findall(text)}
        for gone in self._configured - configured.keys():
            self.handlers.pop(gone, None)
        self.handlers |= configured
        self._configured = set(configured)
        self._cdi_enabled = any(CDI_LINE in text.splitlines() for text in texts)
        self.changed()

    @property
    def injects_cdi(self) -> bool:
        """Whether the container runtime itself follows requests for CDI devices: containerd since 2.0, or as configured; CRI-O always."""
        name, _colon, version = self.spec.container_runtime.partition("://")
        return name != "containerd" or not version.startswith("1.") or self._cdi_enabled

    # -- change notification

    def changed(self) -> None:
        self.version += 1
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def when_changed(self, wake: Callable[[], None]) -> None:
        self._waiting.append(wake)

    # -- files; every path is a host path, `since` limits mounts to those made before (None = all)

    def _mount_of(self, path: str, since: int | None) -> Mount | None:
        for mount in self.mounts.values():
            if (path == mount.path or path.startswith(mount.path + "/")) and (since is None or mount.sequence <= since):
                return mount
        return None

    def _dynamic(self, path: str) -> str | None:
        if path.startswith("/sys/module/"):
            parts = path.split("/")
            if parts[3] in self.modules and parts[4:] in (["refcnt"], ["version"]):
                return f"{self.references(parts[3])}\n" if parts[4] == "refcnt" else self.modules[parts[3]] + "\n"
        elif path == "/proc/sys/kernel/random/boot_id":
            return self.boot_id + "\n"
        elif path in ("/proc/modules", "/proc/devices"):
            return "".join(f"{name} 1 {self.references(name)} - Live 0x0\n" for name in self.modules)
        elif path == "/proc/driver/nvidia/version" and "nvidia" in self.modules:
            return f"NVRM version: NVIDIA UNIX Open Kernel Module  {self.modules['nvidia']}\n"
        elif self.is_gpu_device(path):
            return ""
        return None

    def is_gpu_device(self, path: str) -> bool:
        if not path.startswith("/dev/nvidia") or "nvidia" not in self.modules or self.spec.gpu is None:
            return False
        rest = path[len("/dev/nvidia") :]
        return rest in ("ctl", "-uvm") or (rest.isdigit() and int(rest) < self.spec.gpu.count)

    @property
    def gpus_work(self) -> bool:
        """Whether the driver can initialize the GPUs: it then keeps them, also if the file is gone later (request_firmware of the kernel)."""
        if not self.needs_firmware or "nvidia" not in self.modules:
            return True
        if not self.initialized:
            configured = (self.read("/sys/module/firmware_class/parameters/path") or "").strip()
            file = firmware(self.modules["nvidia"])
            self.initialized = any(
                self.read(f"{folder}/{file}") is not None for folder in (configured, "/lib/firmware") if folder
            )
        return self.initialized

    def references(self, module: str) -> int:
        if module == "nvidia":
            return sum(name in self.modules for name in ("nvidia_uvm", "nvidia_modeset")) + len(self.clients)
        return 0

    def read(self, path: str, since: int | None = None) -> str | None:
        mount = self._mount_of(path, since)
        if mount:
            return mount.files.get(path[len(mount.path) :])
        if path in self.files:
            return self.files[path]
        found = self._dynamic(path)
        return found if found is not None else self._base.get(path)

    def is_folder(self, path: str, since: int | None = None) -> bool:
        path = path.rstrip("/")
        mount = self._mount_of(path, since)
        if mount:
            inner = path[len(mount.path) :]
            return not inner or any(name.startswith(inner + "/") for name in mount.files)
        if path in self.folders or path in (
            "",
            "/dev/char",
            "/sys",
            "/proc",
            "/dev",
            "/run",
            "/var/run",
            "/etc",
            "/lib",
            "/boot",
            "/usr",
            "/usr/lib",
        ):
            return True
        if path.startswith("/sys/module/") and path.split("/")[3] in self.modules:
            return True
        prefix = path + "/"
        return (
            any(name.startswith(prefix) for name in self.files)
            or any(name.startswith(prefix) for name in self._base)
            or any(name.startswith(prefix) for name in self.folders)
        )

    def names(self, folder: str, since: int | None = None) -> list[str]:
        """What `ls` prints for a folder."""
        mount = self._mount_of(folder, since)
        prefix = folder.rstrip("/") + "/"
        if mount:
            inner = prefix[len(mount.path) :]
            return sorted(
                {name[len(inner) :].split("/", maxsplit=1)[0] for name in mount.files if name.startswith(inner)}
            )
        sources = (
            self.files,
            self.folders,
            self._base,
            {m.path: "" for m in self.mounts.values() if since is None or m.sequence <= since},
        )
        found = {
            name[len(prefix) :].split("/", maxsplit=1)[0]
            for source in sources
            for name in source
            if name.startswith(prefix)
        }
        if folder == "/dev" and self.spec.gpu:
            found |= {
                name
                for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{i}" for i in range(self.spec.gpu.count)))
                if self.is_gpu_device("/dev/" + name)
            }
        return sorted(found - {""})

    def write(self, path: str, text: str) -> None:
        if self.files.get(path) == text:
            return
        self.files[path] = text
        self.make_folder(posixpath.dirname(path))
        self.changed()

    def make_folder(self, path: str) -> None:
        if path not in self.folders and path not in ("", "/"):
            self.folders.add(path)

    def remove(self, path: str) -> bool:
        gone = self.files.pop(path, None) is not None
        if path in self.folders:
            self.folders.discard(path)
            for name in [n for n in self.files if n.startswith(path + "/")]:
                del self.files[name]
            gone = True
        if gone:
            self.changed()
        return gone

    # -- jobs

    def compute(self, container: str, gpus: list[int]) -> None:
        self.computing[container] = gpus
        self.clients.add(container)
        self.changed()

    def released(self, container: str) -> None:
        """The processes of a container are gone, so that their GPUs are released."""
        self.clients.discard(container)
        if self.computing.pop(container, None) is not None:
            self.changed()

    # -- mounts

    def mount(self, path: str, files: dict[str, str]) -> None:
        self.mount_sequence += 1
        self.mounts[path] = Mount(path, self.mount_sequence, files)
        self.changed()

    def unmount(self, path: str) -> None:
        if self.mounts.pop(path, None):
            self.changed()


def gpu_uuid(node: str, index: int) -> str:
    """UUID of a GPU, which is the same in every run."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node}/gpu/{index}')}"
