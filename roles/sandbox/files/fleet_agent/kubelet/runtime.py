# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime's part: pulls, sandboxes by runtime handler, and the effects of the nvidia runtime on a container."""

from __future__ import annotations

from typing import Any

from fleet_agent.kubelet import process
from fleet_agent.loop import Process, Sleep
from fleet_agent.machine import images
from fleet_agent.machine.hostfs import gpu_uuid

DEFAULT_HANDLERS = ("", "runc")


def pull(kubelet: Any, image: images.Image, policy: str) -> Process:
    """Returns an empty string, or the runtime's error."""
    host = kubelet.host
    fault = host.spec.fault("image_pull_failure")
    present = image.reference in host.images
    if present and policy != "Always":
        return ""
    if policy == "Never":
        return f'Container image "{image.reference}" is not present with pull policy of Never'
    if fault is not None and fault.get("image", "") in ("", image.basename, image.reference, image.repository):
        yield Sleep(kubelet.clock.jitter(0.5))
        return images.unavailable(image)
    if image.reference not in kubelet.agent.images and not images.exists(image):
        yield Sleep(kubelet.clock.jitter(0.5))
        return images.not_found(image)
    offered = images.architectures(image)
    if offered is not None and host.spec.image_arch not in offered:
        yield Sleep(kubelet.clock.jitter(0.5))
        return f'rpc error: code = NotFound desc = failed to pull and unpack image "{images.qualified(image)}": no match for platform in manifest: not found'
    if not present:
        yield Sleep(kubelet.clock.jitter(images.pull_seconds(image)) if images.pull_seconds(image) else 0.05)
        host.images.add(image.reference)
    return ""


def sandbox_fault(kubelet: Any, handler: str, sandbox_id: str) -> str:
    """Why a sandbox cannot be created for a runtime handler; empty if it can."""
    host = kubelet.host
    if handler in host.handlers:
        binary = host.handlers[handler]
        if not binary or host.read(binary) is not None:
            return ""
        return (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox: failed to create containerd task: failed to create "
            f"shim task: OCI runtime create failed: unable to retrieve OCI runtime error: fork/exec {binary}: no such file or directory: unknown"
        )
    return (
        f'Failed to create pod sandbox: rpc error: code = Unknown desc = unable to get OCI runtime for sandbox "{sandbox_id}": '
        f'no runtime for "{handler}" is configured'
    )


def prepare(container: Any) -> str:
    """Sets up the container. Returns the message of a failed start."""
    argv = process.command_line(container)
    return inject_gpus(container) or process.executable_fault(container, argv)


def _chosen(container: Any, count: int) -> list[int] | None:
    """GPU indices that NVIDIA_VISIBLE_DEVICES asks the nvidia runtime for; None: the runtime does not change the container."""
    requested = container.env.get("NVIDIA_VISIBLE_DEVICES", "")
    if requested in ("", "void"):
        return None
    if requested == "none":
        return []
    if requested == "all":
        return list(range(count))
    uuids = [gpu_uuid(container.pod.kubelet.host.spec.name, i) for i in range(count)]
    chosen = []
    for word in requested.split(","):
        word = word.split("::")[0]
        if word.isdigit() and int(word) < count:
            chosen.append(int(word))
        elif word in uuids:
            chosen.append(uuids.index(word))
    return chosen


def _device_files(container: Any) -> None:
    """Device nodes of its GPUs, which keep the minor numbers of the machine, and those that all GPUs share (nvidia-container-cli list)."""
    files = [f"/dev/nvidia{index}" for index in container.gpus]
    files += ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    container.view.own.update(dict.fromkeys(files, ""))
    container.view.own_folders.add("/dev")


def inject_gpus(container: Any) -> str:
    """Adds devices allocated by kubelet and files of the nvidia runtime."""
    kubelet, pod = container.pod.kubelet, container.pod
    spec = kubelet.host.spec
    count = spec.gpu.count if spec.gpu else 0
    container.env.update(kubelet.devices.environment(container.devices))
    container.gpus, container.driver_injected = [], False
    if container.view.privileged and "nvidia" in kubelet.host.modules:
        container.gpus = list(range(count))
        _device_files(container)
    cdi = kubelet.devices.cdi_indices(container.devices)
    handler = pod.handler if pod.handler not in DEFAULT_HANDLERS else kubelet.host.default_handler
    chosen = cdi if cdi is not None else (_chosen(container, count) if handler.startswith("nvidia") else None)
    if chosen is None:
        return ""
    spec_text = kubelet.host.read("/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.yaml") if cdi is not None else ""
    if cdi is not None and spec_text is None:
        return (
            "failed to create containerd container: CDI device injection failed: unresolvable CDI devices "
            f"k8s.device-plugin.nvidia.com/gpu={gpu_uuid(kubelet.name, cdi[0])}"
        )
    hook = (spec_text or "").partition("hook: ")[2].strip()
    if hook and kubelet.host.read(hook) is None:
        return (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container "
            f"process: error during container init: error running createContainer hook #0: fork/exec {hook}: no such file or directory"
        )
    if "nvidia" not in kubelet.host.modules:
        return (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container "
            "process: error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
            "nvidia-container-cli: initialization error: nvml error: driver not loaded"
        )
    container.gpus = chosen
    container.driver_injected = True
    _device_files(container)
    if container.devices and not container.image.family:
        kubelet.host.compute(
            container.container_id, chosen
        )  # The behavior of a user's image is unknown, so it is treated as a job that uses all of its GPUs.
    return ""
