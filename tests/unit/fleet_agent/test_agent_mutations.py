# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single mutations of the rendered manifests that had no effect on simulated nodes, and what they cause there as on real ones."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.stack import container, log
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack as roles

DRIVER_IMAGE = "nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04"
DRIVER, TOOLKIT, VALIDATOR = "nvidia-driver", "nvidia-container-toolkit", "nvidia-validator"
PLUGIN, EXPORTER, DISCOVERY = "nvidia-device-plugin", "nvidia-dcgm-exporter", "gpu-feature-discovery"
GPU = "nvidia.com/gpu"
COUNTERS = "DCGM_FI_DEV_GPU_TEMP, gauge, temperature\n"


def variable(name, value):
    """value: None takes the variable away."""

    def change(spec):
        env = spec["containers"][0]["env"]
        assert name in [one["name"] for one in env]
        kept = [one for one in env if one["name"] != name]
        spec["containers"][0]["env"] = kept + ([] if value is None else [{"name": name, "value": value}])

    return change


def host_path(name, path):
    def change(spec):
        volume = next(one for one in spec["volumes"] if one["name"] == name)
        volume["hostPath"] = {**volume["hostPath"], "path": path}

    return change


def arguments(*words):
    return lambda spec: spec["containers"][0].update(args=list(words))


class Chain:
    """One node with the pods of the roles, of which one has a mutation."""

    def __init__(self, world, mutated="", change=None, config="version: v1\n", kernel_type="open", **spec):
        self.world, self.node = world, world.node(**spec)
        found = [one for role in ("driver", "device_plugin", "monitoring") for one in roles.manifests(role)]
        maps = {one["metadata"]["name"]: one["data"] for one in found if one["kind"] == "ConfigMap"}
        maps |= {
            "nvidia-device-plugin-config": {"config.yaml": config},
            "nvidia-dcgm-exporter-counters": {"counters.csv": COUNTERS},
        }
        world.store.data |= {("configmap", "ns", name): data for name, data in maps.items()}
        self.specs = {
            one["metadata"]["name"]: copy.deepcopy(one["spec"]["template"]["spec"])
            for one in found
            if one["kind"] == "DaemonSet"
        }
        for spec_ in self.specs.values():
            spec_.pop("affinity", None)
        driver = self.specs[DRIVER]["containers"][0]
        driver["image"] = DRIVER_IMAGE
        if change:
            change(self.specs[mutated])
        self.pods = {
            name: world.pod(self.node, self.specs[name], labels={"app": name})
            for name in (DRIVER, TOOLKIT, VALIDATOR, PLUGIN)
        }

    def offered(self):
        return self.node.devices.allocatable.get(GPU, 0)

    def start(self, name):
        self.pods[name] = self.world.pod(self.node, self.specs[name])
        return self.pods[name].main[0]

    def job(self, gpus, **more):
        made = container("c", "example.com/job:1", ["sh", "-c", "sleep 9999"], privileged=False, **more)
        spec = {"runtimeClassName": "nvidia", "containers": [{**made, "resources": {"limits": {GPU: str(gpus)}}}]}
        return self.world.pod(self.node, spec)

    def text(self):
        """Everything that the node's containers and its kubelet have said."""
        status = [one for pod in self.pods.values() for one in (*pod.init, *pod.main)]
        said = [log(one) for one in status] + [str(one.state) + str(one.last_state) for one in status]
        return "\n".join([*said, *(message for _reason, message in self.world.warnings)])


def test_without_a_mutation_the_node_offers_its_gpus(world):
    chain = Chain(world)
    world.until(lambda: chain.offered() == 8, 30)
    exporter = chain.start(EXPORTER)
    world.until(lambda: exporter.ready)
    job = chain.job(2)
    world.until(lambda: job.main[0].ready)
    assert len(job.main[0].gpus) == 2
    assert chain.node.host.read("/var/run/cdi/management.nvidia.com-gpu.yaml")


