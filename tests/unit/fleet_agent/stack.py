# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pod specs like those of the GPU Operator's DaemonSets, in which tests change one part."""

from __future__ import annotations

import copy
import typing as t

Obj = dict[str, t.Any]
VALIDATOR = "nvcr.io/nvidia/gpu-operator:v26.7.0"
PLUGIN = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"


def mount(name: str, path: str, propagation: str = "", read_only: bool = False) -> Obj:
    return {
        "name": name,
        "mountPath": path,
        "readOnly": read_only,
        **({"mountPropagation": propagation} if propagation else {}),
    }


def host(name: str, path: str, kind: str = "DirectoryOrCreate") -> Obj:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def env(**values: str) -> list[Obj]:
    return [{"name": k, "value": v} for k, v in values.items()]


def container(name: str, image: str, command: list[str], *mounts: Obj, privileged: bool = True, **values: str) -> Obj:
    security = {"privileged": privileged, **({"runAsUser": 0} if image == VALIDATOR else {})}
    return {
        "name": name,
        "image": image,
        "command": command,
        "securityContext": security,
        "volumeMounts": list(mounts),
        "env": env(**values),
    }


VALIDATIONS = mount("val", "/run/nvidia/validations", "Bidirectional")
VOLUMES = [
    host("run", "/run/nvidia"),
    host("val", "/run/nvidia/validations"),
    host("drv", "/run/nvidia/driver"),
    host("firmware", "/run/nvidia/driver/lib/firmware"),
    host("root", "/", ""),
    host("dev", "/dev/char", ""),
    host("inst", "/usr/local/nvidia"),
    host("cfg", "/etc/containerd"),
    host("sock", "/run/containerd", ""),
    host("dp", "/var/lib/kubelet/device-plugins", ""),
    host("cdi", "/var/run/cdi"),
]
PROBE = "[ -f /sys/module/nvidia/refcnt ] && nvidia-smi && touch /run/nvidia/validations/.driver-ctr-ready"

DRIVER: Obj = {
    "hostPID": True,
    "terminationGracePeriodSeconds": 30,
    "volumes": VOLUMES,
    "containers": [
        {
            **container(
                "driver",
                "nvcr.io/nvidia/driver:580-6.8.0-106-generic-ubuntu24.04",
                ["nvidia-driver", "init"],
                mount("run", "/run/nvidia", "Bidirectional"),
                mount("firmware", "/lib/firmware"),
            ),
            "startupProbe": {
                "exec": {"command": ["sh", "-c", PROBE]},
                "initialDelaySeconds": 60,
                "periodSeconds": 10,
                "failureThreshold": 120,
            },
            "lifecycle": {
                "preStop": {"exec": {"command": ["sh", "-c", "rm -f /run/nvidia/validations/.driver-ctr-ready"]}}
            },
        }
    ],
}

_DRIVER_STEP = container(
    "driver-validation",
    VALIDATOR,
    ["sh", "-c", "nvidia-validator"],
    mount("drv", "/run/nvidia/driver", "HostToContainer"),
    VALIDATIONS,
    mount("root", "/host", "HostToContainer", True),
    mount("dev", "/host-dev-char"),
    COMPONENT="driver",
    WITH_WAIT="true",
    OPERATOR_NAMESPACE="ns",
)
TOOLKIT: Obj = {
    "volumes": VOLUMES,
    "initContainers": [_DRIVER_STEP],
    "containers": [
        container(
            "toolkit",
            "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0",
            ["nvidia-toolkit"],
            mount("inst", "/usr/local/nvidia"),
            mount("cfg", "/runtime/config-dir"),
            mount("sock", "/runtime/sock-dir"),
            mount("drv", "/driver-root", "HostToContainer"),
            RUNTIME="containerd",
            CONTAINERD_CONFIG="/runtime/config-dir/config.toml",
            CONTAINERD_SOCKET="/runtime/sock-dir/containerd.sock",
            RUNTIME_DROP_IN_CONFIG="/runtime/config-dir/conf.d/99-nvidia.toml",
            RUNTIME_DROP_IN_CONFIG_HOST_PATH="/etc/containerd/conf.d/99-nvidia.toml",
            NVIDIA_RUNTIME_SET_AS_DEFAULT="false",
        )
    ],
}
CUDA = (
    "for g in $(nvidia-smi --query-gpu=uuid --format=csv,noheader); do CUDA_VISIBLE_DEVICES=$g vectorAdd || exit 1; done; "
    "touch /run/nvidia/validations/cuda-ready"
)
PROOF: Obj = {
    "runtimeClassName": "nvidia",
    "volumes": VOLUMES,
    "initContainers": [
        _DRIVER_STEP,
        container(
            "toolkit-validation",
            VALIDATOR,
            ["sh", "-c", "nvidia-validator"],
            VALIDATIONS,
            COMPONENT="toolkit",
            NVIDIA_VISIBLE_DEVICES="all",
        ),
        container("cuda-validation", VALIDATOR, ["sh", "-c", CUDA], VALIDATIONS, NVIDIA_VISIBLE_DEVICES="all"),
    ],
    "containers": [
        container("main", VALIDATOR, ["sh", "-c", "echo done; while true; do sleep 86400; done"], VALIDATIONS)
    ],
}
DEVICE_PLUGIN: Obj = {
    "runtimeClassName": "nvidia",
    "volumes": VOLUMES,
    "initContainers": [
        container(
            "wait",
            VALIDATOR,
            ["sh", "-c", "until [ -f /run/nvidia/validations/cuda-ready ]; do echo waiting; sleep 5; done"],
            mount("val", "/run/nvidia/validations", "HostToContainer"),
        )
    ],
    "containers": [
        container("plugin", PLUGIN, ["nvidia-device-plugin"], mount("dp", "/var/lib/kubelet/device-plugins"))
    ],
}


def changed(spec: Obj, change: t.Callable[[Obj], t.Any]) -> Obj:
    copied = copy.deepcopy(spec)
    change(copied)
    return copied


def log(status: t.Any) -> str:
    """The log of a container, including that before its last restart."""
    return "\n".join([*(status.previous_log or ()), *status.log])


def deploy(world, kubelet, driver=None, toolkit=None, proof=None, plugin=None):
    """The chain of one node; its pods in this order."""
    specs = (driver or DRIVER, toolkit or TOOLKIT, proof or PROOF, plugin or DEVICE_PLUGIN)
    return [world.pod(kubelet, spec) for spec in specs]
