# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that read the kernel and GPUs: lsmod, modprobe, chroot, vectorAdd."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable
from typing import Any

from fleet_agent.loop import Process, Sleep
from fleet_agent.machine import nvml, smi
from fleet_agent.machine.hostfs import gpu_uuid


def _lsmod(proc: Any) -> Process:
    proc.say("Module                  Size  Used by")
    for name in proc.host.modules:
        users = ",".join(n for n in ("nvidia_uvm", "nvidia_modeset") if name == "nvidia" and n in proc.host.modules)
        proc.say(f"{name:<20} {104071168:>9}  {proc.host.references(name)} {users}")
    return 0
    yield


def _modprobe(proc: Any) -> Process:
    """Outside of a driver container there are no NVIDIA modules to load. Other modules succeed."""
    if not proc.privileged:
        proc.say("modprobe: ERROR: could not insert module: Operation not permitted")
        return 1
    for word in proc.argv[1:]:
        if word.startswith("nvidia") and word.replace("-", "_") not in proc.host.modules:
            proc.say(f"modprobe: FATAL: Module {word} not found in directory /lib/modules/{proc.host.spec.kernel}")
            return 1
    return 0
    yield


def _chroot(proc: Any) -> Process:
    root, words = proc.argv[1], proc.argv[2:]
    if not proc.view.is_folder(root):
        proc.say(f"chroot: cannot change root directory to '{root}': No such file or directory")
        return 125
    if not words:
        return 0
    name = posixpath.basename(words[0])
    paths = [words[0]] if "/" in words[0] else [f"/usr/bin/{name}", f"/usr/sbin/{name}", f"/bin/{name}"]
    if not any(proc.view.is_file(root.rstrip("/") + path) for path in paths) and name not in (
        "sh",
        "lsmod",
        "modprobe",
        "true",
    ):
        proc.say(f"chroot: failed to run command '{words[0]}': No such file or directory")
        return 127
    if name == "nvidia-smi":
        return smi.output(proc, words[1:])
    return (yield from {**TOOLS, **_OF_HOST}.get(name, _true)(dataclasses.replace(proc, argv=words)))


def _true(_proc: Any) -> Process:
    return 0
    yield


def vector_add(proc: Any) -> Process:
    """The CUDA sample: one CUDA kernel on the first device in CUDA_VISIBLE_DEVICES."""
    proc.say("[Vector addition of 50000 elements]")
    why = _cuda_fault(proc)
    if why:
        proc.say(f"Failed to allocate device vector A (error code {why})!")
        return 1
    proc.host.clients.add(proc.container.container_id)
    yield Sleep(proc.clock.delay("cuda_sample"))
    proc.host.clients.discard(proc.container.container_id)
    proc.out(
        "Copy input data from the host memory to the CUDA device\nCUDA kernel launch with 196 blocks of 256 threads\n"
        "Copy output data from the CUDA device to the host memory\nTest PASSED\nDone\n"
    )
    return 0


def _cuda_fault(proc: Any) -> str:
    """cudaGetErrorString (of CUDA 12.9's runtime) why memory cannot be allocated on the first visible device, "" if it can."""
    if not proc.container.driver_injected:
        return "CUDA driver version is insufficient for CUDA runtime version"
    if "nvidia" not in proc.host.modules:
        return "no CUDA-capable device is detected"
    faults, spec = proc.kubelet.agent.faults, proc.host.spec
    if faults.fabric_down(spec):
        return "system not yet initialized"  # 802, before any device is checked
    gpus = nvml.visible_gpus(proc.container)
    device = _first_visible(gpus, [gpu_uuid(spec.name, i) for i in gpus], proc.env.get("CUDA_VISIBLE_DEVICES"))
    if device is None:
        return "no CUDA-capable device is detected"
    if any(device in held for name, held in proc.host.computing.items() if name != proc.container.container_id):
        return "out of memory"
    if device in proc.host.struck:
        return "uncorrectable ECC error encountered"  # 214
    return "system not yet initialized" if faults.cuda_broken(spec, len(gpus)) == device else ""


def _first_visible(gpus: list[int], uuids: list[str], chosen: str | None) -> int | None:
    """chosen: UUIDs or numbers, None for all."""
    if chosen is None:
        return gpus[0] if gpus else None
    for word in chosen.split(","):
        if word in uuids:
            return gpus[uuids.index(word)]
        if word.isdigit() and int(word) < len(gpus):
            return gpus[int(word)]
    return None


def _containerd(proc: Any) -> Process:
    """containerd config dump of the machine: its handlers and the default one, in the format of version 2."""
    host, key = proc.host, 'plugins."io.containerd.grpc.v1.cri".containerd'
    proc.say(f'[{key}]\n  default_runtime_name = "{host.default_handler or "runc"}"')
    for name, binary in sorted(host.handlers.items()):
        if name:
            proc.say(
                f'[{key}.runtimes.{name}]\n  runtime_type = "io.containerd.runc.v2"\n[{key}.runtimes.{name}.options]\n  BinaryName = "{binary}"'
            )
    return 0
    yield


TOOLS: dict[str, Callable[[Any], Process]] = {
    "nvidia-smi": smi.nvidia_smi,
    "lsmod": _lsmod,
    "modprobe": _modprobe,
    "chroot": _chroot,
}
#: Programs that only exist on the machine.
_OF_HOST: dict[str, Callable[[Any], Process]] = {"containerd": _containerd}