@pytest.mark.parametrize(
    ("mutated", "change", "message"),
    [
        (
            TOOLKIT,
            variable("NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND", None),
            "unresolvable CDI devices nvidia.com/gpu=all",
        ),
        (
            TOOLKIT,
            variable("NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND", "managment.nvidia.com/gpu"),
            "unresolvable CDI devices managment.nvidia.com/gpu=all",
        ),
        (TOOLKIT, variable("NVIDIA_CONTAINER_RUNTIME_MODE", "cdii"), 'invalid mode "cdii"'),
        (TOOLKIT, variable("CDI_ENABLED", "false"), "unresolvable CDI devices management.nvidia.com/gpu=all"),
        (TOOLKIT, variable("CDI_ENABLED", None), "unresolvable CDI devices management.nvidia.com/gpu=all"),
        (TOOLKIT, variable("CDI_ENABLED", "yes"), 'could not parse "yes" as bool value'),
        (TOOLKIT, host_path("cdi-root", "/var/run/cdii"), "unresolvable CDI devices management.nvidia.com/gpu=all"),
        (
            TOOLKIT,
            host_path("toolkit-install-dir", "/opt/nvidia"),
            "fork/exec /usr/local/nvidia/toolkit/nvidia-container-runtime",
        ),
        (
            TOOLKIT,
            variable("TOOLKIT_PID_FILE", "/run/nvidia/toolkit.lock"),
            "invalid toolkit.pid path /run/nvidia/toolkit.lock",
        ),
        (
            TOOLKIT,
            variable("RUNTIME", None),
            "unable to restart docker: unable to dial: dial unix /runtime/sock-dir/containerd.sock",
        ),
        (
            TOOLKIT,
            variable("RUNTIME_SOCKET", "/runtime/containerd.sock"),
            "unable to dial: dial unix /runtime/containerd.sock",
        ),
        (DRIVER, variable("KERNEL_MODULE_TYPE", "opn"), "invalid value for the KERNEL_MODULE_TYPE variable: opn"),
        (
            DRIVER,
            host_path("firmware-search-path", "/sys/module/firmware_class/parameters"),
            "Failed to configure firmware search path",
        ),
        (
            PLUGIN,
            variable("DEVICE_LIST_STRATEGY", "cdi"),
            "invalid --device-list-strategy option: invalid strategy: cdi",
        ),
        (PLUGIN, variable("CONFIG_FILE", "/config/config.yml"), "open /config/config.yml: no such file or directory"),
    ],
)
def test_a_mutation_keeps_the_node_without_gpus_and_is_named(world, mutated, change, message):
    chain = Chain(world, mutated, change)
    world.until(lambda: message in chain.text(), 30)
    world.pass_time(120)
    assert chain.offered() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            # As if the host had its own toolkit.
            variable("NVIDIA_CDI_HOOK_PATH", "/usr/local/nvidia/toolkit/nvidia-cdi-hok"),
            "fork/exec /usr/bin/nvidia-cdi-hook",
        ),
        (variable("NVIDIA_CDI_HOOK_PATH", None), "fork/exec /usr/bin/nvidia-ctk"),
        (host_path("cdi-root", "/var/run/cdii"), "unresolvable CDI devices k8s.device-plugin.nvidia.com/gpu="),
    ],
)
def test_a_mutation_of_the_plugin_fails_the_containers_that_get_gpus(world, change, message):
    chain = Chain(world, PLUGIN, change)
    world.until(lambda: chain.offered() == 8, 30)
    job = chain.job(1)
    world.until(lambda: job.main[0].restarts, 30)
    assert message in job.main[0].last_state["terminated"]["message"]


@pytest.mark.parametrize(
    ("strategy", "gpus"),
    [("cdi-annotations,cdi-cri", 1), ("cdi-annotations", 1), ("cdi-cri", 8), ("envvar", 1)],
)
def test_without_annotations_the_runtime_follows_the_variable_of_the_image(world, strategy, gpus):
    """The images of CUDA ask for all GPUs, and the default kind of our toolkit has them all: only what the plugin says by another way is stronger."""
    chain = Chain(world, PLUGIN, variable("DEVICE_LIST_STRATEGY", strategy))
    world.until(lambda: chain.offered() == 8, 30)
    job = chain.job(1, **({} if strategy == "envvar" else {"NVIDIA_VISIBLE_DEVICES": "all"}))
    world.until(lambda: job.main[0].ready or job.main[0].restarts, 30)
    assert (len(job.main[0].gpus) if job.main[0].ready else job.main[0].last_state) == gpus or strategy == "envvar"
    if strategy == "envvar":
        # The runtime looks for the UUID among the devices of its default kind, where only "all" is.
        assert (
            "unresolvable CDI devices management.nvidia.com/gpu=GPU-" in job.main[0].last_state["terminated"]["message"]
        )


