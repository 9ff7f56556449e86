# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between Kubernetes distributions and container runtimes, as data."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import posixpath
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import identity
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.common import Manifest, pod_template, set_env, text
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.objects.fleet import Fleet


@dataclasses.dataclass(frozen=True)
class Platform:
    """socket: of containerd; brings_runtime_class: it has its own RuntimeClass `nvidia`; scc: pods need SecurityContextConstraints.

    builds: driver containers can build modules on its nodes.
    """

    socket: str = "/run/containerd/containerd.sock"
    brings_runtime_class: bool = False
    scc: bool = False
    builds: bool = True


#: The oldest supported version of Kubernetes, major and minor.
OLDEST = (1, 29)
_KUBERNETES = Platform()
_RANCHER = Platform(socket="/run/k3s/containerd/containerd.sock", brings_runtime_class=True)
PLATFORMS: dict[str, Platform] = {
    "kubernetes": _KUBERNETES,
    "openshift": Platform(scc=True, builds=False),
    "k3s": _RANCHER,
    # Since v1.29.13, v1.31.5 and v1.32.1, by its chart rke2-runtimeclasses (rancher/rke2, issues 7574 to 7577).
    "rke2": _RANCHER,
}

#: Runtime to folder of its configuration, file there, folder of drop-ins, drop-in.
RUNTIMES: dict[str, tuple[str, str, str, str]] = {
    "containerd": ("/etc/containerd", "config.toml", "/etc/containerd/conf.d", "99-nvidia.toml"),
    "cri-o": ("/etc/crio", "config.toml", "/etc/crio/crio.conf.d", "99-nvidia.conf"),
}
#: SecurityContextConstraints of every OpenShift since 4.11, in addition to restricted-v2, which every authenticated user may use.
PRIVILEGED, NONROOT = "privileged", "nonroot-v2"
_CONTAINERD_ONLY = ("CONTAINERD_RUNTIME_CLASS", "CONTAINERD_CONFIG", "CONTAINERD_SOCKET", "RUNTIME_SOCKET")

#: How containerd is restarted if it is a unit of the host. By default the toolkit gets the pid of containerd from its socket, often before the kernel
#: sets it, and then signals itself (v1.20, SignalContainerd: SO_PASSCRED is set after connecting, and pid 0 is the caller's own group). It ends,
#: reverts its configuration, and the kubelet restarts it with increasing back-off.
_BY_SYSTEMD = {"RUNTIME_RESTART_MODE": "systemd"}


_TALOS = "talos"


def of(distribution: str) -> Platform:
    return PLATFORMS.get(distribution, _KUBERNETES)


def set_runtime(toolkit: Manifest, runtime: str, platform: Platform, socket: str = "", config: str = "") -> None:
    """Makes a toolkit DaemonSet write this runtime's configuration. socket and config: of containerd, if not at the default paths.

    This follows NVIDIA's operator (transformRuntimeConfigAndSocketMounts in gpu-operator v26.7.0): the file's folder is mounted, and the toolkit is
    given the file's path in its container.
    """
    spec = toolkit["spec"]["template"]["spec"]
    main = spec["containers"][0]
    folder, name, drop_ins, drop_in = RUNTIMES[runtime]
    if config and runtime == "containerd":
        folder, name = posixpath.split(config)
    inside_config = f"/runtime/config-dir/{name}"
    set_env(
        main,
        {
            "RUNTIME": "crio" if runtime == "cri-o" else runtime,
            "RUNTIME_CONFIG": inside_config,
            "RUNTIME_DROP_IN_CONFIG": f"/runtime/config-dir.d/{drop_in}",
            "RUNTIME_DROP_IN_CONFIG_HOST_PATH": f"{drop_ins}/{drop_in}",
        },
    )
    paths = {"runtime-config": folder, "runtime-drop-in": drop_ins}
    if runtime == "cri-o":
        main["env"] = [entry for entry in main["env"] if entry["name"] not in _CONTAINERD_ONLY] + [
            {"name": "CRIO_CONFIG", "value": inside_config}
        ]
        for holder, field in ((main, "volumeMounts"), (spec, "volumes")):
            holder[field] = [entry for entry in holder[field] if entry["name"] != "runtime-socket"]
    else:
        at = socket or platform.socket
        inside = f"/runtime/sock-dir/{posixpath.basename(at)}"
        set_env(main, {"RUNTIME_SOCKET": inside, "CONTAINERD_SOCKET": inside, "CONTAINERD_CONFIG": inside_config})
        if at == _KUBERNETES.socket:
            set_env(main, _BY_SYSTEMD)
        paths["runtime-socket"] = posixpath.dirname(at)
    for volume in spec["volumes"]:
        if volume["name"] in paths:
            volume["hostPath"]["path"] = paths[volume["name"]]


def extra_objects(platform: Platform, manifests: c.Iterable[Manifest]) -> list[Manifest]:
    """On OpenShift: permission to use a SecurityContextConstraints, for each ServiceAccount of pods, in their namespace."""
    if not platform.scc:
        return []
    needed: dict[tuple[str, str], bool] = {}
    for manifest in manifests:
        template = pod_template(manifest)
        if template is not None:
            spec = template["spec"]
            key = (manifest["metadata"]["namespace"], spec["serviceAccountName"])
            host = any("hostPath" in volume for volume in spec.get("volumes", ()))
            needed[key] = needed.get(key, False) or host
    return [
        made
        for (namespace, account), host in sorted(needed.items())
        for made in scc_rights(namespace, account, PRIVILEGED if host else NONROOT)
    ]


