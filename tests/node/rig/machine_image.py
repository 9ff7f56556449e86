# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operating system of the rig's machines: Debian with systemd, built once from packages and kept in the cache.

It is a podman image in its own store, which each rig uses read-only in addition to a temporary store.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import pathlib
import shutil
import subprocess

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import cache_folder, locked

SUITE = "bookworm"
NAME = "localhost/hwaccel-gpu-machine:1"
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "python3-apt",
    "sudo",
    "openssh-server",
    "ca-certificates",
    "procps",
    "iproute2",
    "iptables",
    "kmod",
    "mount",
    "busybox-static",
    "containerd",
    "runc",
    "containernetworking-plugins",
    "docker.io",
    "podman",
)
#: Units that a container does not need, or that would change the machine on which it runs.
MASKED = ("systemd-udevd.service", "systemd-modules-load.service", "systemd-sysctl.service", "e2scrub_reap.service")
#: Each test starts the container engines that it needs.
DISABLED = (
    "containerd.service",
    "docker.service",
    "docker.socket",
    "podman.service",
    "podman.socket",
    "podman-auto-update.timer",
    "podman-restart.service",
)
_NO_DOCUMENTS = tuple(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("man", "doc", "locale"))
_SOURCES = (pathlib.Path("/etc/apt/sources.list.d/debian.sources"), pathlib.Path("/etc/apt/sources.list"))

#: Settings of the podman that runs machines, and of the podman within them. Its default limits may exceed those of a virtual machine, and crun does not
#: support hybrid control groups.
CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclasses.dataclass(frozen=True)
class Podman:
    """podman with stores and settings of the rig, without those of the user."""

    folder: pathlib.Path
    #: An additional store, which is read-only.
    images: pathlib.Path | None = None

    def prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        more = f'additionalimagestores = ["{self.images}"]\n' if self.images else ""
        storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{self.folder}/graph"\nrunroot = "{self.folder}/run"\n[storage.options]\n{more}'
        (self.folder / "storage.conf").write_text(storage, encoding="utf-8")
        (self.folder / "containers.conf").write_text(CONTAINERS_CONF, encoding="utf-8")

    def run(
        self, *arguments: str, check: bool = True, stdin: str | None = None, seconds: float = 300
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.folder),
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf",
        }
        argv = ["podman", f"--tmpdir={self.folder}/tmp", *arguments]
        done = subprocess.run(
            argv, capture_output=True, text=True, input=stdin, timeout=seconds, check=False, env=environment
        )
        if check and done.returncode:
            raise RuntimeError(
                f"podman {' '.join(arguments[:8])} …: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done


def ensure_machine_image(say: c.Callable[[str], None]) -> pathlib.Path:
    """The store that contains NAME, built if it is missing (requires root, mmdebstrap and Debian's packages)."""
    recipe = repr((SUITE, PACKAGES, MASKED, DISABLED, _NO_DOCUMENTS, CONTAINERS_CONF))
    folder = cache_folder() / "node" / "machine" / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    with locked(folder.with_suffix(".making"), patience=900):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            say("building the machines' operating system from Debian's packages: a minute or two, once")
            _build(folder)
            (folder / "complete").touch()
        folder.with_suffix(".making").rmdir()
    return folder / "graph"


def _build(folder: pathlib.Path) -> None:
    podman = Podman(folder)
    podman.prepare()
    archive = folder / "machine.tar"
    services = [
        f'--customize-hook=chroot "$1" systemctl {verb} {" ".join(units)}'
        for verb, units in (("mask", MASKED), ("disable", DISABLED))
    ]
    # Packages can only be installed from a folder that a test mounts, because machines of the rig have no access to other networks.
    offline = '--customize-hook=echo \'deb [trusted=yes] file:/repo ./\' >"$1/etc/apt/sources.list"; rm -f "$1/usr/sbin/policy-rc.d"'
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        *_NO_DOCUMENTS,
        *services,
        offline,
    ]
    done = subprocess.run(
        [*command, SUITE, str(archive), *mirror()], capture_output=True, text=True, timeout=1200, check=False
    )
    if done.returncode:
        raise RuntimeError(f"mmdebstrap: exit status {done.returncode}\n{done.stderr[-3000:]}")
    podman.run(
        "import",
        "--quiet",
        "--change",
        'CMD ["/sbin/init"]',
        "--change",
        "STOPSIGNAL SIGRTMIN+3",
        str(archive),
        NAME,
        seconds=600,
    )
    archive.unlink()
    shutil.rmtree(folder / "run", ignore_errors=True)


def mirror() -> list[str]:
    """The package mirror in apt's configuration on this machine; with [], mmdebstrap uses its default."""
    for path in _SOURCES:
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            words = line.split()
            if words[:1] == ["URIs:"]:
                return words[1:2]
            if words[:1] == ["deb"]:
                return [word for word in words[1:] if "://" in word][:1]
    return []
