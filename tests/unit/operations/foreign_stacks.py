# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Existing GPU stacks as data, like other deployers install them. None of them tolerates a taint of this collection.

Sources of names, owners, images, init containers, tolerations and strategies: objects that the binary of NVIDIA/gpu-operator v26.7.0 created (chart with
bundled NFD); NVIDIA/k8s-device-plugin v0.20.0, its static manifest and chart (deployments/helm/nvidia-device-plugin/values.yaml 00f2a02); GKE's
GoogleCloudPlatform/container-engine-accelerators (cmd/nvidia_gpu/device-plugin.yaml 189e7b1,
nvidia-driver-installer/cos/daemonset-preloaded-latest.yaml 068b15a); on OpenShift the operator's driver pods have a container of the Driver Toolkit beside
that of the driver, and Red Hat's operator deploys NFD.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

Obj = dict[str, t.Any]

GPU_TAINT: Obj = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ALL_NO_SCHEDULE: Obj = {"operator": "Exists", "effect": "NoSchedule"}
PLUGIN_IMAGE, OPERATOR_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "nvcr.io/nvidia/gpu-operator:v26.7.0"
NFD_IMAGE = "registry.k8s.io/nfd/node-feature-discovery:v0.19.0"


@dataclasses.dataclass(frozen=True)
class Agent:
    """A DaemonSet. `part`: its role on a node. `runtime`: its pods use NVIDIA's RuntimeClass. `installer`: image of its first init container."""

    part: str
    namespace: str
    name: str
    image: str
    container: str
    inits: tuple[str, ...] = ()
    command: str = ""
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Obj, ...] = (GPU_TAINT,)
    strategy: str = "RollingUpdate"
    manager: str = "helm"
    runtime: bool = False
    installer: str = ""
    beside: tuple[str, ...] = ()

    def template(self) -> Obj:
        inits = [
            {"name": name, "image": self.installer if self.installer and not at else OPERATOR_IMAGE}
            for at, name in enumerate(self.inits)
        ]
        containers = [
            {"name": name, "image": self.image, "command": [self.command] if self.command else []}
            for name in (self.container, *self.beside)
        ]
        labels = {"app": self.name} | (
            {names.MANAGED_BY_LABEL: names.MANAGER} if self.manager.startswith("hwaccel.gpu/") else {}
        )
        spec = {
            "initContainers": inits,
            "containers": containers,
            "nodeSelector": dict(self.selector),
            "tolerations": list(self.tolerations),
        }
        return {"metadata": {"labels": labels}, "spec": spec}


@dataclasses.dataclass(frozen=True)
class Stack:
    """`labels`: labels of its GPU nodes. `provider`: the declared provider of the driver, if any."""

    name: str
    agents: tuple[Agent, ...]
    labels: tuple[tuple[str, str], ...] = ()
    policy: bool = False
    provider: str = ""

    @property
    def has_driver(self) -> bool:
        return any(agent.part == "driver" for agent in self.agents)


_SWITCHES = (
    "container-toolkit",
    "dcgm-exporter",
    "device-plugin",
    "gpu-feature-discovery",
    "mig-manager",
    "operator-validator",
)
_OURS = {"namespace": s.NAMESPACE, "tolerations": (ALL_NO_SCHEDULE,)}
_OUR_NFD = Agent(
    "nfd",
    name="nfd-worker",
    image=NFD_IMAGE,
    container="nfd-worker",
    command="nfd-worker",
    manager="hwaccel.gpu/feature-discovery",
    **_OURS,
)
#: With a driver of the host and without an existing validator, our own one validates the node.
_OUR_VALIDATOR = Agent(
    "validator",
    name="nvidia-validator",
    image=OPERATOR_IMAGE,
    container="nvidia-validator",
    inits=("driver-validation", "toolkit-validation", "cuda-validation"),
    selector=((s.PCI, "true"),),
    runtime=True,
    manager="hwaccel.gpu/driver",
    **_OURS,
)


