# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container toolkits of the driver role: one for each container runtime of nodes with GPUs. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import docker, platforms
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import (
    Manifest,
    StagePlan,
    set_env,
    take,
    text,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import Fleet, NodeClass, pools_with

TOOLKIT = "nvidia-container-toolkit"
#: Providers of drivers whose pools get toolkit and validator.
PROVEN = ("hwaccel", "host")


def toolkits(
    manifests: c.Sequence[Manifest],
    settings: c.Mapping[str, t.Any],
    fleet: Fleet,
    providers: c.Mapping[str, str],
    proven: c.Sequence[NodeClass],
    clients: c.Sequence[placement.Term],
    made: StagePlan,
) -> list[Manifest]:
    """One toolkit for each container runtime: because it writes that runtime's configuration."""
    runtimes = _runtimes(fleet, providers, proven, made)
    if docker.RUNTIME in runtimes:
        pools = ", ".join(pools_with(docker.RUNTIME, proven))
        made.notes.append(f"container toolkit: that of the machines, which have docker (pools {pools})")
        runtimes.remove(docker.RUNTIME)
    found: list[Manifest] = []
    for runtime in runtimes:
        if runtime not in platforms.RUNTIMES:
            made.faults.append(_runtime_fault(runtime, proven))
            continue
        toolkit = take(manifests, "DaemonSet", TOOLKIT)
        own = text(settings.get("runtime_socket")), text(settings.get("runtime_config"))
        platforms.set_runtime(toolkit, runtime, platforms.of(fleet.distribution), *own)
        terms = placement.both(clients, [(placement.switch("container-toolkit"),)])
        if len(runtimes) > 1:
            toolkit["metadata"]["name"] += f"-{runtime}"
            for labels in (
                toolkit["spec"]["selector"]["matchLabels"],
                toolkit["spec"]["template"]["metadata"]["labels"],
            ):
                labels[names.OURS + "runtime"] = runtime
            having = pools_with(runtime, proven)
            terms = placement.both(terms, [term for pool in having for term in placement.of_pool(pool, fleet.pools)])
            if mixed := [pool for pool in having if len({one.runtime for one in proven if one.pool == pool}) > 1]:
                made.faults.append(
                    Fault(
                        f"pool {mixed[0]} has nodes with several container runtimes",
                        "pools",
                        "",
                        "declare one pool for each runtime",
                    )
                )
        placement.place(toolkit, terms)
        set_env(
            toolkit["spec"]["template"]["spec"]["containers"][0],
            {key: text(value) for key, value in (settings.get("toolkit_env") or {}).items()},
        )
        found.append(toolkit)
    return found


def _runtimes(
    fleet: Fleet, providers: c.Mapping[str, str], proven: c.Sequence[NodeClass], made: StagePlan
) -> list[str]:
    """Container runtimes that a toolkit is for: those of nodes with GPUs. If none is known, the one of all nodes. If there are several, it is unknown."""
    known = {one.runtime for one in proven}
    coming = [
        one
        for one in fleet.undiscovered
        if providers.get(one.pool, "hwaccel") in PROVEN and one.runtime in platforms.RUNTIMES
    ]
    possible = known | {one.runtime for one in coming} if known else fleet.runtimes & platforms.RUNTIMES.keys()
    new = {(one.pool, one.runtime) for one in coming} - {(one.pool, one.runtime) for one in proven}
    if new and len(possible) > 1:
        pools = ", ".join(sorted({pool for pool, _runtime in new}))
        what = f"nodes with {' and with '.join(sorted(possible))} may have GPUs, and a pool can only have one container runtime"
        made.unknown.append(f"container toolkits, until feature_discovery has labeled the nodes of {pools}: {what}")
    if not possible and fleet.runtimes == {docker.RUNTIME}:
        return []
    if not possible:
        made.assumed.append("container toolkit: for containerd, because no node with a supported runtime is known")
        return ["containerd"]
    return sorted(known or (possible if len(possible) == 1 else ()))


def _runtime_fault(runtime: str, classes: c.Sequence[NodeClass]) -> Fault:
    pools = ", ".join(pools_with(runtime, classes))
    return Fault(
        f"container runtime {runtime} is not supported",
        f"pools {pools}",
        "",
        f"use one of {', '.join(platforms.RUNTIMES)}, or provider none",
    )