@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_are_what_the_node_offers(world, replicas):
    chain = Chain(world, config=f"sharing: {{timeSlicing: {{resources: [{{name: {GPU}, replicas: {replicas}}}]}}}}")
    world.until(lambda: chain.offered() == 8 * replicas, 30)


def test_the_drivers_search_path_for_firmware_is_the_folder_that_the_machine_sees(world):
    """Without the volume the open modules find no firmware before the driver's files are mounted; without that mount never."""

    def private(spec):
        mounts = spec["containers"][0]["volumeMounts"]
        spec["containers"][0]["volumeMounts"] = [one for one in mounts if one["name"] != "nv-firmware"]
        next(one for one in mounts if one["name"] == "run-nvidia").pop("mountPropagation")

    chain = Chain(world, DRIVER, private)
    world.until(lambda: "nvidia" in chain.node.host.modules, 30)
    world.pass_time(120)
    assert not chain.pods[DRIVER].main[0].ready
    assert not chain.node.host.gpus_work


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (arguments("--collectors=/etc/hwaccel/counter.csv"), "Could not read metrics file '/etc/hwaccel/counter.csv'"),
        (arguments("--no-hostnames"), "flag provided but not defined: -no-hostnames"),
        (variable("DCGM_EXPORTER_COLLECTORS", "/etc/hwaccel/counters.cvs"), "Could not read metrics file"),
        (
            variable("DCGM_EXPORTER_KUBERNETES", "ja"),
            'could not parse "ja" as bool value from environment variable "DCGM_EXPORTER_KUBERNETES"',
        ),
    ],
)
def test_a_mutation_of_the_exporter_ends_it(world, change, message):
    chain = Chain(world, EXPORTER, change)
    world.until(lambda: chain.offered() == 8, 30)
    exporter = chain.start(EXPORTER)
    world.until(lambda: exporter.restarts)
    assert message in log(exporter)


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        (None, ""),
        (lambda spec: spec["containers"][0]["volumeMounts"][1].update(mountPath="/var/lib/kubelet/pods"), 'pod="'),
        (variable("DCGM_EXPORTER_KUBERNETES", None), 'pod="'),
        (variable("NODE_NAME", None), 'hostname="n0"'),
        (arguments("-n"), "hostname="),
        (arguments("-d", "g:0"), 'gpu="7"'),
    ],
    ids=["none", "pod-resources", "kubernetes", "node name", "no hostname", "devices"],
)
def test_what_the_exporter_serves(world, change, lacks):
    chain = Chain(world, EXPORTER, change)
    world.until(lambda: chain.offered() == 8, 30)
    job = chain.job(1)
    world.until(lambda: job.main[0].ready)
    exporter = chain.start(EXPORTER)
    world.until(lambda: exporter.ready)
    page = exporter.page()
    words = [
        "# TYPE DCGM_FI_DEV_GPU_TEMP gauge",
        f'pod="{job.name}",namespace="ns",container="c"',
        'gpu="7"',
        'hostname="n0"',
    ]
    assert [word for word in words if word not in page] == [
        word for word in words if lacks and (lacks in word or word in lacks)
    ]


def test_the_exporter_asks_another_server_of_the_kubelet(world):
    chain = Chain(world, EXPORTER, host_path("pod-resources", "/var/lib/kubelet/device-plugins"))
    world.until(lambda: chain.offered() == 8, 30)
    exporter = chain.start(EXPORTER)
    world.until(lambda: exporter.ready)
    assert exporter.page() == "internal server error\n"
