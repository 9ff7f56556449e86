# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime on a real node with containerd 2, a host driver and two GPUs: devices that pods get from NVIDIA's real runtime.

Pods report which devices they can open.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import tomllib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.node.rig import components as programs
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.host_driver import LIBRARY, OPEN_DEVICES, install_driver, permitted
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import PROGRAMS
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.runtime_site import (
    CONFIG,
    DROP_IN,
    SPECIFICATION,
    Site,
    overwritten,
    started,
    state,
    times,
)

RUNTIME_CLASS = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
#: Another RuntimeClass than that of the role driver, which other tests may have created.
CLASS = "rig-nvidia"
NAME, FIRST, SECOND = "own-driver", "/dev/nvidia0", "/dev/nvidia1"
THEIRS = "/etc/containerd/site.toml"
#: A setting of the plugin that the role configures, in addition to those of the rig without which no pod would start.
SETTING = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nmax_container_log_line_size = 4711\n"
COMMENT = "# ours, see ticket 4711\n"


@dataclasses.dataclass(frozen=True)
class Configured:
    """The node after the role's first run. before: files before it. main: containerd's main file. read: the configuration that containerd read from them."""

    cluster: Cluster
    site: Site
    before: str
    main: str
    read: dict[str, t.Any]

    @property
    def machine(self) -> Machine:
        return self.site.machine

    def pod(self, runtime_class: str = "", visible: str = "", script: str = OPEN_DEVICES) -> str:
        """The log of a pod."""
        environment = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": visible}] if visible else []
        container = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script], "env": environment}
        spec: dict[str, t.Any] = {
            "restartPolicy": "Never",
            "nodeName": NAME,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        }
        if runtime_class:
            spec["runtimeClassName"] = runtime_class
        client = self.cluster.client
        client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "taker", "namespace": "default"}, "spec": spec},
            POD,
        )
        try:
            self.machine.wait("the pod has completed", lambda: self._phase() in ("Succeeded", "Failed"))
            phase, log = self._phase(), client.logs("default", "taker", "main")
        finally:
            client.delete(POD, "taker", "default")
            self.cluster.wait(
                "the pod is deleted",
                lambda: "taker" not in [pod["metadata"]["name"] for pod in client.list(POD, namespace="default").items],
            )
        assert phase == "Succeeded", log
        return log

    def _phase(self) -> str:
        return str(self.cluster.client.get(POD, "taker", "default")["status"].get("phase"))

    def container(self, *request: str) -> str:
        """The log of a container that is started without the kubelet, which is stopped meanwhile, because it would end unknown containers."""
        self.machine.sh("systemctl kill --signal=STOP kubelet")
        try:
            return self.machine.execute(f"{PROGRAMS}/pod", *request, BUSYBOX, "sh", "-c", OPEN_DEVICES).stdout
        finally:
            self.machine.sh("systemctl kill --signal=CONT kubelet")


def reading(machine: Machine) -> dict[str, t.Any]:
    return tomllib.loads(machine.sh("containerd config dump 2>/dev/null"))


@pytest.fixture(scope="module")
def site(
    cluster: Cluster, components: programs.Components, tmp_path_factory: pytest.TempPathFactory
) -> c.Iterator[Site]:
    """A node whose containerd has settings and a drop-in of its administrator."""
    node = cluster.join(NAME, gpus=2)
    install_driver(node.machine, 2)
    machine = node.machine
    machine.write(THEIRS, SETTING)
    machine.write(
        CONFIG,
        machine.read(CONFIG).replace("version = 3\n", f'version = 3\n{COMMENT}imports = ["{THEIRS}"]  # as agreed\n'),
        "0640",
    )
    machine.sh("systemctl restart containerd")
    yield Site.of(machine, tmp_path_factory.mktemp("site"), components)
    machine.sh("systemctl stop kubelet")
    cluster.client.delete(NODE, NAME)
    machine.stop()


@pytest.fixture(scope="module")
def configured(cluster: Cluster, site: Site) -> c.Iterator[Configured]:
    machine = site.machine
    before, main, read = state(machine), machine.read(CONFIG), reading(machine)
    site.changed()
    metadata = {"apiVersion": RUNTIME_CLASS.api_version, "kind": RUNTIME_CLASS.kind, "metadata": {"name": CLASS}}
    cluster.client.create({**metadata, "handler": "nvidia"}, RUNTIME_CLASS)
    yield Configured(cluster, site, before, main, read)
    cluster.client.delete(RUNTIME_CLASS, CLASS)


