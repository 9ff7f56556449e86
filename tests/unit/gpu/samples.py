# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and pods of a GPU fleet for tests, like an API server returns them.

Statuses are those of kubelet 1.36 (pkg/kubelet/kubelet_pods.go, status/generate.go) and of a real node with containerd.
"""

from __future__ import annotations

import copy
import itertools
import typing as t

GPU = "nvidia.com/gpu"
KERNEL = "6.8.0-111-generic"
NFD = "feature.node.kubernetes.io/"
PCI = NFD + "pci-10de.present"
NAMESPACE = "hwaccel-gpu"

_serial = itertools.count(1)

Obj = dict[str, t.Any]


#: The condition Ready in the words of kubelet and node lifecycle controller, by readiness.
_READINESS = {
    True: {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"},
    False: {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    },
}


def node(
    name: str = "training-0",
    gpus: int = 8,
    *,
    allocatable: int | None = None,
    labels: Obj | None = None,
    kernel: str = KERNEL,
    ready: bool = True,
    os_image: str = "Ubuntu 24.04.1 LTS",
    taints: list[Obj] | None = None,
    nfd: bool = True,
) -> Obj:
    found = {NFD + "kernel-version.full": kernel, NFD + "system-os_release.ID": "ubuntu"} if nfd else {}
    if nfd and gpus:
        found[PCI] = "true"
    quantities = {"cpu": "64", "memory": "527895288Ki", "pods": "110"}
    if allocatable is not None:
        quantities[GPU] = str(allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": found | (labels or {}),
            "annotations": {},
            "resourceVersion": "1",
        },
        "spec": {"taints": taints} if taints else {},
        "status": {
            "allocatable": quantities,
            "capacity": quantities | ({GPU: str(gpus)} if allocatable is not None else {}),
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", **_READINESS[ready]}],
            "nodeInfo": {
                "kernelVersion": kernel,
                "osImage": os_image,
                "architecture": "amd64",
                "containerRuntimeVersion": "containerd://2.0.0",
                "bootID": f"boot-{name}",
            },
        },
    }


def running(*, ready: bool = True, started: bool = True, restarts: int = 0, last: Obj | None = None) -> Obj:
    return {
        "state": {"running": {"startedAt": "2026-11-20T10:00:00Z"}},
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "lastState": last or {},
    }


def done(code: int = 0, restarts: int = 0) -> Obj:
    reason = "Completed" if code == 0 else "Error"
    return {
        "state": {"terminated": {"exitCode": code, "reason": reason}},
        "ready": code == 0,
        "started": False,
        "restartCount": restarts,
        "lastState": {},
    }


def ended(
    code: int, restarts: int, reason: str = "Error", *, since: str = "2026-11-20T10:00:00Z", hours: int = 1
) -> Obj:
    """The last run began at `since` and ended hours after ten o'clock."""
    run = {"exitCode": code, "reason": reason, "startedAt": since, "finishedAt": f"2026-11-20T{10 + hours}:00:00Z"}
    return {"state": {"terminated": run}, "ready": False, "started": False, "restartCount": restarts, "lastState": {}}


def waiting(
    reason: str = "PodInitializing", message: str = "", restarts: int = 0, last: int | None = None, ended: str = ""
) -> Obj:
    state = {"reason": reason} | ({"message": message} if message else {})
    before = {"terminated": {"exitCode": last, "reason": "Error", "finishedAt": ended}} if last is not None else {}
    return {
        "state": {"waiting": state},
        "ready": False,
        "started": False,
        "restartCount": restarts,
        "lastState": before,
    }


def crash_loop(name: str, restarts: int, code: int = 1, ended: str = "", *, back_off: str = "5m0s") -> Obj:
    """`ended`: time when the last run ended."""
    message = f"back-off {back_off} restarting failed container={name} pod=x_hwaccel-gpu(1)"
    return waiting("CrashLoopBackOff", message, restarts, code, ended)


def backing_off(status: Obj, back_off: str = "5m0s") -> Obj:
    """The status of a failed container after the kubelet has decided when to restart it."""
    return crash_loop("x", status["restartCount"], back_off=back_off) | {"lastState": status["state"]}


