# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that read the kernel and GPUs: nvidia-smi, lsmod, modprobe, chroot, vectorAdd."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Callable
from typing import Any

from fleet_agent.loop import Process, Sleep
from fleet_agent.machine.faults import OFF_THE_BUS
from fleet_agent.machine.hostfs import gpu_uuid, pci_address

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed "
    "and running.\n"
)


def visible_gpus(container: Any) -> list[int]:
    """GPUs that a process of the container can open now."""
    host = container.pod.kubelet.host
    if "nvidia" not in host.modules or host.spec.gpu is None or not host.gpus_work:
        return []
    if container.view.privileged:
        return list(range(host.spec.gpu.count))
    return list(container.gpus)


def _smi_present(proc: Any) -> bool:
    path = proc.argv[0]
    if "/" in path:
        return bool(proc.view.is_file(path) or (path == "/usr/bin/nvidia-smi" and proc.container.driver_injected))
    return bool(
        proc.container.driver_injected
        or proc.container.image.family == "driver"
        or proc.view.is_file("/usr/bin/nvidia-smi")
    )


def nvidia_smi(proc: Any) -> Process:
    if not _smi_present(proc):
        proc.out(
            f"sh: line 1: {proc.argv[0]}: "
            + ("No such file or directory\n" if "/" in proc.argv[0] else "command not found\n")
        )
        return 127
    return smi_output(proc)
    yield


def smi_output(proc: Any) -> int:
    """Output of nvidia-smi, with its own exit codes (its manual, RETURN VALUE): 9 driver not loaded, 6 no device, 15 a GPU has fallen off the bus.

    GPUs are numbered as NVML enumerates those that the process can open, from 0 in each container.
    """
    host = proc.host
    if "nvidia" not in host.modules:
        proc.out(NO_DRIVER)
        return 9
    gpus = visible_gpus(proc.container)
    if not gpus:
        proc.say("No devices were found")
        return 6
    lost = next((index for index in gpus if host.struck.get(index) == OFF_THE_BUS), None)
    if lost is not None:
        proc.say(
            f"Unable to determine the device handle for GPU {pci_address(lost)}: GPU is lost.  Reboot the system to recover this GPU"
        )
        return 15
    gpu, version = host.spec.gpu, host.modules["nvidia"]
    query = next((w.partition("=")[2] for w in proc.argv if w.startswith("--query-gpu=")), "")
    apps = next((w.partition("=")[2] for w in proc.argv if w.startswith("--query-compute-apps=")), "")
    if apps:
        _query_apps(proc, apps.split(","), gpus)
    elif "-L" in proc.argv or "--list-gpus" in proc.argv:
        for number, index in enumerate(gpus):
            proc.say(f"GPU {number}: {gpu.product.replace('-', ' ')} (UUID: {gpu_uuid(host.spec.name, index)})")
    elif query:
        _query(proc, query.split(","), gpus, version)
    elif "-q" in proc.argv:
        proc.out(
            f"==============NVSMI LOG==============\n\nDriver Version                            : {version}\n"
            f"Attached GPUs                             : {len(gpus)}\n"
        )
    else:
        proc.say(f"| NVIDIA-SMI {version}    Driver Version: {version}    CUDA Version: {cuda_version(version)} |")
        for number in range(len(gpus)):
            proc.say(f"|   {number}  {gpu.product.replace('-', ' ')}    On  |  {gpu.memory_mib}MiB |")
    return 0


def _query(proc: Any, fields: list[str], gpus: list[int], version: str) -> None:
    form = next((w.partition("=")[2] for w in proc.argv if w.startswith("--format=")), "csv")
    gpu = proc.host.spec.gpu
    if "noheader" not in form:
        proc.say(", ".join(fields))
    for number, index in enumerate(gpus):
        known = {
            "index": str(number),
            "uuid": gpu_uuid(proc.host.spec.name, index),
            "name": gpu.product.replace("-", " "),
            "gpu_name": gpu.product.replace("-", " "),
            "driver_version": version,
            "count": str(len(gpus)),
            "memory.total": str(gpu.memory_mib) + ("" if "nounits" in form else " MiB"),
            "gpu_uuid": gpu_uuid(proc.host.spec.name, index),
            "ecc.mode.current": _mode(gpu.ecc),
            "mig.mode.current": _mode(gpu.mig if gpu.mig_capable else None),
            "ecc.errors.uncorrected.volatile.total": str(int(index in proc.host.struck)) if gpu.ecc else "[N/A]",
        }
        proc.say(", ".join(known.get(field.strip(), "[N/A]") for field in fields))


def _mode(enabled: bool | None) -> str:
    """ "[N/A]" for a GPU without the mode, such as MIG on an L4 (driver 595.71.05)."""
    return "[N/A]" if enabled is None else "Enabled" if enabled else "Disabled"


def _query_apps(proc: Any, fields: list[str], gpus: list[int]) -> None:
    """Processes that use GPUs. The driver has their pids of the host, so that none is listed in another process namespace (NVIDIA/nvidia-docker issue 179)."""
    if "noheader" not in next((w for w in proc.argv if w.startswith("--format=")), ""):
        proc.say(", ".join(fields))
    if not proc.pod.spec.get("hostPID"):
        return
    for number, held in enumerate(proc.host.computing.values()):
        for index in held:
            if index in gpus:
                known = {
                    "gpu_uuid": gpu_uuid(proc.host.spec.name, index),
                    "pid": str(4000 + number),
                    "name": "job",
                    "process_name": "job",
                }
                proc.say(", ".join(known.get(field.strip(), "[N/A]") for field in fields))


def cuda_version(driver: str) -> str:
    """CUDA version of a driver branch."""
    branch = driver.split(".", maxsplit=1)[0]
    return {
        "610": "13.3",
        "595": "13.2",
        "580": "13.0",
        "570": "12.8",
        "550": "12.4",
        "540": "12.6",
        "535": "12.2",
    }.get(branch, "13.0")


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
        return smi_output(dataclasses.replace(proc, argv=words))
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
    gpus = visible_gpus(proc.container)
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
    "nvidia-smi": nvidia_smi,
    "lsmod": _lsmod,
    "modprobe": _modprobe,
    "chroot": _chroot,
}
#: Programs that only exist on the machine.
_OF_HOST: dict[str, Callable[[Any], Process]] = {"containerd": _containerd}