def _switch(component: str) -> tuple[tuple[str, str], ...]:
    return ((f"nvidia.com/gpu.deploy.{component}", "true"),)


#: Agents of the operator: part, DaemonSet, image, container, switch and init containers.
_OPERANDS: tuple[tuple[tuple[str, ...], dict[str, t.Any]], ...] = (
    (
        (
            "toolkit",
            "nvidia-container-toolkit-daemonset",
            "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0",
            "nvidia-container-toolkit-ctr",
            "container-toolkit",
            "driver-validation",
        ),
        {},
    ),
    (
        (
            "validator",
            "nvidia-operator-validator",
            OPERATOR_IMAGE,
            "nvidia-operator-validator",
            "operator-validator",
            "driver-validation",
            "toolkit-validation",
            "cuda-validation",
            "plugin-validation",
        ),
        {"runtime": True},
    ),
    (
        (
            "plugin",
            "nvidia-device-plugin-daemonset",
            PLUGIN_IMAGE,
            "nvidia-device-plugin",
            "device-plugin",
            "toolkit-validation",
        ),
        {"runtime": True},
    ),
    (
        (
            "other",
            "nvidia-device-plugin-mps-control-daemon",
            PLUGIN_IMAGE,
            "mps-control-daemon-ctr",
            "device-plugin",
            "toolkit-validation",
            "mps-control-daemon-mounts",
        ),
        {"command": "mps-control-daemon", "also": (("nvidia.com/mps.capable", "true"),)},
    ),
    (
        (
            "discovery",
            "gpu-feature-discovery",
            PLUGIN_IMAGE,
            "gpu-feature-discovery",
            "gpu-feature-discovery",
            "toolkit-validation",
        ),
        {"command": "gpu-feature-discovery", "runtime": True},
    ),
    (
        (
            "exporter",
            "nvidia-dcgm-exporter",
            "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
            "nvidia-dcgm-exporter",
            "dcgm-exporter",
            "toolkit-validation",
        ),
        {"runtime": True},
    ),
    (
        (
            "other",
            "nvidia-mig-manager",
            "nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.15.0",
            "nvidia-mig-manager",
            "mig-manager",
            "toolkit-validation",
        ),
        {"runtime": True},
    ),
)


def _operator(space: str, nfd: Agent, driver_name: str, beside: tuple[str, ...], *, host: bool) -> Stack:
    def agent(part: str, name: str, image: str, container: str, switch: str, *inits: str, **more: t.Any) -> Agent:
        return Agent(
            part, space, name, image, container, inits, selector=_switch(switch) + more.pop("also", ()), **more
        )

    driver = agent(
        "driver",
        driver_name,
        "nvcr.io/nvidia/driver:595.91.07-ubuntu22.04",
        "nvidia-driver-ctr",
        "driver",
        "k8s-driver-manager",
        strategy="OnDelete",
        beside=beside,
    )
    agents = (*(agent(*words, **more) for words, more in _OPERANDS), nfd)
    labels = (
        *(pair for switch in _SWITCHES for pair in _switch(switch)),
        (names.DEPLOY_DRIVER_LABEL, names.PRE_INSTALLED if host else "true"),
    )
    return Stack(space, agents if host else (driver, *agents), labels, policy=True)


def _with_driver(stack: Stack, *agents: Agent) -> Stack:
    return dataclasses.replace(stack, agents=(*agents, *stack.agents))


def _upstream(*, host: bool) -> Stack:
    nfd = Agent(
        "nfd", "node-feature-discovery", "nfd-worker", NFD_IMAGE, "nfd-worker", command="nfd-worker", tolerations=()
    )
    found = Stack(
        "upstream",
        (
            nfd,
            Agent("plugin", "kube-system", "nvidia-device-plugin-daemonset", PLUGIN_IMAGE, "nvidia-device-plugin-ctr"),
            Agent(
                "discovery",
                "node-feature-discovery",
                "gpu-feature-discovery",
                PLUGIN_IMAGE,
                "gpu-feature-discovery",
                command="gpu-feature-discovery",
                selector=((s.PCI, "true"),),
            ),
            Agent(
                "exporter",
                "default",
                "dcgm-exporter",
                "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless",
                "exporter",
                tolerations=(),
            ),
        ),
    )
    return _with_driver(found, _OUR_VALIDATOR) if host else _with_driver(found, _driver_alone("kube-system"))


