# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime on a Jetson board with Debian's containerd 1.6, Docker 20.10 and podman 4.3: its files, devices of containers, and teardown.

Tests share runs of the playbook and examine their results. The toolkit is NVIDIA's.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib
import shutil

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import architecture
from ansible_collections.hwaccel.gpu.tests.node.rig import archive, images
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.host_driver import (
    JETSON_LIBRARY,
    OPEN_DEVICES,
    install_jetpack,
    permitted,
)
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IMAGES, PROGRAMS
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.machine_image import CONTAINERS_CONF
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import (
    CONFIG,
    DAEMON,
    DROP_IN,
    RUNTIME,
    SPECIFICATION,
    Site,
    overwritten,
    started,
    state,
    times,
)

PAUSE = "mirror.example.com/pause:3.9"
#: Without restrict_oom_score_adj, no pod would start in a container that represents a machine.
EDITED = f"""version = 2
# our mirror, see ticket 4711
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "{PAUSE}"   # not the default
    restrict_oom_score_adj = true
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
"""
SETTINGS = '{"log-opts": {"max-size": "10m"},\n "max-concurrent-uploads": 9007199254740993}'
#: Target of the link that is Docker's file.
OURS = "ours.json"
ENGINES = ("containerd", "docker")
GPU = "/dev/nvhost-gpu"


@dataclasses.dataclass(frozen=True)
class Configured:
    """The board after the role's first run. before, checked: files and processes before all runs and after a run in check mode. output: of the first run."""

    site: Site
    before: tuple[str, str]
    checked: tuple[str, str]
    predicted: int
    output: str

    @property
    def machine(self) -> Machine:
        return self.site.machine


def pod_images(components: programs.Components, folder: pathlib.Path) -> pathlib.Path:
    """Images of a pod in an archive that each engine reads. The image of its sandbox has only the name in containerd's configuration."""
    busybox = shutil.which("busybox")
    assert busybox, "the rig requires busybox"
    available, layers = images.node_images(components, pathlib.Path(busybox))
    pause, shell = (next(image for image in available if image.name == name) for name in (images.PAUSE, BUSYBOX))
    archive.write(folder / "images.tar", [dataclasses.replace(pause, name=PAUSE), shell], layers, architecture())
    return folder


@pytest.fixture(scope="module")
def board(rig: Rig, components: programs.Components, tmp_path_factory: pytest.TempPathFactory) -> Site:
    shares = {str(components.folder): PROGRAMS, str(pod_images(components, tmp_path_factory.mktemp("images"))): IMAGES}
    machine = rig.machine("board", shares)
    install_jetpack(machine)
    machine.write(CONFIG, EDITED, "0640")
    machine.write(f"/etc/docker/{OURS}", SETTINGS, "0600")
    machine.sh(f"ln -s {OURS} {DAEMON}")
    machine.write("/etc/containers/containers.conf", CONTAINERS_CONF)
    machine.sh("systemctl start containerd docker")
    for load in ("ctr --namespace k8s.io images import", "docker load --input", "podman load --input"):
        machine.sh(f"{load} {IMAGES}/images.tar")
    return Site.of(machine, tmp_path_factory.mktemp("board"), components)


@pytest.fixture(scope="module")
def configured(board: Site) -> Configured:
    def now() -> tuple[str, str]:
        return state(board.machine), started(board.machine, *ENGINES)

    before = now()
    predicted = board.changed("--check", "--diff")
    checked = now()
    return Configured(board, before, checked, predicted, board.done().stdout)


def test_check_mode_predicts_changes_and_makes_none(configured: Configured) -> None:
    assert configured.predicted > 0
    assert configured.checked == configured.before


def test_missing_settings_are_added_and_every_other_byte_is_kept(configured: Configured) -> None:
    machine = configured.machine
    assert machine.read(CONFIG) == EDITED.replace("version = 2\n", f'version = 2\nimports = ["{DROP_IN}"]\n')
    assert machine.sh(f"stat -L -c %a {CONFIG} {DROP_IN} {DAEMON}; readlink {DAEMON}").split() == [
        "640",
        "640",
        "600",
        OURS,
    ]
    read = machine.sh("containerd config dump")
    assert f'BinaryName = "{RUNTIME}"' in read
    assert f'sandbox_image = "{PAUSE}"' in read
    settings = json.loads(machine.read(DAEMON))
    assert settings["max-concurrent-uploads"] == 9007199254740993
    assert settings["runtimes"]["nvidia"]["path"] == RUNTIME


