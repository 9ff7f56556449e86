# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that roles install on machines of the rig, which have no access to other networks: a folder that apt reads as a repository, downloaded once.

It also contains the dependencies that are missing in the machines' operating system, in the versions of its suite.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked
from ansible_collections.hwaccel.gpu.tests.node.rig import machine_image
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import control_group, release_storage, remove_control_groups
from ansible_collections.hwaccel.gpu.tests.tools import environments

#: Path of the folder in machines, the only source in their apt configuration.
REPOSITORY = "/repo"
PACKAGES = (
    "haproxy",
    "keepalived",
    "socat",
    "firewalld",
    "ufw",
    "nftables",
    "dnsmasq",
    "nginx",
    "pxelinux",
    "syslinux-common",
    "ipxe",
    "shim-signed",
    "grub-efi-amd64-bin",
    "grub-efi-amd64-signed",
    "grub-common",
    "bind9-dnsutils",
    "curl",
    "tftp-hpa",
    "ipmitool",
    "openipmi",
    "python3-pyghmi",
    "python3-pbr",
    "python3-zmq",
)
#: Packages for a computer without an operating system, and files that it boots.
VIRTUAL_MACHINE = (
    "qemu-system-x86",
    "seabios",
    "ipxe-qemu",
    "ovmf",
    "qemu-system-arm",
    "qemu-efi-aarch64",
    "linux-image-cloud-amd64",
    "ignition",
)
#: Packages with files that a computer of another architecture boots. No machine of the rig installs them.
ARM64 = ("shim-signed", "grub-efi-arm64-signed", "busybox-static", "linux-image-cloud-arm64")
#: Packages of a hypervisor, with the Python libraries that modules need there.
HYPERVISOR = (
    "libvirt-daemon-system",
    "libvirt-daemon-driver-qemu",
    "libvirt-clients",
    "qemu-system-x86",
    "qemu-utils",
    "seabios",
    "ipxe-qemu",
    "ovmf",
    "python3-libvirt",
    "python3-lxml",
)
VIRTUALBMC = "3.3.0"


def ensure_packages(say: c.Callable[[str], None], packages: tuple[str, ...] = PACKAGES) -> pathlib.Path:
    """The folder with the packages and their index. A missing one is downloaded, which requires apt-get and Debian's mirror."""
    graph = machine_image.ensure_machine_image(say)
    recipe = repr((machine_image.SUITE, packages, graph.parent.name))
    folder = cache_folder() / "boot" / "packages" / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    with locked(folder.with_suffix(".making"), patience=900):
        if not (folder / "Packages").exists():
            shutil.rmtree(folder, ignore_errors=True)
            say("downloading the packages that roles install on machines: half a minute, once")
            _fetch(folder, graph, packages)
        folder.with_suffix(".making").rmdir()
    return folder


def ensure_arm64(say: c.Callable[[str], None]) -> pathlib.Path:
    """The folder with packages of aarch64, without their dependencies."""
    folder = (
        cache_folder() / "boot" / "arm64" / hashlib.sha256(repr((machine_image.SUITE, ARM64)).encode()).hexdigest()[:16]
    )
    with locked(folder.with_suffix(".making"), patience=900):
        if not folder.exists():
            say("downloading packages of aarch64: half a minute, once")
            with _apt(lambda _state: "", "arm64") as apt:
                # The package in ARM64 contains no kernel, but depends on the newest one.
                needed = apt("apt-cache", "depends", ARM64[-1])
                (kernel,) = (line.split()[1] for line in needed.splitlines() if "Depends: linux-image-" in line)
                apt("apt-get", "download", *ARM64[:-1], kernel)
                shutil.rmtree(new := folder.with_suffix(".new"), ignore_errors=True)
                _copy(apt.archives, new)
            os.replace(new, folder)
        folder.with_suffix(".making").rmdir()
    return folder