def test_containerd_2_has_the_runtime_beside_all_existing_settings(configured: Configured) -> None:
    machine = configured.machine
    assert machine.read(CONFIG) == configured.main.replace(f'"{THEIRS}"]', f'"{THEIRS}", "{DROP_IN}"]')
    read = reading(machine)
    plugin = read["plugins"]["io.containerd.cri.v1.runtime"]
    runtime = plugin["containerd"]["runtimes"].pop("nvidia")
    assert runtime["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtime["runtime_type"] == plugin["containerd"]["runtimes"]["runc"]["runtime_type"]
    assert {**read, "imports": ()} == {**configured.read, "imports": ()}
    assert plugin["max_container_log_line_size"] == 4711


@pytest.mark.parametrize(
    ("visible", "devices"),
    [("1", (SECOND,)), ("all", (FIRST, SECOND)), ("nvidia.com/gpu=0", (FIRST,)), ("void", ())],
    ids=["one", "all", "described", "none"],
)
def test_a_pod_with_the_runtime_class_gets_the_requested_gpus(
    configured: Configured, visible: str, devices: tuple[str, ...]
) -> None:
    log = configured.pod(CLASS, visible, f"{OPEN_DEVICES}; cat {LIBRARY} 2>/dev/null || echo without a driver")
    assert log == permitted(*devices) + ("stand-in for libcuda.so\n" if devices else "without a driver\n")


def test_a_pod_without_the_class_gets_none(configured: Configured) -> None:
    assert configured.pod(visible="all") == ""


@pytest.mark.parametrize(
    "cdi_request",
    [("-cdi", "nvidia.com/gpu=1"), ("-annotation", "cdi.k8s.io/test=nvidia.com/gpu=1")],
    ids=["request", "annotation"],
)
def test_containerd_itself_provides_a_gpu_that_is_requested_by_its_cdi_name(
    configured: Configured, cdi_request: tuple[str, str]
) -> None:
    """A device plugin requests devices in this way; no RuntimeClass is needed."""
    assert configured.container(*cdi_request) == permitted(SECOND)


def test_a_gpu_that_is_not_described_is_refused(configured: Configured) -> None:
    with pytest.raises(RuntimeError, match=r"unresolvable CDI devices nvidia\.com/gpu=7"):
        configured.container("-cdi", "nvidia.com/gpu=7")


def test_a_second_run_changes_nothing(configured: Configured) -> None:
    machine = configured.machine
    done = state(machine), times(machine), started(machine, "containerd")
    assert configured.site.changed() == 0
    assert (state(machine), times(machine), started(machine, "containerd")) == done


def test_an_invalid_configuration_of_containerd_2_is_refused_while_pods_can_be_started(
    configured: Configured,
) -> None:
    machine = configured.machine
    with overwritten(machine, CONFIG, "[[[\n"):
        before = state(machine), started(machine, "containerd")
        message = configured.site.refused()
        after = state(machine), started(machine, "containerd")
        assert configured.pod(script="echo served") == "served\n"
    machine.sh("systemctl restart containerd")
    assert after == before
    assert "containerd does not accept its present configuration" in message


@pytest.mark.slow
def test_a_gpu_that_has_fallen_off_the_bus_is_reported_as_missing_in_the_description(configured: Configured) -> None:
    machine = configured.machine
    described = machine.read(SPECIFICATION)
    machine.sh(f"mv {SECOND} /run/lost")
    message = configured.site.refused()
    machine.sh(f"mv /run/lost {SECOND}")
    assert "of 2 GPUs it lacks 1" in message
    assert machine.read(SPECIFICATION) == described


def test_as_the_default_runtime_it_serves_pods_without_a_class(configured: Configured) -> None:
    assert configured.site.changed(node_runtime_default_runtime=True) > 0
    assert configured.pod(visible="0") == permitted(FIRST)
    assert configured.pod() == ""


def test_teardown_restores_the_node_and_pods_can_be_started(configured: Configured) -> None:
    """The last test, because the others need the configured node."""
    machine = configured.machine
    assert configured.site.changed(node_runtime_entry="teardown") > 0
    assert state(machine) == configured.before
    assert reading(machine) == configured.read
    assert configured.pod(script="echo served") == "served\n"
    with pytest.raises(RuntimeError, match='no runtime for "nvidia" is configured'):
        configured.container("-runtime", "nvidia")
