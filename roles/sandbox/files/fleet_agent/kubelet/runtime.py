# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime's part: pulls, sandboxes by runtime handler, and the effects of the nvidia runtime on a container."""

from __future__ import annotations

import posixpath
from typing import Any

from fleet_agent.kubelet import process
from fleet_agent.loop import Process, Sleep
from fleet_agent.machine import cdi, images, nvml
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


_CREATE = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "


def sandbox_fault(kubelet: Any, handler: str, sandbox_id: str) -> str:
    """Why a sandbox cannot be created for a runtime handler; empty if it can."""
    host = kubelet.host
    if handler not in host.handlers:
        return (
            f'Failed to create pod sandbox: rpc error: code = Unknown desc = unable to get OCI runtime for sandbox "{sandbox_id}": '
            f'no runtime for "{handler}" is configured'
        )
    binary, start = (
        host.handlers[handler],
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox: ",
    )
    if binary and host.read(binary) is None:
        return f"{start}{_CREATE}unable to retrieve OCI runtime error: fork/exec {binary}: no such file or directory: unknown"
    if _is_nvidia(handler, binary):
        # It reads its settings before it looks at what the container asks for (newSpecModifier, modifier.New).
        mode = cdi.runtime(host, binary).mode
        if mode not in (*cdi.MODES, "auto"):
            return start + _failed_runtime(binary, f'failed to construct OCI spec modifier: invalid mode "{mode}"')
    return ""


def _is_nvidia(handler: str, binary: str) -> bool:
    return posixpath.basename(binary).startswith("nvidia-container-runtime") or (
        not binary and handler.startswith("nvidia")
    )


def _failed_runtime(binary: str, why: str) -> str:
    """NVIDIA's runtime ends before runc, so that its output is all that there is."""
    name = posixpath.basename(binary) or "nvidia-container-runtime"
    return (
        f"{_CREATE}unable to retrieve OCI runtime error (open log.json: no such file or directory): "
        f'{name} did not terminate successfully: exit status 1: level=error msg="{why}"'
    )


def prepare(container: Any) -> str:
    """Sets up the container. Returns the message of a failed start."""
    argv = process.command_line(container)
    return inject_gpus(container) or process.executable_fault(container, argv)


def _device_files(container: Any) -> None:
    """Device nodes of its GPUs, which keep the minor numbers of the machine, and those that all GPUs share (nvidia-container-cli list)."""
    files = [f"/dev/nvidia{index}" for index in container.gpus]
    files += ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    container.view.own.update(dict.fromkeys(files, ""))
    container.view.own_folders.add("/dev")


def inject_gpus(container: Any) -> str:
    """Adds devices allocated by kubelet and files of the nvidia runtime. Returns the error of container runtime or runc."""
    kubelet = container.pod.kubelet
    spec = kubelet.host.spec
    count = spec.gpu.count if spec.gpu else 0
    container.env.update(kubelet.devices.environment(container.devices))
    container.gpus, container.driver_injected = [], False
    if container.view.privileged and "nvidia" in kubelet.host.modules:
        container.gpus = list(range(count))
        _device_files(container)
    fault = _by_cri(container) or _by_nvidia(container, count)
    if fault or not container.driver_injected:
        return fault
    _device_files(container)
    if container.devices and not container.image.family:
        kubelet.host.compute(
            container.container_id, container.gpus
        )  # The behavior of a user's image is unknown, so it is treated as a job that uses all of its GPUs.
    return ""


def _by_cri(container: Any) -> str:
    """CDI devices that containerd or CRI-O injects, whatever the handler: those of the CRI's field, and of annotations with CDI's own prefix."""
    kubelet = container.pod.kubelet
    names = kubelet.devices.cdi_requests(container.devices) + kubelet.devices.cdi_annotations(
        container.devices, cdi.ANNOTATION_PREFIX
    )
    if not names or not kubelet.host.injects_cdi:
        return ""
    fault = _resolve(container, names)
    return (
        f"failed to create containerd container: CDI device injection failed: {fault}"
        if fault
        else _run_hooks(container, names)
    )


