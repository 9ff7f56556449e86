# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutants that the simulator once did not notice, by what they change. Every run has them."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import CHANGED, OTHER, Mutant, Obj, at

#: Workload and name of the variable, volume or container, the field of it, and the change.
_KNOWN: tuple[tuple[str, str, tuple[str | int, ...], str], ...] = (
    ("nvidia-container-toolkit", "runtime-config", ("hostPath", "path"), CHANGED),
    ("nvidia-container-toolkit", "runtime-drop-in", ("hostPath", "path"), CHANGED),
    ("nvidia-container-toolkit", "RUNTIME_DROP_IN_CONFIG", ("value",), CHANGED),
    ("nvidia-container-toolkit", "RUNTIME_DROP_IN_CONFIG_HOST_PATH", ("value",), CHANGED),
    ("nvidia-container-toolkit", "NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND", ("value",), CHANGED),
    ("nvidia-container-toolkit", "NVIDIA_CONTAINER_RUNTIME_MODE", ("value",), CHANGED),
    ("nvidia-container-toolkit", "CDI_ENABLED", ("value",), OTHER),
    ("nvidia-container-toolkit", "cdi-root", ("hostPath", "path"), CHANGED),
    ("nvidia-container-toolkit", "toolkit-install-dir", ("hostPath", "path"), CHANGED),
    ("nvidia-driver", "firmware-search-path", ("hostPath", "path"), CHANGED),
    ("nvidia-driver", "nv-firmware", ("hostPath", "path"), CHANGED),
    ("nvidia-driver", "KERNEL_MODULE_TYPE", ("value",), CHANGED),
    ("nvidia-driver", "k8s-driver-manager", ("args", 0), CHANGED),
    ("nvidia-device-plugin", "NVIDIA_CDI_HOOK_PATH", ("value",), CHANGED),
    ("nvidia-device-plugin", "DEVICE_LIST_STRATEGY", ("value",), CHANGED),
    ("nvidia-device-plugin", "CDI_ENABLED", ("value",), OTHER),
    ("nvidia-device-plugin", "cdi-root", ("hostPath", "path"), CHANGED),
    ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter", ("readinessProbe", "httpGet", "path"), CHANGED),
    ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter", ("readinessProbe", "httpGet", "port"), CHANGED),
    ("nvidia-dcgm-exporter", "DCGM_EXPORTER_LISTEN", ("value",), CHANGED),
    ("nvidia-dcgm-exporter", "DCGM_EXPORTER_COLLECTORS", ("value",), CHANGED),
    ("nvidia-dcgm-exporter", "pod-resources", ("hostPath", "path"), CHANGED),
    ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter", ("image",), CHANGED),
)


def known(found: c.Sequence[Mutant], objects: dict[str, list[Obj]]) -> list[Mutant]:
    """These mutants, in the order of all. Raises LookupError if a manifest no longer has what one of them changes."""
    chosen = {_one(found, objects, *row) for row in _KNOWN}
    return [mutant for mutant in found if mutant in chosen]


def _one(
    found: c.Sequence[Mutant],
    objects: dict[str, list[Obj]],
    workload: str,
    name: str,
    field: tuple[str | int, ...],
    change: str,
) -> Mutant:
    for mutant in found:
        if mutant.kind == "DaemonSet" and mutant.name == workload and mutant.change == change:
            above, below = mutant.path[: -len(field)], mutant.path[-len(field) :]
            around: t.Any = at(objects[mutant.role][mutant.index], above)
            if below == field and isinstance(around, dict) and around.get("name") == name:
                return mutant
    raise LookupError(f"{workload} has no {name} with {field}")
