# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A repository of packages of Kubernetes, with the names, revisions and files of those of pkgs.k8s.io, and the rig's programs in them.

Files: https://github.com/kubernetes/release/tree/master/cmd/krel/templates/latest (kubelet has the unit, kubeadm its drop-in).
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import pathlib
import shutil
import subprocess
import tempfile

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import templating
from ansible_collections.hwaccel.gpu.tests.cluster.rig.programs import Programs
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

#: On a machine, where the folder of the repository is mounted.
MOUNT = "/opt/kubernetes-packages"
_SOURCE = "/etc/apt/sources.list.d/kubernetes.list"
_UNITS = {
    "kubelet": {"usr/lib/systemd/system/kubelet.service": "kubelet.service"},
    "kubeadm": {"usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "kubelet.service.conf"},
}


def write_repository(folder: pathlib.Path, versions: c.Iterable[Programs]) -> None:
    """A flat repository (https://wiki.debian.org/DebianRepository/Format#Flat_Repository_Format), which machines trust as it is."""
    entries = []
    for programs in versions:
        for name in ("kubeadm", "kubelet"):
            package, control = _package(folder, name, programs)
            digest = hashlib.sha256(package.read_bytes()).hexdigest()
            entries.append(f"{control}Filename: ./{package.name}\nSize: {package.stat().st_size}\nSHA256: {digest}\n")
    (folder / "Packages").write_text("\n".join(entries), encoding="utf-8")


def use_repository(machine: Machine) -> None:
    machine.write(_SOURCE, f"deb [trusted=yes] file:{MOUNT} ./\n")


def _package(folder: pathlib.Path, name: str, programs: Programs) -> tuple[pathlib.Path, str]:
    """The package, and its control file."""
    version = f"{programs.version.removeprefix('v')}-1.1"
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], check=True, capture_output=True, text=True
    ).stdout.strip()
    control = f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: the rig <rig@example.com>\nDescription: {name} of the rig\n"
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        root = pathlib.Path(temporary)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(control, encoding="utf-8")
        (root / "usr" / "bin").mkdir(parents=True)
        shutil.copy2(programs.installed / name, root / "usr" / "bin" / name)
        for path, template in _UNITS[name].items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(templating.render("cluster_kubeadm", template), encoding="utf-8")
        package = folder / f"{name}_{version}_{architecture}.deb"
        subprocess.run(
            ["dpkg-deb", "-Znone", "--root-owner-group", "--build", str(root), str(package)],
            check=True,
            capture_output=True,
        )
    return package, control
