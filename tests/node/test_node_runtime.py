# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime on machines with containerd 1.6 and Docker, by ssh, with NVIDIA's real programs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import typing as t

import pytest
import yaml

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

COLLECTIONS = pathlib.Path(next(iter(collection.__path__))).parents[2]
VERSION = "1.20.1"
CONFIG, DROP_IN, DAEMON = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-hwaccel-gpu.toml", "/etc/docker/daemon.json"
TOUCHED = ("/etc/containerd", "/etc/docker", "/etc/apt", "/etc/systemd/system", "/etc/nvidia-container-runtime", "/var/lib/hwaccel-gpu", "/var/run/cdi")
EDITED = """version = 2
# our mirror, see ticket 4711
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "mirror.example.com/pause:3.9"   # not the default
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
"""
SETTINGS = '{"log-opts": {"max-size": "10m"},\n "max-concurrent-uploads": 9007199254740993}'
_SHARED = "-o ControlMaster=auto -o ControlPersist=60s"
TEGRA = "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic, EABI: aarch64, DATE: Fri Sep 13 04:36:44 UTC 2024\n"


@dataclasses.dataclass
class Site:
    """Runs the playbook on a machine, as a user does from the machine beside it."""

    folder: pathlib.Path
    machine: Machine
    variables: dict[str, t.Any]

    def play(self, *arguments: str, **variables: t.Any) -> subprocess.CompletedProcess[str]:
        hosts = {self.machine.name: {"ansible_host": self.machine.address}}
        inventory = {"workers": {"hosts": hosts, "vars": {"ansible_user": "root", **self.variables}}}
        (self.folder / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        environment |= {
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_HOME": str(self.folder / "ansible"), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "4000",
            "ANSIBLE_SSH_ARGS": f"-F none -i {self.folder}/key -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no {_SHARED}",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": f"{self.folder}/ssh", "ANSIBLE_PIPELINING": "1",
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "hwaccel.gpu.node_runtime", "-e", json.dumps(variables), *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False)

    def changed(self, *arguments: str, **variables: t.Any) -> int:
        done = self.play(*arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "[WARNING]" not in done.stdout + done.stderr
        found = re.search(r"ok=\d+ +changed=(\d+)", done.stdout)
        assert found, done.stdout
        return int(found.group(1))

    def refused(self, *arguments: str, **variables: t.Any) -> str:
        done = self.play(*arguments, **variables)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout


def state(machine: Machine) -> str:
    """Every file that the role could touch, with mode, owner and contents."""
    return machine.sh(f"for f in {' '.join(TOUCHED)}; do find $f -type f -printf '%p %m %U:%G ' -exec sha256sum {{}} \\; 2>/dev/null || :; done | sort")


def times(machine: Machine) -> str:
    return machine.sh(f"find {' '.join(TOUCHED)} -type f -printf '%p %C@\\n' 2>/dev/null | sort || :")


def started(machine: Machine) -> str:
    return machine.sh("systemctl show containerd docker -p MainPID -p ActiveState")


def unsaid(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def archive(components: programs.Components, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Packages of NVIDIA's names with the real programs, as an archive like those of NVIDIA's releases."""
    folder = tmp_path_factory.mktemp("packages")
    contents = {
        "libnvidia-container1": (), "libnvidia-container-tools": (), "nvidia-container-toolkit": ("nvidia-container-runtime-hook",),
        "nvidia-container-toolkit-base": ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook"),
    }
    made = folder / "toolkit.tar.gz"
    with tarfile.open(made, "w:gz") as packed:
        for name, binaries in contents.items():
            root = folder / name
            (root / "DEBIAN").mkdir(parents=True)
            control = f"Package: {name}\nVersion: {VERSION}-1\nArchitecture: all\nMaintainer: tests <tests@example.com>\nDescription: stand-in\n"
            (root / "DEBIAN" / "control").write_text(control, encoding="ascii")
            for binary in binaries:
                (root / "usr" / "bin").mkdir(parents=True, exist_ok=True)
                target = root / "usr" / "bin" / binary
                target.write_bytes(components.program(binary).read_bytes())
                target.chmod(0o755)
            deb = folder / f"{name}_{VERSION}-1_all.deb"
            subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(root), str(deb)], check=True, capture_output=True)
            packed.add(deb, f"release/packages/{deb.name}")
    return made


def site(rig: Rig, name: str, folder: pathlib.Path, archive: pathlib.Path) -> Site:
    machine = rig.machine(name)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True, capture_output=True)
    machine.write("/etc/ssh/authorized_keys", (folder / "key.pub").read_text(encoding="ascii"), "0600")
    machine.write("/etc/ssh/sshd_config.d/rig.conf", "AuthorizedKeysFile /etc/ssh/authorized_keys\nPermitRootLogin prohibit-password\n")
    machine.sh("systemctl restart ssh")
    checksum = f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"
    variables = {
        "node_runtime_toolkit_source": "archive", "node_runtime_archive": str(archive), "node_runtime_archive_checksum": checksum,
        "node_runtime_min_disk_gib": 0.1, "node_runtime_skipped_checks": ["clock"], "node_runtime_without_gpu": True,
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    return Site(folder, machine, variables)


@pytest.fixture(scope="module")
def engines(rig: Rig, archive: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = site(rig, "engines", tmp_path_factory.mktemp("engines"), archive)
    made.machine.write(CONFIG, EDITED, "0640")
    made.machine.write(DAEMON, SETTINGS, "0600")
    made.machine.sh("systemctl start containerd docker")
    return made


def test_from_a_bare_machine_and_back(engines: Site) -> None:
    machine = engines.machine
    before, running = state(machine), started(machine)
    foreseen = engines.changed("--check", "--diff")
    assert foreseen > 0
    assert (state(machine), started(machine)) == (before, running)

    assert engines.changed() > 0
    assert machine.read(CONFIG) == EDITED.replace("version = 2\n", f'version = 2\nimports = ["{DROP_IN}"]\n')
    assert machine.sh(f"stat -c %a {CONFIG} {DROP_IN} {DAEMON}").split() == ["640", "640", "600"]
    read = machine.sh("containerd config dump")
    assert 'BinaryName = "/usr/bin/nvidia-container-runtime"' in read
    assert 'sandbox_image = "mirror.example.com/pause:3.9"' in read
    settings = json.loads(machine.read(DAEMON))
    assert settings["max-concurrent-uploads"] == 9007199254740993
    assert json.loads(machine.sh("docker info --format '{{json .Runtimes}}'"))["nvidia"]["path"] == "/usr/bin/nvidia-container-runtime"
    assert started(machine) != running

    done, when = state(machine), times(machine)
    assert engines.changed() == 0
    assert engines.changed("--check", "--diff") == 0
    assert (state(machine), times(machine)) == (done, when)

    assert engines.changed(node_runtime_entry="teardown") > 0
    assert state(machine) == before
    assert machine.sh("dpkg -l | grep -c nvidia || :").strip() == "0"
    assert "nvidia" not in machine.sh("docker info --format '{{json .Runtimes}}'")


@pytest.mark.slow
def test_a_default_that_is_no_longer_wanted_goes(engines: Site) -> None:
    machine = engines.machine
    engines.changed()
    done = state(machine)
    engines.changed(node_runtime_default_runtime=True)
    assert machine.sh("docker info --format '{{.DefaultRuntime}}'").strip() == "nvidia"
    assert 'default_runtime_name = "nvidia"' in machine.sh("containerd config dump")
    engines.changed()
    assert state(machine) == done
    engines.changed(node_runtime_entry="teardown")


@pytest.mark.slow
def test_a_service_that_has_not_read_its_files_is_restarted_by_the_next_run(engines: Site) -> None:
    machine, running = engines.machine, started(engines.machine)
    engines.changed(node_runtime_restart=False)
    assert started(machine) == running
    assert engines.changed() > 0
    assert started(machine) != running
    running = started(machine)
    assert engines.changed() == 0
    assert started(machine) == running


def test_files_that_no_service_would_take_are_refused_and_nothing_is_touched(engines: Site) -> None:
    machine = engines.machine
    engines.changed()
    running, kept = started(machine), (machine.read(CONFIG), machine.read(DAEMON))
    machine.write(CONFIG, kept[0] + "[[[\n", "0640")
    machine.write(DAEMON, "{", "0600")
    before = state(machine)
    told = unsaid(engines.refused())
    assert "containerd does not accept its present configuration" in told
    assert "daemon.json): it is no JSON" in told
    assert (state(machine), started(machine)) == (before, running)
    machine.write(CONFIG, kept[0], "0640")
    machine.write(DAEMON, kept[1], "0600")


@pytest.mark.slow
def test_what_others_have_changed_since_outlives_a_teardown(engines: Site) -> None:
    machine = engines.machine
    engines.changed()
    machine.write(CONFIG, machine.read(CONFIG) + "# added later\n", "0640")
    machine.write(DAEMON, json.dumps({**json.loads(machine.read(DAEMON)), "debug": True}), "0600")
    engines.changed(node_runtime_entry="teardown")
    assert machine.read(CONFIG) == EDITED + "# added later\n"
    assert json.loads(machine.read(DAEMON)) == {**json.loads(SETTINGS), "debug": True}


@pytest.mark.slow
def test_another_archive_than_is_meant_is_refused(engines: Site) -> None:
    told = engines.refused(node_runtime_archive_checksum="sha256:" + "0" * 64)
    assert "is not what is meant: its checksum is sha256:" in told
    assert engines.machine.sh("dpkg -l | grep -c nvidia || :").strip() == "0"


def test_a_jetson_board_is_described_by_its_csv_files(rig: Rig, archive: pathlib.Path, tmp_path: pathlib.Path) -> None:
    board = site(rig, "jetson", tmp_path, archive)
    machine = board.machine
    board.variables["node_runtime_without_gpu"] = False
    machine.write("/etc/nv_tegra_release", TEGRA)
    machine.write("/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1", "")
    folder = "/etc/nvidia-container-runtime/host-files-for-container.d"
    machine.write(f"{folder}/devices.csv", "dev, /dev/nvhost-gpu\n")
    machine.write(f"{folder}/drivers.csv", "lib, /usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1\nlib, /usr/lib/aarch64-linux-gnu/tegra/libgone.so\n")
    machine.sh("mknod /dev/nvhost-gpu c 506 1; systemctl start containerd")
    before = state(machine)
    done = board.play()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CDI leaves out what is not there" in done.stdout, done.stdout
    spec = yaml.safe_load(machine.read("/var/run/cdi/nvidia.yaml"))
    assert [device["name"] for device in spec["devices"]] == ["0", "all"]
    assert "/dev/nvhost-gpu" in json.dumps(spec)
    assert board.changed() == 0
    machine.sh("rm /var/run/cdi/nvidia.yaml; systemctl start hwaccel-gpu-cdi.service")
    assert yaml.safe_load(machine.read("/var/run/cdi/nvidia.yaml")) == spec
    board.changed(node_runtime_entry="teardown")
    assert state(machine) == before