def test_the_gpu_is_described_by_files_of_jetpack_and_missing_ones_are_reported(configured: Configured) -> None:
    machine = configured.machine
    assert "CDI skips missing files" in configured.output
    described = machine.read(SPECIFICATION)
    assert [device["name"] for device in yaml.safe_load(described)["devices"]] == ["0", "all"]
    machine.sh(f"rm {SPECIFICATION}; systemctl start hwaccel-gpu-cdi.service")
    assert yaml.safe_load(machine.read(SPECIFICATION)) == yaml.safe_load(described)


def in_pod(machine: Machine, gpu: bool, script: str) -> str:
    options = (
        ("-runtime", "nvidia", "-env", "NVIDIA_VISIBLE_DEVICES=all") if gpu else ("-env", "NVIDIA_VISIBLE_DEVICES=all")
    )
    return machine.execute(f"{PROGRAMS}/pod", *options, BUSYBOX, "sh", "-c", script).stdout


def in_docker(machine: Machine, gpu: bool, script: str) -> str:
    options = ("--runtime", "nvidia") if gpu else ()
    variable = ("--env", "NVIDIA_VISIBLE_DEVICES=all")
    return machine.execute(
        "docker", "run", "--rm", "--network", "none", *options, *variable, BUSYBOX, "sh", "-c", script
    ).stdout


def in_podman(machine: Machine, gpu: bool, script: str) -> str:
    options = ("--device", "nvidia.com/gpu=0") if gpu else ()
    return machine.execute("podman", "run", "--rm", "--network", "none", *options, BUSYBOX, "sh", "-c", script).stdout


@pytest.mark.parametrize("run", [in_pod, in_docker, in_podman], ids=["pod", "docker", "podman"])
def test_a_container_that_requests_the_gpu_can_use_it_and_no_other_can(
    configured: Configured, run: c.Callable[[Machine, bool, str], str]
) -> None:
    script = f"{OPEN_DEVICES}; cat {JETSON_LIBRARY} 2>/dev/null || echo without"
    assert run(configured.machine, True, script) == permitted(GPU) + "stand-in for libcuda.so\n"
    assert run(configured.machine, False, script) == "without\n"


def test_podman_refuses_a_gpu_that_is_not_described(configured: Configured) -> None:
    with pytest.raises(RuntimeError, match=r"unresolvable CDI devices nvidia\.com/gpu=7"):
        configured.machine.execute(
            "podman", "run", "--rm", "--network", "none", "--device", "nvidia.com/gpu=7", BUSYBOX, "true"
        )


def test_a_second_run_changes_nothing(configured: Configured) -> None:
    machine = configured.machine
    done = state(machine), times(machine), started(machine, *ENGINES)
    assert configured.site.changed() == 0
    assert (state(machine), times(machine), started(machine, *ENGINES)) == done


def test_invalid_configurations_are_refused_before_anything_is_changed(configured: Configured) -> None:
    machine = configured.machine
    with overwritten(machine, CONFIG, "[[[\n"), overwritten(machine, DAEMON, "{"):
        before = state(machine), started(machine, *ENGINES)
        message = configured.site.refused()
        after = state(machine), started(machine, *ENGINES)
    machine.sh(f"systemctl restart {' '.join(ENGINES)}")
    assert after == before
    assert "containerd does not accept its present configuration" in message
    assert "daemon.json): it is not JSON" in message


def test_teardown_restores_the_machine(configured: Configured) -> None:
    """The last test, because the others need the configured machine."""
    machine = configured.machine
    assert configured.site.changed(node_runtime_entry="teardown") > 0
    assert state(machine) == configured.before[0]
    assert machine.sh(f"readlink {DAEMON}").strip() == OURS
    assert machine.sh("dpkg -l | grep -c nvidia || :").strip() == "0"
    assert "nvidia" not in machine.sh("docker info --format '{{json .Runtimes}}'")
    assert in_pod(machine, False, "echo served") == "served\n"
