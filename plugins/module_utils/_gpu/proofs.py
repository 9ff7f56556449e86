# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs that a pod ran a computation on a node: what they are valid for, their format, and how they are read from a pod's log. Pure."""

from __future__ import annotations

import dataclasses
import json
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import device_query, hints, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, PoolGpu
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import canonical, digest

#: The last line of the CUDA sample vectorAdd (NVIDIA/cuda-samples, Samples/0_Introduction/vectorAdd/vectorAdd.cu).
COMPUTED = re.compile(r"^Test PASSED\s*$", re.MULTILINE)
#: A line of `nvidia-smi --query-gpu=name,memory.total,driver_version,ecc.mode.current,mig.mode.current,ecc.errors.uncorrected.volatile.total
#: --format=csv,noheader`. A user's pod may query one field less.
_SMI = re.compile(
    r"^(?P<name>[^,\n]+), (?:(?P<memory>\d+) MiB|\[[^]\n]+\]), (?P<driver>[0-9][0-9.]*), (?P<ecc>[^,\n]+), (?P<mig>[^,\n]+)"
    r"(?:, (?:(?P<errors>\d+)|\[[^]\n]+\]))?$",
    re.MULTILINE,
)
#: Modes in the output of nvidia-smi. For GPUs without the mode it is "[N/A]".
_MODES = {"Enabled": True, "Disabled": False}
#: nvidia-smi and GPU feature discovery read the memory by the same call. A declared number is often from the data sheet.
_MEMORY_TOLERANCE = 0.1
#: What GPU feature discovery appends to a product's name (NVIDIA/k8s-device-plugin, internal/lm/resource.go: shared replicas, MIG profile).
_SUFFIX = re.compile(r"(-SHARED|-MIG-.*)$")


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU as a pod observed it; memory in MiB, 0 if it is not accessible; ecc and mig as in the output of nvidia-smi ("Enabled", "Disabled", "[N/A]").

    errors: uncorrectable memory errors since its driver was loaded; 0 if they are not counted.
    """

    name: str
    memory_mib: int
    driver: str
    ecc: str
    mig: str
    errors: int = 0


@dataclasses.dataclass(frozen=True)
class Deviation:
    """A difference between what a pod observed and what was expected, and the next step."""

    text: str
    next_step: str = "correct the pool's declaration, or check the node"


@dataclasses.dataclass(frozen=True)
class Proof:
    """subject: digest of what it is valid for; at: RFC 3339 time in UTC; gpu and driver: as observed by the pod."""

    subject: str = ""
    at: str = ""
    gpu: str = ""
    driver: str = ""

    def text(self) -> str:
        return canonical(dataclasses.asdict(self))


def parse(text: str) -> Proof:
    """The proof from the annotation's value; an invalid one counts as none."""
    try:
        data = json.loads(text or "{}")
        return Proof(**{field.name: str(data.get(field.name) or "") for field in dataclasses.fields(Proof)})
    except (ValueError, AttributeError):
        return Proof()


def subject(node: NodeFacts, pool: Pool, image: str) -> str:
    """Digest of boot, driver, plugin configuration, validating image, set of GPUs and the pool's declaration of them.

    If one of them changes, the proof is no longer valid.
    """
    gpus, declared = sorted(schedulable.observed(node).items()), dataclasses.asdict(pool.gpu or PoolGpu())
    return digest([node.boot_id, node.driver_version, node.plugin_config, image, node.gpu.product, gpus, declared])


def gpus_in(log: str) -> list[Gpu]:
    """The GPUs of the pod according to its log."""
    return [
        Gpu(
            match["name"],
            int(match["memory"] or 0),
            match["driver"],
            match["ecc"].strip(),
            match["mig"].strip(),
            int(match["errors"] or 0),
        )
        for match in _SMI.finditer(log)
    ]


def identity(log: str) -> tuple[str, str]:
    """Product and driver of the first GPU, "" if they were not reported. For an integrated GPU, the newest CUDA version of the driver stands for the driver."""
    if gpus := gpus_in(log):
        return gpus[0].name, gpus[0].driver
    devices = device_query.devices_in(log)
    return (devices[0].name, f"CUDA {devices[0].cuda}") if devices else ("", "")


def deviations(log: str, node: NodeFacts, pool: Pool) -> list[Deviation]:
    """Differences between the log and the fleet; empty if the pod ran a computation on the expected GPU."""
    found = (
        []
        if COMPUTED.search(log)
        else [Deviation("no CUDA kernel ran: its log has no line 'Test PASSED'", "check the pod's log")]
    )
    gpus = gpus_in(log)
    if node.tegra:
        # Integrated GPUs have no nvidia-smi before JetPack 6. The pod decides whether it runs deviceQuery instead.
        found += [Deviation(text) for text in device_query.deviations(log, pool)] if device_query.queried(log) else []
    elif not gpus:
        found.append(Deviation("nvidia-smi listed no GPU in the pod", "check the pod's log"))
    for gpu in gpus:
        found += _of_gpu(gpu, node, pool)
    return list(dict.fromkeys(found))


def _of_gpu(gpu: Gpu, node: NodeFacts, pool: Pool) -> list[Deviation]:
    found, declared = [], pool.gpu or PoolGpu()
    product = declared.product or node.gpu.product
    if product and _plain(gpu.name) != _plain(_SUFFIX.sub("", product)):
        found.append(Deviation(f"the pod sees a {gpu.name}, {product} is expected"))
    if node.driver_version and gpu.driver != node.driver_version:
        found.append(Deviation(f"the pod sees driver {gpu.driver}, the node's label is {node.driver_version}"))
    memory = declared.memory_mib or node.gpu.memory_mib
    if (
        memory
        and gpu.memory_mib
        and "-MIG-" not in node.gpu.product
        and abs(gpu.memory_mib - memory) > memory * _MEMORY_TOLERANCE
    ):
        found.append(Deviation(f"the pod sees {gpu.memory_mib} MiB of memory, {memory} MiB are expected"))
    if gpu.errors:
        # A restarted device plugin offers the GPU again, because it does not keep errors that it observed before.
        text = f"uncorrectable ECC errors of the GPU's memory since its driver was loaded: {gpu.errors}"
        found.append(Deviation(text, hints.next_step(text)))
    # NVML, nvmlDeviceSetEccMode: "takes effect after the next reboot"; nvmlDeviceSetMigMode: resets the GPU, which must not be in use then.
    found += _of_mode("ECC", "ecc", gpu.ecc, declared.ecc, "nvidia-smi -e {} on the node, and reboot it")
    found += _of_mode(
        "MIG",
        "mig",
        gpu.mig,
        declared.mig,
        "nvidia-smi -mig {} on the node while its GPUs are not in use, and reboot it if the output says so",
    )
    return found


def _of_mode(mode: str, key: str, word: str, expected: bool | None, command: str) -> list[Deviation]:
    if expected is None or _MODES.get(word, False) == expected:
        return []
    text = f"{mode} mode is {word}, {'Enabled' if expected else 'Disabled'} is expected"
    if word not in _MODES:
        return [Deviation(text, f"correct gpu.{key} of the pool: this GPU does not have that mode")]
    return [
        Deviation(
            text,
            f"run {command.format(int(expected))} (in its driver pod, if the driver runs in a container), or correct gpu.{key} of the pool",
        )
    ]


def _plain(product: str) -> str:
    return re.sub(r"[\s_-]+", " ", product).strip().casefold()
