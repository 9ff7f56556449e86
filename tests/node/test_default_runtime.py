# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An existing default runtime before, beside and after our toolkit, on machines with a host driver, with Debian's containerd 1.6 and containerd 2.

The daemons, NVIDIA's installer and runtime and the host's nvidia-ctk are real. The toolkit's container is started without the kubelet
(rig/toolkit_container.py), because the rig's kubelet does not support containerd 1.6. Pods report which devices they can open.
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
from ansible_collections.hwaccel.gpu.tests.node.rig.host_driver import OPEN_DEVICES, install_driver, permitted
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX, PAUSE
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import IMAGES, PROGRAMS, use_containerd_2
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import CONFIG

GPUS = permitted("/dev/nvidia0", "/dev/nvidia1")
#: Another runtime than NVIDIA's, and the file that it creates when it is called.
OTHER, CALLED = "/usr/local/bin/other-runtime", "/run/other-was-called"
#: Programs of the toolkit on the host.
TOOLKIT = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook")
OF_HOST = "/usr/bin/nvidia-container-runtime"
#: Writes a drop-in with the same name as that of our toolkit. Until version 1.18 it changed the main file.
CONFIGURE = "nvidia-ctk runtime configure --runtime containerd --set-as-default"


@dataclasses.dataclass(frozen=True)
class Engine:
    """A containerd. form: version of its configuration. plugin: the plugin with the section of runtimes. more: settings in that section."""

    version: tuple[int, int]
    form: int
    plugin: str
    more: str = ""

    def configuration(self) -> str:
        """Without restrict_oom_score_adj, no pod would start in a container that represents a machine."""
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


class Default(t.NamedTuple):
    """The default runtime: name and program in containerd's configuration, and for a pod without RuntimeClass its devices and whether it ran OTHER."""

    name: str
    program: str
    devices: str
    called_other: bool


@dataclasses.dataclass(frozen=True)
class Host:
    """A machine with two GPUs, and with driver and toolkit on the host."""

    machine: Machine
    engine: Engine

    def configure(self, more: str = "", script: str = ":") -> Default:
        """Restores the initial configuration of containerd, appends `more` to its file and runs `script`; returns the resulting default."""
        self.machine.write(CONFIG, self.engine.configuration() + more)
        self.machine.sh(f"rm -f /etc/containerd/conf.d/*; {script}; {toolkit_container.RESTART}")
        return self.default()

    def default(self) -> Default:
        script = f"rm -f {CALLED}; {pod_command()}; echo ---; [ ! -e {CALLED} ] || echo called; echo ---; containerd config dump 2>/dev/null"
        devices, called, read = self.machine.sh(script).split("---\n")
        settings = tomllib.loads(read)["plugins"][self.engine.plugin]["containerd"]
        name = settings["default_runtime_name"]
        return Default(name, settings["runtimes"][name]["options"]["BinaryName"], devices, bool(called))

    def pod(self, handler: str) -> str:
        """Devices of a pod with this handler."""
        return self.machine.sh(pod_command("-runtime", handler))


def pod_command(*options: str) -> str:
    return shlex.join(
        (f"{PROGRAMS}/pod", *options, "-env", "NVIDIA_VISIBLE_DEVICES=all", BUSYBOX, "sh", "-c", OPEN_DEVICES)
    )


@pytest.fixture(scope="module")
def image_file(components: programs.Components, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An archive with the images of these tests only, because two machines import it."""
    busybox = shutil.which("busybox")
    assert busybox, "the rig requires busybox"
    (node, layers), (ours, their_layers) = (
        images.node_images(components, pathlib.Path(busybox)),
        nvidia_images.stand_ins(components, {}),
    )
    names = (PAUSE, BUSYBOX, toolkit_container.image())
    target = tmp_path_factory.mktemp("images") / "images.tar"
    archive.write(target, [one for one in node + ours if one.name in names], layers | their_layers, architecture())
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
        use_containerd_2(machine)
    # NVIDIA's installer wraps its runtime in a program that looks for the driver's module in /proc/modules.
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
def test_a_toolkit_on_the_host_remains_the_default_beside_ours(host: Host, dropped_in: bool) -> None:
    engine = host.engine
    before = (
        host.configure(script=CONFIGURE)
        if dropped_in
        else host.configure(engine.default("nvidia") + engine.runtime("nvidia", OF_HOST))
    )
    assert before == ("nvidia", OF_HOST, GPUS, False)
    with toolkit_container.running(host.machine):
        assert host.default() == before
        assert host.pod("nvidia") == GPUS
    assert host.default() == before


def test_a_default_runtime_with_another_name_remains_the_default_beside_ours(host: Host) -> None:
    engine = host.engine
    before = host.configure(engine.default("other") + engine.runtime("other", OTHER))
    assert before == ("other", OTHER, "", True)
    with toolkit_container.running(host.machine):
        assert host.default() == before
        assert host.pod("nvidia") == GPUS
    assert host.default() == before
    with pytest.raises(RuntimeError, match='no runtime for "nvidia" is configured'):
        host.pod("nvidia")
