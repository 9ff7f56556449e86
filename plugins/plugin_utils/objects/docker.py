# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose container runtime is Docker. Pure.

NVIDIA's runtime is part of the machine there, as the default runtime of Docker (role node_runtime): the kubelet's pods cannot choose another one, because
cri-dockerd knows one handler only, docker (RunPodSandbox in its core/sandbox_run.go).
"""

from __future__ import annotations

import collections.abc as c

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import NodeClass, pools_with

RUNTIME = HANDLER = "docker"


def faults(classes: c.Sequence[NodeClass], providers: c.Mapping[str, str]) -> list[Fault]:
    """classes: of nodes that get validators. providers: of drivers, by pool."""
    found, pools = [], pools_with(RUNTIME, classes)
    if driven := [pool for pool in pools if providers.get(pool) != "host"]:
        found.append(
            Fault(
                "container runtime docker is supported with a driver of the host only",
                f"pools {', '.join(driven)}",
                "its toolkit is part of the machine (role node_runtime)",
                "install the driver on the machines and set provider host, or use containerd",
            )
        )
    others = sorted({one.runtime for one in classes if one.runtime and one.runtime != RUNTIME})
    if pools and others:
        found.append(
            Fault(
                f"nodes with GPUs have container runtimes docker and {' and '.join(others)}",
                f"pools {', '.join(pools)}",
                "a RuntimeClass has one handler, and that of docker is another one",
                "use one container runtime for all nodes with GPUs",
            )
        )
    return found


def fitted(manifests: c.Iterable[Manifest], classes: c.Sequence[NodeClass]) -> list[Manifest]:
    """The same, with a RuntimeClass that Docker knows where nodes have it."""
    handler = {"handler": HANDLER} if pools_with(RUNTIME, classes) else {}
    return [{**one, **handler} if one["kind"] == "RuntimeClass" else one for one in manifests]
