# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI devices and settings of NVIDIA's runtime, from files of the machine."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container
from fleet_agent.machine import cdi

#: As nvidia-ctk cdi generate writes it.
YAML = """---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits: {hooks: [{hookName: createContainer, path: /usr/bin/nvidia-ctk}]}
devices:
- name: "0"
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}, {path: /dev/nvidiactl}]}
- name: all
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}, {path: /dev/nvidia1}]}
"""


def test_devices_are_those_of_the_files_that_a_runtime_reads(world):
    host = world.node().host
    assert cdi.devices(host) == {}
    host.write("/etc/cdi/nvidia.yaml", YAML)
    host.write("/etc/cdi/damaged.yaml", "kind: [")
    host.write("/etc/cdi/notes.txt", YAML.replace("nvidia.com", "example.com"))
    host.write("/var/run/cdi/own.json", cdi.specification("example.com/gpu", {"a": [1, 2]}, "/hook"))
    assert cdi.devices(host) == {
        "nvidia.com/gpu=0": cdi.Device((0,), ("/usr/bin/nvidia-ctk",)),
        "nvidia.com/gpu=all": cdi.Device((0, 1), ("/usr/bin/nvidia-ctk",)),
        "example.com/gpu=a": cdi.Device((1, 2), ("/hook",)),
    }


def test_a_runtime_has_the_settings_beside_it_or_those_of_the_machine_or_the_defaults(world):
    host = world.node().host
    binary = "/opt/toolkit/nvidia-container-runtime"
    assert cdi.runtime(host, binary) == cdi.Runtime()
    host.write(cdi.SYSTEM_CONFIG, '[nvidia-container-runtime]\nmode = "legacy"\n')
    assert cdi.runtime(host, binary).mode == "legacy"
    text = '[nvidia-container-cli]\nroot = "/drv"\n[nvidia-container-runtime]\nmode = "cdi"\n[nvidia-container-runtime.modes.cdi]\ndefault-kind = "a/b"\n'
    host.write(cdi.config_file("/opt/toolkit"), text)
    assert cdi.runtime(host, binary) == cdi.Runtime("cdi", "a/b", "/drv")
    assert cdi.runtime(host, f"{binary}.legacy").mode == "legacy"


def started(world, node, mode, visible, handler="nvidia"):
    node.host.handlers["nvidia"] = "/usr/bin/nvidia-container-runtime"
    node.host.write("/usr/bin/nvidia-container-runtime", "")
    node.host.write(cdi.SYSTEM_CONFIG, f'[nvidia-container-runtime]\nmode = "{mode}"\n')
    made = container(
        "c", "example.com/job:1", ["sh", "-c", "sleep 9999"], privileged=False, NVIDIA_VISIBLE_DEVICES=visible
    )
    pod = world.pod(node, {"runtimeClassName": handler, "containers": [made]})
    world.until(lambda: pod.main[0].ready or pod.main[0].restarts or world.warnings)
    return pod.main[0]


@pytest.mark.parametrize(
    ("mode", "visible", "gpus", "message"),
    [
        ("auto", "all", 8, ""),
        ("auto", "1,2", 2, ""),
        ("auto", "void", 0, ""),
        ("auto", "nvidia.com/gpu=0", 1, ""),
        ("auto", "example.com/gpu=0", 0, "unresolvable CDI devices example.com/gpu=0"),
        ("jit-cdi", "all", 8, ""),
        ("legacy", "3", 1, ""),
        ("cdi", "all", 2, ""),
        ("cdi", "7", 0, "unresolvable CDI devices nvidia.com/gpu=7"),
        ("cdi", "runtime.nvidia.com/gpu=7", 1, ""),
        ("csi", "all", 0, 'invalid mode "csi"'),
    ],
)
def test_the_mode_decides_where_devices_come_from(world, mode, visible, gpus, message):
    node = world.node(host_driver="580.95.05")
    node.host.write("/usr/bin/nvidia-ctk", "")
    node.host.write("/etc/cdi/nvidia.yaml", YAML)
    main = started(world, node, mode, visible)
    assert len(main.gpus) == (0 if message else gpus)
    assert message in str(main.last_state) + str(main.state) + str(world.warnings)
    assert bool(message) != main.ready


@pytest.mark.parametrize(
    ("driver", "mode", "message"),
    [
        ("", "auto", "failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND"),
        ("", "legacy", "nvml error: driver not loaded"),
        ("", "cdi", 'failed to stat CDI host device "/dev/nvidiactl"'),
    ],
)
def test_without_a_driver_a_container_with_gpus_does_not_start(world, driver, mode, message):
    node = world.node(host_driver=driver)
    node.host.write("/usr/bin/nvidia-ctk", "")
    node.host.write("/etc/cdi/nvidia.yaml", YAML)
    main = started(world, node, mode, "all")
    assert message in str(main.state) + str(main.last_state)


@pytest.mark.parametrize(
    ("runtime", "line", "injects"),
    [
        ("containerd://2.0.0", "", True),
        ("containerd://1.7.20", "", False),
        ("containerd://1.7.20", "enable_cdi = true\n", True),
        ("cri-o://1.36.0", "", True),
    ],
)
def test_an_older_containerd_injects_devices_only_if_it_is_configured(world, runtime, line, injects):
    host = world.node(container_runtime=runtime).host
    if line:
        host.write("/etc/containerd/config.toml", line)
        host.reload_containerd()
    assert host.injects_cdi == injects
