# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook node_runtime on a machine of the rig, run as a user runs it: by ssh, with an archive of NVIDIA's packages."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import hashlib
import pathlib
import shutil
import subprocess
import tarfile
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import cdi, containerd, docker, plan
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run, playbook
from ansible_collections.hwaccel.gpu.tests.node.rig.components import PINS, Components
from ansible_collections.hwaccel.gpu.tests.node.rig.login import let_in
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import PYTHON, Machine

VERSION = PINS["github.com/NVIDIA/nvidia-container-toolkit"].removeprefix("v")
CONFIG, DROP_IN, DAEMON, SPECIFICATION = containerd.CONFIG, containerd.DROP_IN, docker.CONFIG, cdi.SPEC
RUNTIME = "/usr/bin/nvidia-container-runtime"
#: Folders with everything that the role could touch.
TOUCHED = (
    "/etc/containerd",
    "/etc/docker",
    "/etc/apt",
    "/etc/systemd/system",
    "/etc/nvidia-container-runtime",
    "/var/lib/hwaccel-gpu",
    "/var/run/cdi",
)
#: Programs of NVIDIA's packages; libnvidia-container is needed for the hook of old only.
_PROGRAMS = {
    "nvidia-container-toolkit": ("nvidia-container-runtime-hook",),
    "nvidia-container-toolkit-base": ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook"),
}


def packages(components: Components, folder: pathlib.Path, version: str = VERSION) -> list[pathlib.Path]:
    """Debian packages of NVIDIA's names with the real programs, made in an empty folder."""
    made = []
    for name in plan.PACKAGES:
        root = folder / name
        (root / "DEBIAN").mkdir(parents=True)
        control = f"Package: {name}\nVersion: {version}-1\nArchitecture: all\nMaintainer: tests <tests@example.com>\nDescription: stand-in\n"
        (root / "DEBIAN" / "control").write_text(control, encoding="ascii")
        for program in _PROGRAMS.get(name, ()):
            (root / "usr" / "bin").mkdir(parents=True, exist_ok=True)
            target = root / "usr" / "bin" / program
            target.write_bytes(components.program(program).read_bytes())
            target.chmod(0o755)
        deb = folder / f"{name}_{version}-1_all.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(root), str(deb)],
            check=True,
            capture_output=True,
        )
        shutil.rmtree(root)
        made.append(deb)
    return made


def _packed(components: Components, folder: pathlib.Path) -> pathlib.Path:
    """An archive like those of NVIDIA's releases."""
    made = folder / "toolkit.tar.gz"
    with tarfile.open(made, "w:gz", compresslevel=1) as packed:
        for deb in packages(components, folder):
            packed.add(deb, f"release/packages/{deb.name}")
    return made


@dataclasses.dataclass
class Site:
    """One machine in an inventory of its own. login: what Ansible reaches it by. variables: of that host. warnings: expressions of those that are right."""

    folder: pathlib.Path
    machine: Machine
    login: dict[str, str]
    variables: dict[str, t.Any]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, machine: Machine, folder: pathlib.Path, components: Components) -> Site:
        """A machine that takes the toolkit from an archive. folder: an empty one."""
        archive = _packed(components, folder)
        variables = {
            "node_runtime_toolkit_source": "archive",
            "node_runtime_archive": str(archive),
            "node_runtime_archive_checksum": f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}",
            # What the machine that the tests run on has, is no matter of theirs.
            "node_runtime_min_disk_gib": 0.1,
            "node_runtime_skipped_checks": ["clock"],
            "ansible_python_interpreter": PYTHON,
            "ansible_user": "root",
        }
        return cls(folder, machine, let_in(machine, folder), variables)

    def play(self, *arguments: str, **variables: t.Any) -> Run:
        host = {"ansible_host": self.machine.address, **self.variables, **variables}
        return playbook(
            "node_runtime",
            {},
            *arguments,
            machines={"workers": {self.machine.name: host}},
            environment=self.login,
            warnings=self.warnings,
        )

    def done(self, *arguments: str, **variables: t.Any) -> Run:
        run = self.play(*arguments, **variables)
        assert run.rc == 0, run.stdout
        return run

    def changed(self, *arguments: str, **variables: t.Any) -> int:
        """How many tasks have changed something."""
        return self.done(*arguments, **variables).changed()

    def refused(self, *arguments: str, **variables: t.Any) -> str:
        """Why."""
        run = self.play(*arguments, **variables)
        assert run.rc == 2, run.stdout
        return run.failures[-1]


@contextlib.contextmanager
def overwritten(machine: Machine, path: str, text: str) -> c.Iterator[None]:
    """Another text in a file for a while. Services must be restarted after: it is newer than they are then."""
    kept, mode = machine.read(path), machine.sh(f"stat -L -c %a {path}").strip()
    machine.write(path, text, mode)
    try:
        yield
    finally:
        machine.write(path, kept, mode)


def state(machine: Machine) -> str:
    """Every file that the role could touch, with mode, owner and contents."""
    return machine.sh(
        f"for f in {' '.join(TOUCHED)}; do find $f -type f -printf '%p %m %U:%G ' -exec sha256sum {{}} \\; 2>/dev/null || :; done | sort"
    )


def times(machine: Machine) -> str:
    """When each of these files was last touched."""
    return machine.sh(f"find {' '.join(TOUCHED)} -type f -printf '%p %C@\\n' 2>/dev/null | sort || :")


def started(machine: Machine, *units: str) -> str:
    """The processes of services: others after a restart."""
    return machine.sh(f"systemctl show {' '.join(units)} -p MainPID -p ActiveState")
