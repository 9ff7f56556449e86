# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the container toolkit on the host: containerd knows a runtime only from what it really reads."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, host, log, mount

PATHS = {"config": "/etc/containerd", "drop-in": "/etc/containerd/conf.d", "toolkit": "/usr/local/nvidia"}
SETTINGS = {
    "RUNTIME": "containerd",
    "CONTAINERD_RUNTIME_CLASS": "nvidia",
    "RUNTIME_CONFIG": "/runtime/config/config.toml",
    "RUNTIME_DROP_IN_CONFIG": "/runtime/drop-in/99-nvidia.toml",
    "RUNTIME_DROP_IN_CONFIG_HOST_PATH": "/etc/containerd/conf.d/99-nvidia.toml",
    "RUNTIME_SOCKET": "/runtime/socket/containerd.sock",
    "ROOT": "/usr/local/nvidia",
}


def toolkit(world, node, paths=None, **settings):
    mounts = [
        mount("config", "/runtime/config"),
        mount("drop-in", "/runtime/drop-in"),
        mount("toolkit", "/usr/local/nvidia"),
        mount("socket", "/runtime/socket"),
    ]
    volumes = [host(name, path) for name, path in {**PATHS, "socket": "/run/containerd", **(paths or {})}.items()]
    image = "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0"
    made = container("c", image, ["nvidia-ctk-installer"], *mounts, **SETTINGS | settings)
    pod = world.pod(node, {"containers": [made], "volumes": volumes})
    world.until(lambda: "Waiting for signal" in log(pod.main[0]))
    return pod


def user(world, node):
    return world.pod(
        node, {"runtimeClassName": "nvidia", "containers": [container("c", "busybox:1.36", ["sleep", "infinity"])]}
    )


def test_the_runtime_is_read_from_the_imported_file_and_goes_with_the_toolkit(world):
    node = world.node()
    pod = toolkit(world, node)
    assert 'imports = ["/etc/containerd/conf.d/*.toml"]' in node.host.read("/etc/containerd/config.toml")
    assert node.host.handlers["nvidia"] == "/usr/local/nvidia/toolkit/nvidia-container-runtime"
    started = user(world, node)
    world.until(lambda: started.main[0].ready)
    world.delete(pod)
    world.until(lambda: "nvidia" not in node.host.handlers)
    assert "nvidia" not in node.host.read("/etc/containerd/conf.d/99-nvidia.toml")
    toolkit(world, node)
    assert node.host.read("/etc/containerd/config.toml").count("imports") == 1


@pytest.mark.parametrize(
    ("paths", "settings", "message"),
    [
        ({"config": "/etc/containerd2"}, {}, 'no runtime for "nvidia" is configured'),
        ({"drop-in": "/etc/containerd/conf.e"}, {}, 'no runtime for "nvidia" is configured'),
        (
            {},
            {"RUNTIME_DROP_IN_CONFIG_HOST_PATH": "/etc/containerd/conf.e/99-nvidia.toml"},
            'no runtime for "nvidia" is configured',
        ),
        ({"toolkit": "/opt/nvidia"}, {}, "fork/exec /usr/local/nvidia/toolkit/nvidia-container-runtime"),
    ],
    ids=["config", "drop-in", "import", "toolkit"],
)
def test_a_file_in_another_place_configures_nothing(world, paths, settings, message):
    node = world.node()
    toolkit(world, node, paths, **settings)
    pod = user(world, node)
    world.until(lambda: any(message in text for _reason, text in world.warnings))
    assert not pod.sandbox_ready


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, 'root = "/run/nvidia/driver"'),
        ({"NVIDIA_DRIVER_ROOT": "/"}, 'root = "/"'),
        ({"NVIDIA_CONTAINER_RUNTIME_MODE": "cdi"}, 'mode = "cdi"'),
        ({"NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND": "a.b/c"}, 'default-kind = "a.b/c"'),
        ({"NVIDIA_CONTAINER_RUNTIME_MODES_CDI_ANNOTATION_PREFIXES": "a/,b/"}, 'annotation-prefixes = ["a/", "b/"]'),
    ],
)
def test_its_settings_are_those_of_the_runtime(world, settings, line):
    node = world.node()
    toolkit(world, node, **settings)
    text = node.host.read("/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml")
    assert line in text.splitlines()
    assert ("mode" in text.split("modes")[0]) == ("NVIDIA_CONTAINER_RUNTIME_MODE" in settings)


def test_unless_it_is_told_otherwise_it_becomes_the_default_runtime(world):
    node = world.node()
    toolkit(world, node)
    assert node.host.default_handler == "nvidia"
    other = world.node("n1")
    toolkit(world, other, CONTAINERD_SET_AS_DEFAULT="false")
    assert other.host.default_handler == ""


def test_without_a_drop_in_of_the_host_its_configuration_stays_in_the_container(world):
    """The default place is one in its own file system."""
    node = world.node()
    made = {name: value for name, value in SETTINGS.items() if name != "RUNTIME_DROP_IN_CONFIG"}
    pod = world.pod(
        node,
        {
            "containers": [
                container(
                    "c",
                    "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0",
                    ["nvidia-ctk-installer"],
                    mount("config", "/runtime/config"),
                    mount("socket", "/runtime/socket"),
                    **made,
                )
            ],
            "volumes": [host("config", "/etc/containerd"), host("socket", "/run/containerd")],
        },
    )
    world.until(lambda: "Waiting for signal" in log(pod.main[0]))
    assert "nvidia" not in node.host.handlers