def _driver_alone(space: str) -> Agent:
    image = "nvcr.io/nvidia/driver:595.91.07-ubuntu22.04"
    return Agent(
        "driver",
        space,
        "nvidia-driver-daemonset",
        image,
        "nvidia-driver-ctr",
        selector=((s.PCI, "true"),),
        strategy="OnDelete",
    )


def _gke(*, host: bool) -> Stack:
    selector = (("cloud.google.com/gke-accelerator", "nvidia-h100-80gb"),)
    everything: tuple[Obj, ...] = ({"operator": "Exists", "effect": "NoExecute"}, ALL_NO_SCHEDULE)
    plugin = Agent(
        "plugin",
        "kube-system",
        "nvidia-gpu-device-plugin",
        "gcr.io/gke-release/nvidia-gpu-device-plugin@sha256:0",
        "nvidia-gpu-device-plugin",
        selector=selector,
        tolerations=everything,
    )
    installer = Agent(
        "driver",
        "kube-system",
        "nvidia-driver-installer",
        "gke.gcr.io/pause:3.8",
        "pause",
        ("nvidia-driver-installer", "partition-gpus"),
        selector=selector,
        tolerations=({"operator": "Exists"},),
        installer="cos-nvidia-installer:fixed",
    )
    return Stack(
        "gke",
        (_OUR_NFD, plugin) if host else (_OUR_NFD, plugin, installer),
        selector,
        provider="existing" if host else "",
    )


def _k3s(*, host: bool) -> Stack:
    space, tolerations = "nvidia-device-plugin", ({"key": "CriticalAddonsOnly", "operator": "Exists"}, GPU_TAINT)
    nfd = Agent(
        "nfd",
        space,
        "nvdp-node-feature-discovery-worker",
        NFD_IMAGE,
        "worker",
        command="nfd-worker",
        tolerations=({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},),
    )
    more: dict[str, t.Any] = {"selector": ((s.PCI, "true"),), "tolerations": tolerations, "runtime": True}
    found = Stack(
        "k3s",
        (
            nfd,
            Agent(
                "plugin",
                space,
                "nvdp-nvidia-device-plugin",
                PLUGIN_IMAGE,
                "nvidia-device-plugin-ctr",
                command="nvidia-device-plugin",
                **more,
            ),
            Agent(
                "discovery",
                space,
                "nvdp-gpu-feature-discovery",
                PLUGIN_IMAGE,
                "gpu-feature-discovery-ctr",
                command="gpu-feature-discovery",
                **more,
            ),
        ),
    )
    return _with_driver(found, _OUR_VALIDATOR) if host else _with_driver(found, _driver_alone(space))


def stack(name: str, *, host: bool) -> Stack:
    """`host`: the driver is installed on the hosts."""
    if name == "gpu-operator":
        nfd = Agent(
            "nfd",
            name,
            "gpu-operator-node-feature-discovery-worker",
            NFD_IMAGE,
            "worker",
            command="nfd-worker",
            tolerations=({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}, GPU_TAINT),
        )
        return _operator(name, nfd, "nvidia-driver-daemonset", (), host=host)
    if name == "openshift":
        image = "registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9@sha256:0"
        nfd = Agent("nfd", "openshift-nfd", "nfd-worker", image, "nfd-worker", command="nfd-worker", tolerations=())
        return _operator(
            "nvidia-gpu-operator",
            nfd,
            "nvidia-driver-daemonset-9.6.20260801-0",
            ("openshift-driver-toolkit-ctr",),
            host=host,
        )
    return {"upstream": _upstream, "gke": _gke, "k3s": _k3s}[name](host=host)
