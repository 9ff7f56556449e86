# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another's default runtime before, with and after our toolkit, on machines with a driver of their own, Debian's containerd 1.6 and containerd 2.

The daemons, NVIDIA's installer and runtime and the host's nvidia-ctk are as they are. The toolkit's container is started past the kubelet
(rig/toolkit_container.py): containerd 1.6 is older than what the rig's kubelet talks to. What a pod is given is told by opening the devices that it sees.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib
import shlex
import shutil
import tomllib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import architecture
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import version_of
from ansible_collections.hwaccel.gpu.tests.node.rig import archive, images, nvidia_images, toolkit_container
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.host_driver import LOOK, admitted, install_driver
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX, PAUSE
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IMAGES, PROGRAMS, take_containerd_2
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import CONFIG

GPUS = admitted("/dev/nvidia0", "/dev/nvidia1")
#: A runtime that is not NVIDIA's, and where it says that it was called.
OTHER, CALLED = "/usr/local/bin/other-runtime", "/run/other-was-called"
#: What the host's own toolkit is made of.
TOOLKIT = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook")
OF_HOST = "/usr/bin/nvidia-container-runtime"
#: Writes a drop-in, of the name that our toolkit's has too. Until 1.18 it wrote to the main file.
CONFIGURE = "nvidia-ctk runtime configure --runtime containerd --set-as-default"


@dataclasses.dataclass(frozen=True)
class Engine:
    """A containerd. form: version of its configuration. plugin: whose section names runtimes. more: settings in that section."""

    version: tuple[int, int]
    form: int
    plugin: str
    more: str = ""

    def configuration(self) -> str:
        """Without restrict_oom_score_adj no pod would start in a container that stands for a machine."""
        head = f'version = {self.form}\n[plugins."{self.plugin}"]\nrestrict_oom_score_adj = true\n{self.more}'
        return head + self.runtime("runc", "runc")

    def runtime(self, name: str, binary: str) -> str:
        section = f'[plugins."{self.plugin}".containerd.runtimes.{name}'
        return f'{section}]\nruntime_type = "io.containerd.runc.v2"\n{section}.options]\nBinaryName = "{binary}"\n'

    def default(self, name: str) -> str:
        return f'[plugins."{self.plugin}".containerd]\ndefault_runtime_name = "{name}"\n'


ENGINES = (
    Engine((1, 6), 2, "io.containerd.grpc.v1.cri", f'sandbox_image = "{PAUSE}"\n'),
    Engine((2, 4), 3, "io.containerd.cri.v1.runtime"),
)


class Seen(t.NamedTuple):
    """What is the default: by name and by the program behind it as containerd reads its files, and by what came of a pod without RuntimeClass."""

    name: str
    program: str
    devices: str
    called_other: bool


@dataclasses.dataclass(frozen=True)
class Host:
    """A machine with two GPUs, a driver and a toolkit of its own."""

    machine: Machine
    engine: Engine

    def default_is(self, more: str = "", script: str = ":") -> Seen:
        """Sets containerd up anew, with `more` in its file and by `script`."""
        self.machine.write(CONFIG, self.engine.configuration() + more)
        self.machine.sh(f"rm -f /etc/containerd/conf.d/*; {script}; {toolkit_container.RESTART}")
        return self.seen()

    def seen(self) -> Seen:
        script = f"rm -f {CALLED}; {pod_command()}; echo ---; [ ! -e {CALLED} ] || echo called; echo ---; containerd config dump 2>/dev/null"
        devices, called, read = self.machine.sh(script).split("---\n")
        settings = tomllib.loads(read)["plugins"][self.engine.plugin]["containerd"]
        name = settings["default_runtime_name"]
        return Seen(name, settings["runtimes"][name]["options"]["BinaryName"], devices, bool(called))

    def pod(self, handler: str) -> str:
        """The devices that a pod is given which names that handler."""
        return self.machine.sh(pod_command("-runtime", handler))


def pod_command(*chosen: str) -> str:
    return shlex.join((f"{PROGRAMS}/pod", *chosen, "-env", "NVIDIA_VISIBLE_DEVICES=all", BUSYBOX, "sh", "-c", LOOK))


@pytest.fixture(scope="module")
def image_file(components: programs.Components, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What is run here, and no more: two machines import it."""
    busybox = shutil.which("busybox")
    assert busybox, "it is among what the rig needs"
    (node, layers), (ours, their_layers) = (
        images.node_images(components, pathlib.Path(busybox)),
        nvidia_images.stand_ins(components, {}),
    )
    wanted = (PAUSE, BUSYBOX, toolkit_container.image())
    target = tmp_path_factory.mktemp("images") / "images.tar"
    archive.write(target, [one for one in node + ours if one.name in wanted], layers | their_layers, architecture())
    return target


@pytest.fixture(scope="module", params=ENGINES, ids=["1.6", "2.4"])
def host(
    request: pytest.FixtureRequest, rig: Rig, components: programs.Components, image_file: pathlib.Path
) -> c.Iterator[Host]:
    engine: Engine = request.param
    machine = rig.machine(
        f"default-{engine.version[0]}", {str(components.folder): PROGRAMS, str(image_file.parent): IMAGES}
    )
    if engine.form == 3:
        take_containerd_2(machine)
    # The program that NVIDIA's installer puts before its runtime asks for the driver's module in /proc/modules.
    machine.write("/rig/machine.json", "{}")
    machine.sh(f"{PROGRAMS}/stand-in machine /rig/machine.json; ln -s {PROGRAMS}/stand-in /usr/local/bin/cat")
    install_driver(machine, 2)
    machine.sh(
        "echo 0 >/sys/module/nvidia/refcnt; "
        + "; ".join(f"ln -s {PROGRAMS}/{name} /usr/bin/{name}" for name in TOOLKIT)
    )
    machine.write(OTHER, f'#!/bin/sh\ntouch {CALLED}\nexec runc "$@"\n', "0755")
    machine.write(CONFIG, engine.configuration())
    machine.sh(
        f"systemctl daemon-reload; systemctl restart containerd; ctr --namespace k8s.io images import {IMAGES}/images.tar"
    )
    toolkit_container.install(machine)
    assert version_of(machine.sh("containerd --version"))[:2] == engine.version
    yield Host(machine, engine)
    rig.remove(machine)


@pytest.mark.parametrize("dropped_in", [True, False], ids=["drop-in", "main file"])
def test_a_toolkit_of_the_host_stays_the_default_beside_ours(host: Host, dropped_in: bool) -> None:
    engine = host.engine
    before = (
        host.default_is(script=CONFIGURE)
        if dropped_in
        else host.default_is(engine.default("nvidia") + engine.runtime("nvidia", OF_HOST))
    )
    assert before == ("nvidia", OF_HOST, GPUS, False)
    with toolkit_container.running(host.machine):
        assert host.seen() == before
        assert host.pod("nvidia") == GPUS
    assert host.seen() == before


def test_a_default_of_another_name_stays_so_beside_our_runtime(host: Host) -> None:
    engine = host.engine
    before = host.default_is(engine.default("other") + engine.runtime("other", OTHER))
    assert before == ("other", OTHER, "", True)
    with toolkit_container.running(host.machine):
        assert host.seen() == before
        assert host.pod("nvidia") == GPUS
    assert host.seen() == before
    with pytest.raises(RuntimeError, match='no runtime for "nvidia" is configured'):
        host.pod("nvidia")
