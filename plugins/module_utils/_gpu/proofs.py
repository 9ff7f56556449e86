# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs that a pod has computed on a node: what they are valid for, how they are written down, and how a pod's log becomes one. Pure."""

from __future__ import annotations

import dataclasses
import json
import re

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import device_query, hints, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import NodeFacts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import Pool, PoolGpu
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import canonical, digest

#: What the CUDA sample vectorAdd ends with (NVIDIA/cuda-samples, Samples/0_Introduction/vectorAdd/vectorAdd.cu).
COMPUTED = re.compile(r"^Test PASSED\s*$", re.MULTILINE)
#: A line of `nvidia-smi --query-gpu=name,memory.total,driver_version,ecc.mode.current,mig.mode.current,ecc.errors.uncorrected.volatile.total
#: --format=csv,noheader`. The pod of a user may ask for one field less.
_SMI = re.compile(
    r"^(?P<name>[^,\n]+), (?:(?P<memory>\d+) MiB|\[[^]\n]+\]), (?P<driver>[0-9][0-9.]*), (?P<ecc>[^,\n]+), (?P<mig>[^,\n]+)"
    r"(?:, (?:(?P<errors>\d+)|\[[^]\n]+\]))?$",
    re.MULTILINE,
)
#: How nvidia-smi words a mode. Of GPUs without it it says "[N/A]".
_MODES = {"Enabled": True, "Disabled": False}
#: nvidia-smi and GPU feature discovery take the memory from the same call; a declared number is often the data sheet's.
_MEMORY_TOLERANCE = 0.1
#: What GPU feature discovery appends to a product's name (NVIDIA/k8s-device-plugin, internal/lm/resource.go: shared replicas, MIG profile).
_SUFFIX = re.compile(r"(-SHARED|-MIG-.*)$")


@dataclasses.dataclass(frozen=True)
class Gpu:
    """What a pod has seen of a GPU; memory in MiB, 0 where it may not be seen; ecc and mig as nvidia-smi words them ("Enabled", "Disabled", "[N/A]").

    errors: of its memory that could not be corrected, since its driver was loaded; 0 where nobody counts them.
    """

    name: str
    memory_mib: int
    driver: str
    ecc: str
    mig: str
    errors: int = 0


@dataclasses.dataclass(frozen=True)
class Deviation:
    """What a pod has seen otherwise than expected, and what to do about it."""

    text: str
    next_step: str = "correct the pool's declaration, or see what is wrong on the node"


@dataclasses.dataclass(frozen=True)
class Proof:
    """subject: digest of what it is valid for; at: when, RFC 3339 in UTC; gpu and driver: what the pod has seen."""

    subject: str = ""
    at: str = ""
    gpu: str = ""
    driver: str = ""

    def text(self) -> str:
        return canonical(dataclasses.asdict(self))


def parse(text: str) -> Proof:
    """The annotation's value; one that cannot be read proves nothing."""
    try:
        data = json.loads(text or "{}")
        return Proof(**{field.name: str(data.get(field.name) or "") for field in dataclasses.fields(Proof)})
    except (ValueError, AttributeError):
        return Proof()


def subject(node: NodeFacts, pool: Pool, image: str) -> str:
    """Digest of boot, driver, plugin configuration, validating image, set of GPUs and what the pool declares of them.

    Where one changes, the proof is no longer valid.
    """
    gpus, declared = sorted(schedulable.observed(node).items()), dataclasses.asdict(pool.gpu or PoolGpu())
    return digest([node.boot_id, node.driver_version, node.plugin_config, image, node.gpu.product, gpus, declared])


def gpus_in(log: str) -> list[Gpu]:
    """The GPUs that the pod was given, as its log tells them."""
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
    """Product and driver of the first GPU, "" where nobody has reported them. Of an integrated one the newest CUDA that its driver knows tells the driver."""
    if gpus := gpus_in(log):
        return gpus[0].name, gpus[0].driver
    devices = device_query.devices_in(log)
    return (devices[0].name, f"CUDA {devices[0].cuda}") if devices else ("", "")


def deviations(log: str, node: NodeFacts, pool: Pool) -> list[Deviation]:
    """What the log shows otherwise than the fleet says it is; nothing where the pod has computed on what was expected."""
    found = (
        []
        if COMPUTED.search(log)
        else [Deviation("no kernel has computed: its log has no line 'Test PASSED'", "see the pod's log")]
    )
    gpus = gpus_in(log)
    if node.tegra:
        # Integrated GPUs have no nvidia-smi before JetPack 6; whether deviceQuery is asked instead, the pod decides.
        found += [Deviation(text) for text in device_query.deviations(log, pool)] if device_query.queried(log) else []
    elif not gpus:
        found.append(Deviation("nvidia-smi has named no GPU in the pod", "see the pod's log"))
    for gpu in gpus:
        found += _of_gpu(gpu, node, pool)
    return list(dict.fromkeys(found))


def _of_gpu(gpu: Gpu, node: NodeFacts, pool: Pool) -> list[Deviation]:
    found, declared = [], pool.gpu or PoolGpu()
    product = declared.product or node.gpu.product
    if product and _plain(gpu.name) != _plain(_SUFFIX.sub("", product)):
        found.append(Deviation(f"the pod sees a {gpu.name}, {product} is expected"))
    if node.driver_version and gpu.driver != node.driver_version:
        found.append(Deviation(f"the pod sees driver {gpu.driver}, the node's label says {node.driver_version}"))
    memory = declared.memory_mib or node.gpu.memory_mib
    if (
        memory
        and gpu.memory_mib
        and "-MIG-" not in node.gpu.product
        and abs(gpu.memory_mib - memory) > memory * _MEMORY_TOLERANCE
    ):
        found.append(Deviation(f"the pod sees {gpu.memory_mib} MiB of memory, {memory} MiB are expected"))
    if gpu.errors:
        # The device plugin forgets what it has seen when it starts anew, and offers the GPU again.
        text = f"uncorrectable ECC errors of the GPU's memory since its driver was loaded: {gpu.errors}"
        found.append(Deviation(text, hints.next_step(text)))
    # NVML, nvmlDeviceSetEccMode: "takes effect after the next reboot"; nvmlDeviceSetMigMode: resets the GPU, which nobody may use then.
    found += _of_mode("ECC", "ecc", gpu.ecc, declared.ecc, "nvidia-smi -e {} on the node, and reboot it")
    found += _of_mode(
        "MIG",
        "mig",
        gpu.mig,
        declared.mig,
        "nvidia-smi -mig {} on the node while nothing uses its GPUs, and reboot it if that says so",
    )
    return found


def _of_mode(mode: str, key: str, word: str, expected: bool | None, command: str) -> list[Deviation]:
    if expected is None or _MODES.get(word, False) == expected:
        return []
    text = f"{mode} mode is {word}, {'Enabled' if expected else 'Disabled'} is expected"
    if word not in _MODES:
        return [Deviation(text, f"correct gpu.{key} of the pool: this GPU has no such mode")]
    return [
        Deviation(
            text,
            f"run {command.format(int(expected))} (in its driver pod, where a container brings the driver), or correct gpu.{key} of the pool",
        )
    ]


def _plain(product: str) -> str:
    return re.sub(r"[\s_-]+", " ", product).strip().casefold()