def pod(
    role: str,
    on: str,
    inits: dict[str, Obj],
    containers: dict[str, Obj],
    image: str,
    *,
    phase: str = "Running",
    ready: bool | None = None,
    sandbox: bool = True,
    since: str = "",
    extra: Obj | None = None,
) -> Obj:
    """`since`: time when the pod became Ready or not Ready."""
    number = next(_serial)
    name = f"{role}-{number:05d}"
    if ready is None:
        ready = all(status.get("ready") for status in containers.values())
    result: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "labels": {"app.kubernetes.io/component": role},
            "resourceVersion": str(number),
            "creationTimestamp": f"2026-11-20T10:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "ownerReferences": [{"kind": "DaemonSet", "name": role}],
        },
        "spec": {
            "nodeName": on,
            "initContainers": [{"name": init, "image": image} for init in inits],
            "containers": [{"name": one, "image": image, "command": ["nvidia-validator"]} for one in containers],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": "PodReadyToStartContainers", "status": str(sandbox)},
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": str(ready), "lastTransitionTime": since},
            ],
            "initContainerStatuses": [{"name": key, **copy.deepcopy(status)} for key, status in inits.items()],
            "containerStatuses": [{"name": key, **copy.deepcopy(status)} for key, status in containers.items()],
        },
    }
    result["status"].update(extra or {})
    return result


def validator(
    on: str,
    driver: Obj | None = None,
    toolkit: Obj | None = None,
    cuda: Obj | None = None,
    main: Obj | None = None,
    **kwargs: t.Any,
) -> Obj:
    """All steps have completed unless given. After the first step that has not, the kubelet has not started the rest."""
    steps: dict[str, Obj] = {}
    blocked = False
    for name, status in (("driver-validation", driver), ("toolkit-validation", toolkit), ("cuda-validation", cuda)):
        steps[name] = waiting() if blocked else (status or done())
        blocked = blocked or steps[name]["state"].get("terminated", {}).get("exitCode") != 0
    status = waiting() if blocked else (main or running())
    return pod(
        "validator",
        on,
        steps,
        {"validator": status},
        "nvcr.io/nvidia/gpu-operator:v26.7.0",
        phase="Pending" if blocked else "Running",
        **kwargs,
    )


def driver(on: str, main: Obj | None = None, manager: Obj | None = None, **kwargs: t.Any) -> Obj:
    inits = {"k8s-driver-manager": manager or done()}
    return pod(
        "driver",
        on,
        inits,
        {"nvidia-driver-ctr": main or running()},
        f"mirror:5000/nvidia/driver:580-{KERNEL}-ubuntu24.04",
        **kwargs,
    )


def toolkit(on: str, main: Obj | None = None, **kwargs: t.Any) -> Obj:
    return pod(
        "toolkit",
        on,
        {"driver-validation": done()},
        {"toolkit": main or running()},
        "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0",
        **kwargs,
    )


def plugin(on: str, main: Obj | None = None, wait: Obj | None = None, **kwargs: t.Any) -> Obj:
    image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
    return pod(
        "device-plugin",
        on,
        {"wait-for-proof": wait or done()},
        {"nvidia-device-plugin": main or running()},
        image,
        **kwargs,
    )


def discovery(on: str, main: Obj | None = None, **kwargs: t.Any) -> Obj:
    result = pod(
        "gpu-feature-discovery",
        on,
        {},
        {"gpu-feature-discovery": main or running()},
        "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
        **kwargs,
    )
    result["spec"]["containers"][0]["command"] = ["gpu-feature-discovery"]
    return result


def exporter(on: str, main: Obj | None = None, proof: Obj | None = None, **kwargs: t.Any) -> Obj:
    """`proof`: status of the init container that waits for the driver. While it runs, the exporter has not started."""
    status = main or (waiting() if proof is not None else running())
    image = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
    return pod("exporter", on, {"driver-proof": proof or done()}, {"nvidia-dcgm-exporter": status}, image, **kwargs)


def worker(on: str, main: Obj | None = None, **kwargs: t.Any) -> Obj:
    result = pod(
        "nfd-worker",
        on,
        {},
        {"nfd-worker": main or running()},
        "registry.k8s.io/nfd/node-feature-discovery:v0.19.0",
        **kwargs,
    )
    result["spec"]["containers"][0]["command"] = ["nfd-worker"]
    return result
