# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of the simulated device plugin, as the real one reads them (k8s-device-plugin v0.20.0, api/config/v1)."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import (
    DEVICE_PLUGIN,
    PLUGIN,
    changed,
    container,
    deploy,
    host,
    log,
    mount,
)
from fleet_agent.kubelet import process

GPU = "nvidia.com/gpu"


def started(world, node, config, **values):
    """The plugin's container, behind a driver, with this configuration file and more variables."""
    world.store.data[("configmap", "ns", "plugin")] = {"config.yaml": json.dumps(config)}

    def configure(spec):
        more = [{"name": "config", "configMap": {"name": "plugin"}}, host("cdi", "/var/run/cdi")]
        spec["volumes"] = [*spec["volumes"], *more]
        spec["containers"][0]["volumeMounts"] += [mount("config", "/config"), mount("cdi", "/var/run/cdi")]
        spec["containers"][0]["env"] += [
            {"name": name, "value": value} for name, value in {"CONFIG_FILE": "/config/config.yaml", **values}.items()
        ]

    *_others, plugin = deploy(world, node, plugin=changed(DEVICE_PLUGIN, configure))
    return plugin.main[0]


@pytest.mark.parametrize(
    ("config", "offered", "warnings"),
    [
        ({"version": "v1"}, {GPU: 8}, []),
        ({}, {GPU: 8}, []),
        (
            {"resources": {"gpus": [{"pattern": "*", "name": "big"}]}},
            {GPU: 8},
            ["Customizing the 'resources' field is not yet supported"],
        ),
        (
            {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2, "rename": "half"}]}}},
            {GPU: 16},
            ["Setting the 'rename' field in sharing.timeSlicing.resources is not yet supported"],
        ),
        (
            {
                "sharing": {
                    "timeSlicing": {
                        "renameByDefault": True,
                        "resources": [{"name": GPU, "replicas": 2, "rename": GPU + ".shared", "devices": 1}],
                    }
                }
            },
            {GPU + ".shared": 16},
            ["Customizing the 'devices' field in sharing.timeSlicing.resources is not yet supported"],
        ),
        (
            {
                "sharing": {
                    "timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]},
                    "mps": {"resources": [{"name": GPU, "replicas": 3}]},
                }
            },
            {GPU: 24},
            [],
        ),
    ],
    ids=["plain", "without-version", "resources", "rename", "devices", "mps-before-time-slicing"],
)
def test_what_a_configuration_offers(world, config, offered, warnings):
    node = world.node()
    plugin = started(world, node, config, MPS_ROOT="/run/nvidia/mps")
    world.until(lambda: node.devices.allocatable == offered)
    output = log(plugin)
    assert [line for line in output.splitlines() if "Ignoring..." in line] == [
        line for line in output.splitlines() if any(warning in line for warning in warnings)
    ]
    assert all(warning in output for warning in warnings)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"version": "v2"}, "unknown version: v2"),
        ({"sharing": {"timeSlicing": {"resources": []}}}, "no resources specified"),
        ({"sharing": {"mps": {}}}, "no resources specified"),
        ({"sharing": {"timeSlicing": {"resources": [{"replicas": 2}]}}}, "no resource name specified"),
        ({"sharing": {"timeSlicing": {"resources": [{"name": GPU}]}}}, "no replicas specified"),
        (
            {"sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 1}]}}},
            "number of replicas must be >= 2",
        ),
        ({"flags": {"migStrategy": "mixd"}}, "unknown MIG strategy: mixd"),
        ({"flags": {"deviceDiscoveryStrategy": "all"}}, "invalid --device-discovery-strategy option all"),
        (
            {"flags": {"plugin": {"deviceListStrategy": ["envvar", "cdi"]}}},
            "invalid --device-list-strategy option: invalid strategy: cdi",
        ),
        ({"flags": {"plugin": {"deviceIDStrategy": "number"}}}, "invalid --device-id-strategy option: number"),
        (
            {"flags": {"plugin": {"sharedDevicesAllocationPolicy": "any"}}},
            "invalid --shared-devices-allocation-policy option: any",
        ),
    ],
)
def test_a_configuration_that_the_plugin_refuses(world, config, message):
    node = world.node()
    plugin = started(world, node, config)
    world.until(lambda: plugin.restarts >= 1)
    assert message in log(plugin)
    assert node.devices.allocatable == {}