def ensure_virtualbmc(say: c.Callable[[str], None]) -> pathlib.Path:
    """The folder with OpenStack's virtualbmc, which is no package of Debian, without its dependencies, which are."""
    folder = cache_folder() / "boot" / "virtualbmc" / VIRTUALBMC
    with locked(folder.with_suffix(".making"), patience=900):
        if not folder.exists():
            say("downloading virtualbmc: seconds, once")
            shutil.rmtree(new := folder.with_suffix(".new"), ignore_errors=True)
            pip = (
                str(environments.ensure("bmc") / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--quiet",
            )
            subprocess.run([*pip, "--no-deps", f"--target={new}", f"virtualbmc=={VIRTUALBMC}"], check=True, timeout=600)
            os.replace(new, folder)
        folder.with_suffix(".making").rmdir()
    return folder


@dataclasses.dataclass(frozen=True)
class _Apt:
    """apt with its own state. archives: folder for downloaded packages."""

    archives: pathlib.Path
    options: tuple[str, ...]

    def __call__(self, program: str, *arguments: str) -> str:
        argv = [program, "--quiet", *self.options, *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False, cwd=self.archives)
        if done.returncode:
            raise RuntimeError(f"{program} {arguments[0]}: exit status {done.returncode}\n{done.stderr[-3000:]}")
        return done.stdout


@contextlib.contextmanager
def _apt(status: c.Callable[[pathlib.Path], str], architecture: str = "") -> c.Iterator[_Apt]:
    """status: contents of dpkg's status file of the system for which packages are downloaded."""
    with tempfile.TemporaryDirectory(prefix="hwaccel-packages-") as scratch:
        state = pathlib.Path(scratch)
        (state / "lists" / "partial").mkdir(parents=True)
        (state / "archives" / "partial").mkdir(parents=True)
        (state / "status").write_text(status(state), encoding="utf-8")
        mirror = next(iter(machine_image.mirror()), "")
        if not mirror:
            raise RuntimeError(
                "apt's configuration on this machine contains no mirror from which packages for other machines can be downloaded"
            )
        (state / "sources").write_text(f"deb {mirror} {machine_image.SUITE} main\n", encoding="ascii")
        settings = {
            "Dir::State::lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": state,
            "Dir::Cache::archives": state / "archives",
            "Dir::Etc::sourcelist": state / "sources",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
            "Acquire::Languages": "none",
            **({"APT::Architecture": architecture, "APT::Architectures": architecture} if architecture else {}),
        }
        apt = _Apt(state / "archives", tuple(f"--option={key}={value}" for key, value in settings.items()))
        apt("apt-get", "update")
        yield apt


def _copy(archives: pathlib.Path, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True)
    for package in archives.glob("*.deb"):
        # apt encodes the colon of an epoch as %3a, but would decode it in the index.
        shutil.copy(package, folder / package.name.replace("%3a", "_"))


def _fetch(folder: pathlib.Path, graph: pathlib.Path, packages: tuple[str, ...]) -> None:
    with _apt(lambda state: _installed(state, graph)) as apt:
        apt("apt-get", "install", "--yes", "--download-only", *packages)
        _copy(apt.archives, folder)
    index = "".join(f"{_described(package)}\n" for package in sorted(folder.glob("*.deb")))
    # The index is written last, so that an interrupted download is not regarded as complete.
    (folder / ".Packages").write_text(index, encoding="utf-8")
    os.replace(folder / ".Packages", folder / "Packages")


def _installed(state: pathlib.Path, graph: pathlib.Path) -> str:
    """dpkg's status file of the machines' operating system."""
    podman = machine_image.Podman(state / "podman", graph)
    podman.prepare()
    try:
        return podman.run(
            "run",
            "--rm",
            "--network=none",
            f"--cgroup-parent=/{control_group()}",
            machine_image.NAME,
            "cat",
            "/var/lib/dpkg/status",
        ).stdout
    finally:
        # The container's monitor ends after podman.
        release_storage(podman.folder)
        remove_control_groups()


def _described(package: pathlib.Path) -> str:
    control = subprocess.run(
        ["dpkg-deb", "--field", str(package)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    content = package.read_bytes()
    return f"{control}Filename: ./{package.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
