# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook node_runtime on a machine of the rig, as users run it: with ssh and an archive of NVIDIA's packages."""

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

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.runtime import (
    cdi,
    containerd,
    docker,
    plan,
    programs,
)
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run, playbook
from ansible_collections.hwaccel.gpu.tests.node.rig.components import PINS, Components
from ansible_collections.hwaccel.gpu.tests.node.rig.login import allow_ssh
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import PYTHON, Machine

VERSION = PINS["github.com/NVIDIA/nvidia-container-toolkit"].removeprefix("v")
CONFIG, DROP_IN, DAEMON, SPECIFICATION = containerd.CONFIG, containerd.DROP_IN, docker.CONFIG, cdi.SPEC
RUNTIME = "/usr/bin/nvidia-container-runtime"
#: Folders with all files that the role can change.
TOUCHED = (
    "/etc/containerd",
    "/etc/docker",
    "/etc/apt",
    "/etc/systemd/system",
    "/etc/nvidia-container-runtime",
    "/var/lib/hwaccel-gpu",
    "/var/run/cdi",
)
#: Programs of NVIDIA's packages. Only the legacy hook requires libnvidia-container.
_PROGRAMS = {
    "nvidia-container-toolkit": ("nvidia-container-runtime-hook",),
    "nvidia-container-toolkit-base": ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook"),
}


def packages(components: Components, folder: pathlib.Path, version: str = VERSION) -> list[pathlib.Path]:
    """Debian packages with NVIDIA's names and the real programs. folder: an empty folder for them."""
    built = []
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
        built.append(deb)
    return built


def _packed(components: Components, folder: pathlib.Path) -> pathlib.Path:
    """An archive like those of NVIDIA's releases."""
    archive = folder / "toolkit.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for deb in packages(components, folder):
            packed.add(deb, f"release/packages/{deb.name}")
    return archive


#: The tests must not depend on the disk and the clock of the machine on which they run.
_ANYWHERE = {"node_runtime_min_disk_gib": 0.1, "node_runtime_skipped_checks": ["clock"]}


def _checksum(path: pathlib.Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def toolkit_variables(components: Components, folder: pathlib.Path) -> dict[str, t.Any]:
    """Of machines whose toolkit is installed from an archive. folder: an empty folder."""
    archive = _packed(components, folder)
    return {
        "node_runtime_toolkit_source": "archive",
        "node_runtime_archive": str(archive),
        "node_runtime_archive_checksum": _checksum(archive),
        **_ANYWHERE,
    }


def toolkit_programs(components: Components) -> dict[str, t.Any]:
    """Of machines without a package manager."""
    paths = {name: components.program(name) for name in programs.NEEDED}
    given = [{"name": name, "source": str(path), "checksum": _checksum(path)} for name, path in paths.items()]
    return {"node_runtime_toolkit_source": programs.SOURCE, "node_runtime_programs": given, **_ANYWHERE}


@dataclasses.dataclass
class Site:
    """An inventory with one machine. login: environment of the connection. variables: of the host. warnings: regular expressions of expected warnings."""

    folder: pathlib.Path
    machine: Machine
    login: dict[str, str]
    variables: dict[str, t.Any]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, machine: Machine, folder: pathlib.Path, components: Components) -> Site:
        """A machine whose toolkit is installed from an archive. folder: an empty folder."""
        variables = {
            **toolkit_variables(components, folder),
            "ansible_python_interpreter": PYTHON,
            "ansible_user": "root",
        }
        return cls(folder, machine, allow_ssh(machine, folder), variables)

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
        """The number of changed tasks."""
        return self.done(*arguments, **variables).changed()

    def refused(self, *arguments: str, **variables: t.Any) -> str:
        """The reason of a run that has to fail."""
        run = self.play(*arguments, **variables)
        assert run.rc == 2, run.stdout
        return run.failures[-1]


@contextlib.contextmanager
def overwritten(machine: Machine, path: str, text: str) -> c.Iterator[None]:
    """A file has another text during the context. Services must be restarted afterwards, because the file is newer than their start."""
    kept, mode = machine.read(path), machine.sh(f"stat -L -c %a {path}").strip()
    machine.write(path, text, mode)
    try:
        yield
    finally:
        machine.write(path, kept, mode)


def state(machine: Machine) -> str:
    """Every file that the role can change, with mode, owner and contents."""
    return machine.sh(
        f"for f in {' '.join(TOUCHED)}; do find $f -type f -printf '%p %m %U:%G ' -exec sha256sum {{}} \\; 2>/dev/null || :; done | sort"
    )


def times(machine: Machine) -> str:
    """The time of the last change of each of these files."""
    return machine.sh(f"find {' '.join(TOUCHED)} -type f -printf '%p %C@\\n' 2>/dev/null | sort || :")


def started(machine: Machine, *units: str) -> str:
    """The processes of services, which differ after a restart."""
    return machine.sh(f"systemctl show {' '.join(units)} -p MainPID -p ActiveState")