def test_a_container_has_the_device_files_of_its_gpus_and_numbers_them_from_zero(world):
    """NVML enumerates what the process can open; device files keep the minor numbers of the machine."""
    node = world.node()
    started(world, node, {"version": "v1"})
    world.until(lambda: node.devices.allocatable == {GPU: 8})
    script = "nvidia-smi -L; nvidia-smi --query-gpu=index,uuid --format=csv,noheader; ls /dev/nvidia*"
    jobs = []
    for count in (3, 2):
        job = {
            **container("c", "example.com/job:1", ["sh", "-c", script], privileged=False),
            "resources": {"limits": {GPU: str(count)}},
        }
        jobs.append(world.pod(node, {"runtimeClassName": "nvidia", "restartPolicy": "Never", "containers": [job]}))
    world.until(lambda: all("terminated" in pod.main[0].state for pod in jobs))
    _began, *second = [line.partition(" ")[2] for line in log(jobs[1].main[0]).splitlines()]
    assert [line.partition(":")[0] for line in second[:2]] == ["GPU 0", "GPU 1"]
    assert [line.partition(",")[0] for line in second[2:4]] == ["0", "1"]
    assert second[4:] == [
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
        "/dev/nvidia3",
        "/dev/nvidia4",
        "/dev/nvidiactl",
    ]


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("/usr/local/nvidia/toolkit/nvidia-cdi-hook", ""),
        ("/usr/local/nvidia/toolkit/nvidia-cdi-hok", "fork/exec /usr/local/nvidia/toolkit/nvidia-cdi-hok"),
        ("", "fork/exec /usr/bin/nvidia-ctk: no such file or directory"),
    ],
)
def test_the_hook_of_the_plugins_cdi_specification_is_on_the_host(world, hook, message):
    node = world.node()
    config = {"flags": {"plugin": {"deviceListStrategy": ["cdi-cri"]}}}
    started(world, node, config, **({"NVIDIA_CDI_HOOK_PATH": hook} if hook else {}))
    world.until(lambda: node.devices.allocatable == {GPU: 8})
    job = container("c", "busybox:1.36", ["sh", "-c", "sleep 9999"], privileged=False)
    pod = world.pod(node, {"containers": [{**job, "resources": {"limits": {GPU: "1"}}}]})
    world.until(lambda: pod.main[0].restarts if message else pod.main[0].ready)
    assert not message or message in pod.main[0].last_state["terminated"]["message"]


class Nodes:
    """In place of an informer: it has the labels of the node at once, and later ones by `labelled`."""

    def __init__(self, _api, path, on_event, _identity, query=None, **_options):
        assert (path, query) == ("/api/v1/nodes", {"fieldSelector": "metadata.name=n0"})
        self.on_event = on_event
        Nodes.last = self

    def start(self):
        self.labelled({})

    def stop(self):
        pass

    def labelled(self, labels):
        self.on_event("MODIFIED", {"metadata": {"name": "n0", "labels": labels}})


MANAGED = {"NODE_NAME": "n0", "CONFIG_FILE_SRCDIR": "/available", "CONFIG_FILE_DST": "/config/config.yaml"}


def managing(world, monkeypatch, files, **values):
    monkeypatch.setattr(process, "Informer", Nodes)
    world.store.data[("configmap", "ns", "plugin")] = files
    mounts = [mount("available", "/available"), mount("config", "/config")]
    made = container("m", PLUGIN, ["config-manager"], *mounts, privileged=False, **MANAGED | values)
    volumes = [{"name": "available", "configMap": {"name": "plugin"}}, {"name": "config", "emptyDir": {}}]
    return world.pod(world.node(), {"restartPolicy": "Never", "containers": [made], "volumes": volumes}).main[0]


@pytest.mark.parametrize(
    ("files", "values", "chosen"),
    [
        ({"a": "version: v1"}, {"DEFAULT_CONFIG": "a"}, "config: a"),
        ({"a": "", "default": ""}, {"FALLBACK_STRATEGIES": "named,single,empty"}, "config: default"),
        ({"a": ""}, {"FALLBACK_STRATEGIES": "named,single"}, "config: a"),
        ({"a": "", "b": ""}, {"FALLBACK_STRATEGIES": "single,empty"}, "empty config"),
    ],
)
def test_the_config_manager_selects_a_configuration_for_an_unlabelled_node(world, monkeypatch, files, values, chosen):
    manager = managing(world, monkeypatch, files, **values)
    world.until(lambda: f"Successfully updated to {chosen}" in log(manager))
    assert "running" in manager.state


def test_the_config_manager_follows_the_label(world, monkeypatch):
    manager = managing(world, monkeypatch, {"a": "", "b": ""}, DEFAULT_CONFIG="a", NODE_LABEL="example.com/c")
    world.until(lambda: "Successfully updated to config: a" in log(manager))
    Nodes.last.labelled({"example.com/c": "b"})
    world.until(lambda: "Successfully updated to config: b" in log(manager))
    Nodes.last.labelled({"example.com/c": "c"})
    world.until(lambda: "terminated" in manager.state)
    assert "specified config c does not exist" in log(manager)


@pytest.mark.parametrize(
    ("files", "values", "message"),
    [
        ({}, {}, "no configuration files available"),
        ({"a": ""}, {}, "no config was set, no default was provided, and all fallbacks failed"),
        ({"a": ""}, {"FALLBACK_STRATEGIES": "nmaed"}, "unknown fallback strategy: nmaed"),
        ({"a": ""}, {"DEFAULT_CONFIG": "b"}, "specified config  does not exist"),
        ({"a": ""}, {"CONFIG_FILE_DST": ""}, "invalid <config-file-dst>: must not be empty string"),
        ({"a": ""}, {"CONFIG_FILE_SRCDIR": "/avail"}, "open /avail: no such file or directory"),
    ],
)
def test_what_the_config_manager_does_not_accept(world, monkeypatch, files, values, message):
    manager = managing(world, monkeypatch, files, **values)
    world.until(lambda: "terminated" in manager.state)
    assert message in log(manager)
    assert manager.state["terminated"]["exitCode"] == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "using MPS requires --mps-root to be specified"),
        (
            {"MPS_ROOT": "/run/nvidia/mps", "MIG_STRATEGY": "mixed"},
            "using --mig-strategy=mixed is not supported with MPS",
        ),
    ],
)
def test_mps_needs_its_root(world, values, message):
    config = {"sharing": {"mps": {"resources": [{"name": GPU, "replicas": 2}]}}}
    plugin = started(world, world.node(), config, **values)
    world.until(lambda: plugin.restarts >= 1)
    assert message in log(plugin)
