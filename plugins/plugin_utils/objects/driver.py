# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver role's objects: the provider of each pool's driver, and its objects."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import DEFAULT_VERSION
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import PROVIDERS
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import (
    credentials,
    docker,
    driver_running,
    namespaces,
    node_guard,
    patched,
    platforms,
    references,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import (
    Manifest,
    Sources,
    StagePlan,
    finish,
    listed,
    stamp,
    take,
    text,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.driver_daemonsets import (
    DriverDaemonSets,
    Options,
    PoolDriver,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import (
    DriverInCluster,
    Fleet,
    NodeClass,
    read_fleet,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.toolkits import PROVEN, toolkits

DRIVER, VALIDATOR = "nvidia-driver", "nvidia-validator"


def plan(
    manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], facts: c.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """Objects of the set `driver`, with assumed, unknown, notes and faults. settings: see the filter's documentation."""
    fleet, faults = read_fleet(settings.get("pools"), facts)
    fleet = platforms.as_declared(fleet, settings)
    made = StagePlan(faults=faults)
    made.faults += platforms.identity_faults(fleet, settings)
    settings, unsafe = credentials.taken_out(settings)
    made.faults += unsafe
    providers = {name: _provider(name, fleet, settings, made) for name in fleet.pool_names}
    overall = _overall(providers, fleet, settings)
    made.faults += _unrendered(providers, overall, fleet)
    proven = [name for name, provider in providers.items() if provider in PROVEN]
    made.faults += platforms.system_faults(
        {name: {one.os_id for one in fleet.gpus if one.pool == name} for name in proven}
    )
    if overall in PROVEN:
        try:
            objects = _objects(manifests, settings, fleet, providers, made)
        except placement.TooManyTerms as error:
            made.faults.append(
                Fault(
                    "the pools' selectors cannot be combined", "pools", str(error), "use one label that names the pool"
                )
            )
        else:
            stamp(objects)
            objects += namespaces.needed(objects, "driver", settings, facts, made)
            made.objects = finish(objects, Sources.of(settings), "driver")
        made.unknown += _undiscovered(fleet, settings)
    if fleet.awaited:
        silent = _silent(providers, fleet)
        made.unknown += [
            f"pool {name}: driver DaemonSets, until its machines are nodes of the cluster" for name in silent
        ]
    elif not fleet.gpus and not fleet.undiscovered:
        made.unknown.append("driver DaemonSets: nodes with GPUs are only known after feature_discovery")
    made.assumed += [
        f"pool {one.pool}: GPUs on {one.nodes or 'its'} nodes with kernel {one.kernel}"
        for one in fleet.gpus
        if one.assumed
    ]
    made.faults += references.missing(made.objects, facts)
    made.faults += patched.faults(made.objects, settings, "driver_patches")
    return made.as_dict(
        overall, fleet.namespace_of("driver", "device_plugin") if overall == "existing" else "", fleet.existing
    ) | {"pools": providers}


def _undiscovered(fleet: Fleet, settings: c.Mapping[str, t.Any]) -> list[str]:
    """Unknowns about nodes that may have GPUs, which feature discovery has not labeled yet."""
    foreign = fleet.found("cluster_policy", "driver")
    nodes: collections.Counter[str] = collections.Counter()
    for one in fleet.undiscovered:
        declared = fleet.pool(one.pool).driver.provider or text(settings.get("provider"))
        if declared == "hwaccel" or not (declared or foreign):
            nodes[one.pool] += one.nodes
    return [
        f"pool {name}: driver DaemonSets and labels nvidia.com/gpu.deploy.* for {count} nodes, until feature_discovery reports whether they have GPUs"
        for name, count in sorted(nodes.items())
    ]


def _unrendered(providers: c.Mapping[str, str], overall: str, fleet: Fleet) -> list[Fault]:
    """An error for pools whose operating system is unknown because no cluster is queried: rendered files would lack their driver."""
    silent = _silent(providers, fleet)
    if fleet.observed or fleet.awaited or (providers and not silent) or overall != "hwaccel":
        return []
    pools = f" for pool{'s' * (len(silent) > 1)} {', '.join(silent)}" if silent else ""
    lacking = "the pool has no machines with kernel and os_image" if silent else "no pool with gpu is declared"
    next_step = "declare pools with gpu, and with machines that have kernel and os_image (docs/render.md), or set driver_provider to host, existing or none"
    why = f"no cluster is queried, and {lacking}"
    return [Fault(f"no driver can be rendered{pools}", "hwaccel_pools", why, next_step)]


def _silent(providers: c.Mapping[str, str], fleet: Fleet) -> list[str]:
    """Pools with a driver whose nodes are not known."""
    known = {one.pool for one in fleet.gpus}
    return [name for name, provider in providers.items() if provider == "hwaccel" and name not in known]


def _provider(name: str, fleet: Fleet, settings: c.Mapping[str, t.Any], made: StagePlan) -> str:
    """The provider declared for the pool, else for the role, else the detected one."""
    declared = fleet.pool(name).driver.provider or text(settings.get("provider"))
    host = sorted({one.host_driver for one in fleet.gpus if one.pool == name and one.host_driver})
    foreign = fleet.found("cluster_policy", "driver")
    if declared and declared not in PROVIDERS:
        made.faults.append(
            Fault(
                f"driver provider {declared!r} is unknown", f"pool {name}", "", f"choose one of {', '.join(PROVIDERS)}"
            )
        )
        return "none"
    if declared == "hwaccel" and foreign:
        next_step = "set provider existing, or remove the other one first"
        made.faults.append(
            Fault(
                f"pool {name}: another driver deployment is in the cluster",
                foreign[0],
                "both would manage the same nodes",
                next_step,
            )
        )
    if declared == "hwaccel" and host:
        why = f"driver {host[0]} is installed on the host"
        made.faults.append(
            Fault(
                f"pool {name}: a container may not replace the host's driver",
                "",
                why,
                "set provider host, or remove that driver",
            )
        )
    if declared:
        made.notes.append(f"pool {name}: driver by {declared} (declared)")
        return declared
    if foreign:
        made.notes.append(f"pool {name}: driver by existing (detected {foreign[0]})")
        return "existing"
    bare = [one for one in fleet.gpus if one.pool == name and not one.host_driver]
    found = "host" if host and not bare else "hwaccel"
    # The API shows a host's driver only after a component detected it.
    why = (
        f"detected driver {host[0]} on the host"
        if found == "host"
        else "no other was detected; declare provider host if the machines have their own"
    )
    made.notes.append(f"pool {name}: driver by {found} ({why})")
    return found


def _overall(providers: c.Mapping[str, str], fleet: Fleet, settings: c.Mapping[str, t.Any]) -> str:
    """The role's provider: hwaccel if one pool has it, then host, then existing, then none."""
    for candidate in PROVIDERS[:2]:
        if candidate in providers.values():
            return candidate
    if not providers:
        return text(settings.get("provider")) or ("existing" if fleet.found("cluster_policy", "driver") else "hwaccel")
    return "existing" if "existing" in providers.values() else "none"


def _objects(
    manifests: c.Sequence[Manifest],
    settings: c.Mapping[str, t.Any],
    fleet: Fleet,
    providers: c.Mapping[str, str],
    made: StagePlan,
) -> list[Manifest]:
    running = any(one.running for one in fleet.drivers)
    ours = (
        running
        or not providers
        or any(_brings(name, provider, fleet, settings) for name, provider in providers.items())
    )
    platform = platforms.of(fleet.distribution)
    kept = [
        one
        for one in manifests
        if one["kind"] != "DaemonSet"
        and (ours or not _of_driver_container(one))
        and not (one["kind"] == "RuntimeClass" and _is_brought(one, fleet, platform))
    ]
    kept = node_guard.fitted(kept, fleet.version, "the driver manager", made)
    proven = [one for one in fleet.gpus if providers.get(one.pool, "hwaccel") in PROVEN]
    kept = docker.fitted(kept, proven)
    made.faults += docker.faults(proven, providers)
    if ours:
        made.faults += platforms.build_faults(fleet.distribution, _building(providers, fleet, settings))
        kept += _drivers(manifests, settings, fleet, providers, made)
    clients = _client_terms(fleet, providers)
    kept += toolkits(manifests, settings, fleet, providers, proven, clients, made)
    validator = take(manifests, "DaemonSet", VALIDATOR)
    placement.place(validator, placement.both(clients, [(placement.switch("operator-validator"),)]))
    kept.append(validator)
    return kept + platforms.extra_objects(platform, kept)


def _is_brought(runtime_class: Manifest, fleet: Fleet, platform: platforms.Platform) -> bool:
    """Whether the RuntimeClass of another deployment exists: according to the cluster, or to the distribution if no cluster is queried."""
    if fleet.observed:
        return any(
            row.get("name") == runtime_class["metadata"]["name"] for row in fleet.existing.get("runtime_class") or ()
        )
    return platform.brings_runtime_class


def _building(providers: c.Mapping[str, str], fleet: Fleet, settings: c.Mapping[str, t.Any]) -> list[str]:
    """Pools whose driver may be built on a node: if there is no precompiled one, and for unknown kernels."""
    brought = [name for name, provider in providers.items() if provider == "hwaccel"]
    return [
        name for name in brought if any(one.source != "precompiled" for one in _pool_drivers(name, fleet, settings))
    ]


def _brings(name: str, provider: str, fleet: Fleet, settings: c.Mapping[str, t.Any]) -> bool:
    """Whether a pool has DaemonSets of the driver.

    This includes pools whose host driver was not declared but detected by a driver manager. Its label disables the DaemonSets, and without it they are
    needed. So the next run keeps what the first run created.
    """
    if provider != "host" or fleet.pool(name).driver.provider or text(settings.get("provider")):
        return provider == "hwaccel"
    return any(one.pool == name and one.host_driver == names.PRE_INSTALLED for one in fleet.gpus)


def _of_driver_container(manifest: Manifest) -> bool:
    name = manifest["metadata"]["name"]
    return name.startswith((DRIVER, "hwaccel-gpu-driver"))


def _drivers(
    manifests: c.Sequence[Manifest],
    settings: c.Mapping[str, t.Any],
    fleet: Fleet,
    providers: c.Mapping[str, str],
    made: StagePlan,
) -> list[Manifest]:
    template, options = take(manifests, "DaemonSet", DRIVER), _options(settings)
    maker = DriverDaemonSets(template, fleet, options)
    found: list[Manifest] = []
    for name, provider in providers.items():
        if provider == "host" and _brings(name, provider, fleet, settings):
            met = [one for one in fleet.gpus if one.pool == name and one.host_driver == names.PRE_INSTALLED]
            # A separate instance, so that notes about images of no node are not shown.
            quiet = DriverDaemonSets(template, fleet, options)
            found += [one for pool_driver in _pool_drivers(name, fleet, settings) for one in quiet.of(pool_driver, met)]
            continue
        classes = _classes(name, fleet, made)
        if provider == "hwaccel":
            for pool_driver in _pool_drivers(name, fleet, settings):
                found += maker.of(pool_driver, classes)
        if provider == "hwaccel" and not classes:
            made.unknown.append(f"pool {name}: its driver DaemonSet, until one of its nodes with a GPU is known")
    made.notes += sorted(set(maker.notes))
    staying = driver_running.staying(fleet, {one for one, _sentence in maker.without} - maker.served)
    found, notes = driver_running.keep(found, staying, maker)
    made.notes += notes
    made.faults += _elsewhere(staying, template["metadata"]["namespace"])
    _without_driver(maker, staying, fleet, providers, made)
    return found


def _options(settings: c.Mapping[str, t.Any]) -> Options:
    return Options(
        repository=text(settings.get("repository")),
        module_type=text(settings.get("kernel_module_type")),
        validator_image=text(settings.get("validator_image")),
        precompiled=tuple(listed(settings.get("precompiled_images"))),
        builds=tuple(listed(settings.get("build_images"))),
        build=settings.get("build") or {},
    )


def _classes(pool: str, fleet: Fleet, made: StagePlan) -> list[NodeClass]:
    """GPU nodes of a pool that need a driver. Nodes whose labels lag behind their kernels are listed twice."""
    classes = [one for one in fleet.gpus if one.pool == pool and not one.host_driver]
    lagging = [_as_labeled(one) for one in classes if one.labeled not in ("", placement.nfd_value(one.kernel))]
    made.notes += [
        f"pool {pool}: the driver for kernel {one.kernel} stays while a node is labeled with it" for one in lagging
    ]
    return classes + lagging


def _without_driver(
    maker: DriverDaemonSets,
    staying: c.Sequence[DriverInCluster],
    fleet: Fleet,
    providers: c.Mapping[str, str],
    made: StagePlan,
) -> None:
    """Reports nodes without a driver, and an error if no node gets one."""
    without = sorted(
        {
            sentence
            for node_class, sentence in maker.without
            if not any(driver_running.takes(one, node_class, fleet) for one in staying)
        }
    )
    served = [one for one in fleet.gpus if providers.get(one.pool) == "hwaccel" and not one.host_driver]
    kinds = {(one.pool, one.kernel, one.os_id, one.os_version, one.architecture) for one in served}
    if without and len(without) >= len(kinds):
        next_step = "boot a kernel that has one, add your own to driver_precompiled_images, or set provider host"
        made.faults.append(Fault("no GPU node can get a driver", "", "; ".join(without[:3]), next_step))
    made.notes += [f"will fail at the driver gate: {sentence}" for sentence in without]


def _elsewhere(drivers: c.Iterable[DriverInCluster], namespace: str) -> list[Fault]:
    """Two drivers on one node are only prevented within one namespace."""
    return [
        Fault(
            f"driver DaemonSet {one.name} runs on {one.running} nodes in namespace {one.namespace}",
            f"namespace {namespace}",
            "two drivers would run on these nodes",
            f"set hwaccel_namespace to {one.namespace}, or run hwaccel.gpu.teardown first",
        )
        for one in drivers
        if one.namespace != namespace
    ]


def _as_labeled(one: NodeClass) -> NodeClass:
    """The previous class of a rebooted node, as long as its label is not updated, because its driver pod still exists."""
    return dataclasses.replace(one, kernel=one.labeled)


def _pool_drivers(name: str, fleet: Fleet, settings: c.Mapping[str, t.Any]) -> list[PoolDriver]:
    driver = fleet.pool(name).driver
    version = driver.version or text(settings.get("version")) or DEFAULT_VERSION
    source = driver.source or text(settings.get("source"))
    beside = tuple(
        sorted({text(one) for one in listed((settings.get("extra_versions") or {}).get(name))} - {version, ""})
    )
    return [
        PoolDriver(name, version, source, beside),
        *(PoolDriver(name, other, source, default=False) for other in beside),
    ]


def _client_terms(fleet: Fleet, providers: c.Mapping[str, str]) -> list[placement.Term]:
    """Nodes of all pools that get toolkit and validator."""
    terms = placement.gpu_nodes(foreign_nfd=bool(fleet.found("nfd")))
    left_out = [name for name, provider in providers.items() if provider not in PROVEN]
    if not left_out:
        return terms
    if all(fleet.pool(name).selector or fleet.pool(name).nodes for name in left_out):
        return placement.both(terms, placement.outside(fleet.pool(name) for name in left_out))
    kept = [
        term
        for name, provider in providers.items()
        if provider in PROVEN
        for term in placement.of_pool(name, fleet.pools)
    ]
    return placement.both(terms, kept)