def scc_rights(namespace: str, account: str, scc: str) -> list[Manifest]:
    """Role and RoleBinding by which pods of a ServiceAccount may be admitted under a SecurityContextConstraints."""
    metadata = {"name": f"{account}-scc", "namespace": namespace}
    rule = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": [scc],
        "verbs": ["use"],
    }
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": dict(metadata), "rules": [rule]}
    return [
        role,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]


def build_faults(distribution: str, pools: c.Collection[str]) -> list[Fault]:
    """An error for builds on RHCOS. Its kernel headers are only in the Driver Toolkit's image, from which NVIDIA's operator runs a sidecar."""
    if of(distribution).builds or not pools:
        return []
    why = "drivers are built there in the Driver Toolkit's image, which this collection does not support yet"
    next_step = "set driver_source: precompiled and add your images to driver_precompiled_images, or let NVIDIA's GPU Operator deploy the driver"
    return [Fault(f"drivers cannot be built on {distribution}", f"pools {', '.join(sorted(pools))}", why, next_step)]


def system_faults(pools: c.Mapping[str, c.Collection[str]]) -> list[Fault]:
    """pools: by name the ids of their nodes' operating systems, for pools that need this collection's toolkit.

    Talos: siderolabs/extensions 26822f5c95ab (2026-08-20), nvidia-gpu/nvidia-container-toolkit: driver and runtime are system extensions, and the
    handler `nvidia` of containerd is configured by their file in /etc/cri/conf.d. /etc is read-only, and there is no systemd to restart containerd.
    """
    found = sorted(name for name, systems in pools.items() if _TALOS in systems)
    if not found:
        return []
    why = "drivers and NVIDIA's runtime are system extensions there; /etc is read-only, so a toolkit container cannot configure containerd"
    next_step = (
        "set provider none for these pools (driver: {provider: none}), install the extensions nvidia-open-gpu-kernel-modules and "
        "nvidia-container-toolkit (-lts or -production) on the machines, and deploy NVIDIA's device plugin with the RuntimeClass nvidia "
        "yourself (docs/drivers.md)"
    )
    return [Fault("Talos is not supported", f"pools {', '.join(found)}", why, next_step)]


def as_declared(fleet: Fleet, settings: c.Mapping[str, t.Any]) -> Fleet:
    """The fleet with the declared platform if no cluster was queried. A cluster's own platform, and that of an installer's, is not changed."""
    if fleet.observed or fleet.awaited:
        return fleet
    distribution, version = (
        text(settings.get("distribution")) or fleet.distribution,
        _declared_version(settings) or fleet.version,
    )
    return dataclasses.replace(fleet, distribution=distribution, version=version)


def identity_faults(fleet: Fleet, settings: c.Mapping[str, t.Any]) -> list[Fault]:
    """Errors if the cluster is not the one in the inventory, has another platform, or is too old."""
    return [*_uid_faults(fleet, settings), *_platform_faults(fleet, settings), *_age_faults(fleet)]


def _age_faults(fleet: Fleet) -> list[Fault]:
    if fleet.version >= OLDEST:
        return []
    observed, oldest = (".".join(map(str, one)) for one in (fleet.version, OLDEST))
    return [
        Fault(
            f"Kubernetes {observed} is too old",
            "",
            f"the minimum version is {oldest}",
            "upgrade the cluster first",
        )
    ]


def _uid_faults(fleet: Fleet, settings: c.Mapping[str, t.Any]) -> list[Fault]:
    return identity.other_cluster(fleet.cluster_uid, text(settings.get("cluster_uid"))) if fleet.observed else []


def _platform_faults(fleet: Fleet, settings: c.Mapping[str, t.Any]) -> list[Fault]:
    faults = []
    distribution, declared, version = (
        text(settings.get("distribution")),
        text(settings.get("kubernetes_version")),
        _declared_version(settings),
    )
    if distribution and distribution not in PLATFORMS:
        faults.append(
            Fault(
                f"distribution {distribution!r} is unknown",
                "hwaccel_distribution",
                "",
                f"choose one of {', '.join(PLATFORMS)}",
            )
        )
    elif distribution and distribution != fleet.distribution:
        what, next_step = (
            f"the cluster is {fleet.distribution}, not {distribution}",
            "correct the connection, or hwaccel_distribution",
        )
        if fleet.awaited:
            what = f"the installer makes {fleet.distribution}, not {distribution}"
            next_step = "remove hwaccel_distribution, which follows from hwaccel_installer"
        faults.append(Fault(what, "hwaccel_distribution", "", next_step))
    if declared and version is None:
        why = "without quotes YAML reads 1.30 as the number 1.3"
        faults.append(
            Fault(
                f"Kubernetes version {declared!r} cannot be read",
                "hwaccel_kubernetes_version",
                why,
                'write it in quotes, as "1.36"',
            )
        )
    elif version and version != fleet.version:
        observed, needed = (".".join(map(str, one)) for one in (fleet.version, version))
        what = f"the cluster runs Kubernetes {observed}, not {needed}"
        next_step = "correct the connection, or hwaccel_kubernetes_version (and render again)"
        if fleet.awaited:
            what = f"the installer makes Kubernetes {observed}, not {needed}"
            next_step = "remove hwaccel_kubernetes_version, or set the installer's version"
        faults.append(Fault(what, "hwaccel_kubernetes_version", "", next_step))
    return faults


def _declared_version(settings: c.Mapping[str, t.Any]) -> tuple[int, int] | None:
    """Major and minor; None without a valid declaration."""
    found = re.fullmatch(r"v?1\.(\d{2,})([.+-].*)?", text(settings.get("kubernetes_version")))
    return (1, int(found[1])) if found else None
