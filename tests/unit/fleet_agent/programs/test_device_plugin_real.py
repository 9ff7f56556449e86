# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated device plugin, GPU feature discovery and config-manager do what the real ones did in the same configuration.

tests/node/real_programs.yml has the configurations, real_programs.json what the real programs did (NVIDIA/k8s-device-plugin at the version in it), and
tests/node/rig/recorded.py how to record again. Compared are the exit status, warnings and errors word by word, labels, the resource and its devices,
and the variable with which a container gets one. Of other messages the simulated programs have fewer, but none that the real ones do not have.
"""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig import recorded
from ansible_collections.hwaccel.gpu.tests.node.rig.alone import DEFAULTS
from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import PLUGIN, container, host, log, mount
from fleet_agent.machine.hostfs import gpu_uuid
from fleet_agent.machine.nvml import LIBRARY

ROWS = recorded.rows()
REAL = recorded.recorded()
#: Changes between the recorded version and v0.20.0, which the simulated programs follow: what is replaced in recorded messages, and its source there.
SINCE = (
    # cmd/nvidia-device-plugin/main.go: GDRCopy, GPUDirect Storage and MOFED are off unless they are asked for.
    (re.compile(r'^E cdi\.go\] "Ignoring empty CDI specs".* class="(gdrcopy|gds|mofed)"$'), None),
    # cmd/nvidia-device-plugin/plugin-manager.go, resolveStrategy: an unknown platform counts as one with NVML.
    (
        re.compile(r"^E factory\.go\] Incompatible strategy detected auto$"),
        "W plugin-manager.go] Unsupported platform detected; defaulting to nvml\nE factory.go] Failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND.",
    ),
    (
        re.compile(r"did you configure the NVIDIA Container Toolkit\?$"),
        "did you set the docker default runtime to `nvidia`?",
    ),
    (re.compile(r"invalid device discovery strategy$"), "nvml init failed: ERROR_LIBRARY_NOT_FOUND"),
)
#: Of renameio, which writes labels to a file beside the one that gets them.
TEMPORARY = re.compile(r"open (.*/)\.(labels)NUMBER: ")
#: Configurations that no node of the sandbox has, and why.
NO_NODE = {
    ("plugin", "without a GPU"): "a driver that is loaded without a GPU",
    ("discovery", "without a GPU"): "a driver that is loaded without a GPU",
    ("discovery", "tegra without the library"): "a board whose CUDA library fails: alone, the real program has none",
    ("discovery", "version of two parts"): "a driver that no image has",
    ("discovery", "libraries of another version"): "libraries of another version than the module in a container",
    ("plugin", "libraries of another version"): "libraries of another version than the module in a container",
    ("config-manager", "no server"): "a file with the server's address: pods have a service account",
    **{row: "MIG devices" for row, case in ROWS.items() if case.get("mig")},
}
#: Ways to give a device to a container that the simulated kubelet does not follow, and why.
NO_VARIABLE = {
    ("plugin", "volume mounts"): "mounts in place of a variable",
    ("plugin", "list strategy in a file"): "mounts in place of a variable",
}
KLOG = re.compile(r"^[IWEF] \S+\.go\] ")
STARTED = re.compile(r'^I main\.go\] "Starting NVIDIA Device Plugin" version=')


def messages(text: str) -> list[str]:
    """Lines without their time, without the sandbox's own, and without the usage that follows wrong arguments."""
    found: list[str] = []
    usage = False
    for line in (line.partition(" ")[2] for line in text.splitlines()):
        usage = line.startswith("Incorrect Usage") or (usage and not KLOG.match(line))
        if line and not line.startswith("[sandbox]") and (not usage or line.startswith("Incorrect Usage")):
            found.append(line)
    return found


def expected(found: list[str]) -> list[str]:
    """Recorded messages as the version has them that the simulated programs follow."""
    lines = []
    unknown = any("Incompatible strategy" in line for line in found)
    for line in found:
        if unknown and "Waiting indefinitely" in line:
            lines.append("W factory.go] nvml init failed: ERROR_LIBRARY_NOT_FOUND")
        new: str | None = TEMPORARY.sub(r"open \1\2: ", line)
        for pattern, other in SINCE:
            if new is not None and pattern.search(new):
                new = None if other is None else pattern.sub(lambda _match, other=other: other, new)
        lines += new.splitlines() if new else []
    return lines


def severe(lines: list[str]) -> list[str]:
    return [line for line in lines if line[:2] in ("W ", "E ", "F ") or line.startswith("Incorrect")]


