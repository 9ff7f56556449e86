# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device_plugin role's objects: a plugin and a GPU feature discovery for each configuration.

There is one DaemonSet for each configuration instead of NVIDIA's config-manager. That is an additional container in each pod which shares its
process namespace, needs its own permission to read Nodes, and requires a label on each node.
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, placement
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.driver_matrix import object_name
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects import (
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
    named,
    stamp,
    take,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import Fleet, read_fleet
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.provider import Component, provider_of

PLUGIN, DISCOVERY, CONFIG_MAP = "nvidia-device-plugin", "gpu-feature-discovery", "nvidia-device-plugin-config"
DEFAULT_CONFIG = "default"
#: A ClusterPolicy deploys its own plugin.
_COMPONENT = Component(
    "device_plugin", "device plugin", ("cluster_policy", "device_plugin"), "the kubelet accepts only one for a resource"
)
#: DaemonSet to the label that disables it on a node.
_SWITCHES = {PLUGIN: "device-plugin", DISCOVERY: "gpu-feature-discovery"}


def plan(
    manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], facts: c.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """Objects of the set `device-plugin`, with assumed, unknown, notes and faults. settings: see the filter's documentation."""
    fleet, faults = read_fleet(settings.get("pools"), facts)
    fleet = platforms.as_declared(fleet, settings)
    made = StagePlan(faults=faults)
    made.faults += platforms.identity_faults(fleet, settings)
    provider = provider_of(_COMPONENT, fleet, settings, made)
    if provider == "hwaccel":
        try:
            objects = _objects(manifests, settings, fleet, made)
        except placement.TooManyTerms as error:
            made.faults.append(
                Fault(
                    "the pools' selectors cannot be combined", "pools", str(error), "use one label that names the pool"
                )
            )
        else:
            stamp(objects)
            objects += namespaces.needed(objects, "device-plugin", settings, facts, made)
            made.objects = finish(objects, Sources.of(settings), "device-plugin")
    made.faults += references.missing(made.objects, facts)
    made.faults += patched.faults(made.objects, settings, "device_plugin_patches")
    return made.as_dict(provider, fleet.namespace_of("device_plugin") if provider == "existing" else "", fleet.existing)


def _objects(
    manifests: c.Sequence[Manifest], settings: c.Mapping[str, t.Any], fleet: Fleet, made: StagePlan
) -> list[Manifest]:
    configs = {DEFAULT_CONFIG: {"version": "v1"}, **(settings.get("configs") or {})}
    used = _used(fleet, configs, made)
    kept = node_guard.fitted(
        (one for one in manifests if one["kind"] != "DaemonSet"), fleet.version, "GPU feature discovery", made
    )
    kept += [_config_map(manifests, name, configs[name]) for name in used]
    for name, terms in used.items():
        for daemon_set in (PLUGIN, DISCOVERY):
            kept.append(_daemon_set(take(manifests, "DaemonSet", daemon_set), name, terms))
    return kept + platforms.extra_objects(platforms.of(fleet.distribution), kept)


def _used(fleet: Fleet, configs: c.Mapping[str, t.Any], made: StagePlan) -> dict[str, list[placement.Term]]:
    """Configuration to its nodes: those of pools that name it, and all others for the default."""
    gpu = placement.gpu_nodes(foreign_nfd=bool(fleet.found("nfd")))
    none = [pool for pool in fleet.pools if pool.driver.provider == "none"]
    special: dict[str, list[placement.Term]] = {}
    for pool in fleet.pools:
        name = pool.plugin_config or DEFAULT_CONFIG
        if name not in configs:
            next_step = f"add it to device_plugin_configs, or use one of {', '.join(sorted(configs))}"
            made.faults.append(
                Fault(
                    f"pool {pool.name}: device plugin configuration {name!r} does not exist",
                    "plugin_config",
                    "",
                    next_step,
                )
            )
            continue
        if ((configs[name] or {}).get("sharing") or {}).get("mps") is not None:
            why, next_step = (
                "the MPS control daemon is not deployed, and without it the plugin offers no GPU",
                "share them by timeSlicing, or by MIG",
            )
            made.faults.append(
                Fault(
                    f"pool {pool.name}: GPUs cannot be shared by MPS yet",
                    f"device_plugin_configs {name}",
                    why,
                    next_step,
                )
            )
        if name != DEFAULT_CONFIG and pool not in none:
            special.setdefault(name, []).extend(placement.both(gpu, placement.of_pool(pool.name, fleet.pools)))
    apart = [pool for pool in fleet.pools if pool in none or (pool.plugin_config or DEFAULT_CONFIG) != DEFAULT_CONFIG]
    return {DEFAULT_CONFIG: placement.both(gpu, placement.outside(apart)), **dict(sorted(special.items()))}


def _config_map(manifests: c.Sequence[Manifest], name: str, config: t.Any) -> Manifest:
    """The ConfigMap that the role's DaemonSet mounts, in the format of the plugin."""
    namespace = take(manifests, "DaemonSet", PLUGIN)["metadata"]["namespace"]
    metadata = {"name": _named(CONFIG_MAP, name), "namespace": namespace}
    body = json.dumps({"version": "v1", **config}, indent=2, sort_keys=True) + "\n"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": body}}


def _daemon_set(made: Manifest, config: str, terms: c.Sequence[placement.Term]) -> Manifest:
    base = made["metadata"]["name"]
    template = made["spec"]["template"]
    made["metadata"]["name"] = _named(base, config)
    for labels in (made["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]):
        labels[names.OURS + "plugin-config"] = object_name(config)
    for volume in template["spec"]["volumes"]:
        if volume.get("configMap", {}).get("name") == CONFIG_MAP:
            volume["configMap"]["name"] = _named(CONFIG_MAP, config)
    placement.place(made, placement.both(terms, [(placement.switch(_SWITCHES[base]),)]))
    return made


def _named(base: str, config: str) -> str:
    """nvidia-device-plugin for the default, nvidia-device-plugin-<name> for another."""
    return base if config == DEFAULT_CONFIG else named(base, config)