def _by_nvidia(container: Any, count: int) -> str:
    """What NVIDIA's runtime adds, in its mode (newModeModifier and newCDIModifier in internal/modifier)."""
    kubelet, pod = container.pod.kubelet, container.pod
    handler = pod.handler if pod.handler not in DEFAULT_HANDLERS else kubelet.host.default_handler
    binary = kubelet.host.handlers.get(handler, "")
    if not _is_nvidia(handler, binary):
        return ""
    settings = cdi.runtime(kubelet.host, binary)
    annotated = [
        name for prefix in settings.prefixes for name in kubelet.devices.cdi_annotations(container.devices, prefix)
    ]
    by_variable = [
        word for word in container.env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if word not in ("", "void")
    ]
    mode = settings.mode if settings.mode != "auto" else _detected(container, annotated or by_variable)
    if mode in ("cdi", "jit-cdi"):
        kind = settings.default_kind if mode == "cdi" else AUTOMATIC
        names = [name if "=" in name else f"{kind}={name}" for name in annotated or by_variable]
        if not all(name.startswith(AUTOMATIC) for name in names):
            fault = _resolve(container, names)
            return (
                _failed_runtime(binary, f"failed to inject CDI devices: {fault}")
                if fault
                else _run_hooks(container, names)
            )
        by_variable = [name.partition("=")[2] for name in names]
        return _by_driver(container, by_variable, count, binary, settings.root) if names else ""
    if mode == "csv" and (others := [word for word in by_variable if word not in ("all", "0")]):
        # purecsvDeviceSpecGenerators in pkg/nvcdi/lib-csv.go, since v1.19.0.
        why = f"failed to construct device spec generators: unsupported device id: {others[0]}"
        return _failed_runtime(binary, f'failed to generate CDI spec for mode "csv": {why}')
    return _by_hook(container, by_variable, count) if by_variable else ""


#: automaticDeviceKind in internal/modifier/cdi.go.
AUTOMATIC = "runtime.nvidia.com/gpu"


def _detected(container: Any, names: list[str]) -> str:
    """ResolveRuntimeMode of internal/info/auto.go. Its detection is older than CDI specifications in memory in the toolkits of v1.17."""
    if names and all("=" in name for name in names):
        return "cdi"
    gpu = container.pod.kubelet.host.spec.gpu
    return (
        "csv" if gpu is not None and container.pod.kubelet.host.read("/etc/nv_tegra_release") is not None else "jit-cdi"
    )


def _resolve(container: Any, names: list[str]) -> str:
    """The GPUs of CDI devices, into the container. Returns CDI's own message."""
    host, known = container.pod.kubelet.host, cdi.devices(container.pod.kubelet.host)
    missing = [name for name in names if name not in known]
    if missing:
        return f"unresolvable CDI devices {', '.join(missing)}"
    if names and "nvidia" not in host.modules:
        return 'failed to inject devices: failed to stat CDI host device "/dev/nvidiactl": no such file or directory'
    if names:
        _give(container, [index for name in names for index in known[name].gpus])
    return ""


def _run_hooks(container: Any, names: list[str]) -> str:
    host, known = container.pod.kubelet.host, cdi.devices(container.pod.kubelet.host)
    for name in names:
        for hook in known[name].hooks:
            if host.read(hook) is None:
                return (
                    f"{_CREATE}runc create failed: unable to start container process: error during container init: "
                    f"error running createContainer hook #0: fork/exec {hook}: no such file or directory"
                )
    return ""


def _by_driver(container: Any, chosen: list[str], count: int, binary: str, root: str) -> str:
    """A specification in memory, of what NVML reports (newAutomaticCDISpecModifier)."""
    host = container.pod.kubelet.host
    error = (
        nvml.NO_LIBRARY
        if host.read(root.rstrip("/") + cdi.LIBRARY) is None
        else nvml.NO_MODULE
        if "nvidia" not in host.modules
        else ""
    )
    if error:
        return _failed_runtime(
            binary, f'failed to generate CDI spec for mode "auto": failed to initialize NVML: {error}'
        )
    _give(container, _indices(container, chosen, count))
    return ""


def _by_hook(container: Any, chosen: list[str], count: int) -> str:
    """The hook of the legacy mode, and JetPack's lists of files."""
    if "nvidia" not in container.pod.kubelet.host.modules:
        return (
            f"{_CREATE}runc create failed: unable to start container "
            "process: error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
            "nvidia-container-cli: initialization error: nvml error: driver not loaded"
        )
    _give(container, _indices(container, chosen, count))
    return ""


def _give(container: Any, gpus: list[int]) -> None:
    container.gpus, container.driver_injected = sorted({*container.gpus, *gpus}), True


def _indices(container: Any, chosen: list[str], count: int) -> list[int]:
    """GPUs by the words of NVIDIA_VISIBLE_DEVICES."""
    if "all" in chosen:
        return list(range(count))
    uuids = [gpu_uuid(container.pod.kubelet.host.spec.name, i) for i in range(count)]
    words = [word.split("::")[0] for word in chosen]
    numbers = [int(word) if word.isdigit() else uuids.index(word) if word in uuids else count for word in words]
    return [number for number in numbers if number < count]