def machine(world, case):
    """A node with the driver of a configuration."""
    gpu = {"product": case["product"].replace(" ", "-"), "count": case["count"], "memory_mib": case["memory_mib"]}
    if case["tegra"]:
        gpu = {"product": "Orin-AGX", "count": 1, "memory_mib": 32768}
    node = world.node(gpu=gpu | {"mig_capable": case["mig_capable"]})
    if "module" not in case["without"]:
        node.host.modules["nvidia"] = case["driver"]
    if "library" not in case["without"]:
        node.host.files["/run/nvidia/driver" + LIBRARY] = ""
    return node


def spec(world, case):
    """The program in a pod, with what a configuration gives it."""
    volumes = [
        host("dp", "/var/lib/kubelet/device-plugins", ""),
        host("drv", "/run/nvidia/driver"),
        host("libraries", "/run/nvidia/driver/usr/lib/x86_64-linux-gnu"),
        host("cdi", "/var/run/cdi"),
        {"name": "tmp", "emptyDir": {}},
    ]
    mounts = [
        mount("dp", "/var/lib/kubelet/device-plugins"),
        mount("drv", "/driver-root"),
        mount("libraries", "/usr/lib/x86_64-linux-gnu"),
        mount("cdi", "/var/run/cdi"),
        mount("tmp", "/tmp"),
    ]
    if "config" in case:
        config = case["config"]
        text = config if isinstance(config, str) else json.dumps(config)
        world.store.data[("configmap", "ns", "config")] = {"config.yaml": text}
        volumes.append({"name": "config", "configMap": {"name": "config"}})
        mounts.append(mount("config", "/config"))
    command = [case["program"], *case["arguments"]]
    return {
        "restartPolicy": "Never",
        "volumes": volumes,
        "containers": [container("main", PLUGIN, command, *mounts, **case["environment"])],
    }


def observed(world, case):
    node = machine(world, case)
    main = world.pod(node, spec(world, case)).main[0]
    quiet = ("Registered device plugin", "Waiting indefinitely")
    world.until(lambda: "terminated" in main.state or any(text in log(main) for text in quiet), 20)
    status = main.state["terminated"]["exitCode"] if "terminated" in main.state else None
    found = {"status": status, "messages": messages(log(main))}
    for resource, endpoint in node.devices.endpoints.items():
        devices = {name: "Healthy" if healthy else "Unhealthy" for name, healthy in endpoint.devices.items()}
        # The real plugin was asked for one of the second GPU, whose name comes first.
        wanted = [name for name in devices if name.startswith("gpu#1")] or list(devices)
        variable = node.devices.environment({resource: wanted[:1]}).get("NVIDIA_VISIBLE_DEVICES", "")
        found |= {
            "variable": variable.replace(gpu_uuid(node.name, 1), "gpu#1"),
            "resource": resource,
            "devices": {name.replace("tegra#0", "tegra"): health for name, health in devices.items()},
        }
    if main.view.is_file(recorded.LABELS):
        found["labels"] = dict(line.split("=", 1) for line in main.view.read(recorded.LABELS).splitlines())
    return found


def parameters():
    for row in ROWS:
        if row not in NO_NODE:
            yield pytest.param(row, id=" ".join(row))


@pytest.mark.parametrize("row", list(parameters()))
def test_the_simulated_program_does_what_the_real_one_did(world, row):
    kind, name = row
    real, case = REAL[kind][name], DEFAULTS | ROWS[row]
    found = observed(world, case)
    lines = expected(real["messages"])
    assert (found["status"], severe(found["messages"])) == (real["status"], severe(lines))
    invented = [line for line in found["messages"] if line not in lines and not STARTED.match(line)]
    assert invented == []
    assert found.get("resource") == real.get("resource")
    assert found.get("devices") == real.get("devices")
    if row not in NO_VARIABLE:
        variables = real.get("allocated", {}).get("envs", {})
        assert found.get("variable", "") == variables.get("NVIDIA_VISIBLE_DEVICES", "")
    labels = {key: value for key, value in found.get("labels", {}).items() if key != "nvidia.com/gfd.timestamp"}
    assert labels == {key: value for key, value in real.get("labels", {}).items() if key != "nvidia.com/gfd.timestamp"}


def test_configurations_without_a_node_exist() -> None:
    assert [row for row in (*NO_NODE, *NO_VARIABLE) if row not in ROWS] == []


def test_enough_configurations_are_compared() -> None:
    assert len(ROWS) - len(NO_NODE) >= 60
