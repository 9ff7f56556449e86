# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role cluster_kubeadm observes of a machine."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import prerequisites, surroundings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import CommandRequest, Request
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import encryption, modules, packages, places

#: Packages of containerd: that of distributions, and Docker's.
_CONTAINERD = ("containerd", "containerd.io")
_FACTS: dict[str, tuple[str, ...]] = {
    **prerequisites.FACTS,
    **modules.FACTS,
    **encryption.FACTS,
    # Kubeconfigs hold keys, so only whether they exist is read, and the one line that is needed.
    "present": (
        "exists",
        places.ADMIN,
        places.KUBELET_CONF,
        places.BOOTSTRAP,
        places.API_SERVER,
        places.ETCD,
        places.DATA,
        places.AUTHORITY,
        places.KUBELET_CONFIG,
    ),
    "keys": ("exists", *places.AUTHORITY_KEYS, places.ETCD_AUTHORITY_KEY),
    "secrets": ("exists", places.SECRETS),
    "rotating": ("exists", places.ROTATION),
    # A kubelet has it once it has asked an API server for it.
    "enrolled": ("exists", places.KUBELET_CERTIFICATE),
    "server": ("lines", places.KUBELET_CONF, r"^\s*server:"),
    **{name: ("lines", path, rf"^\s*(-\s+)?image:.*{name}:v") for name, path in places.CONTROL_PLANE.items()},
    # The time of a program's contents may be that of its build.
    "kubelet_changed": ("changed_at", f"{places.PROGRAMS_FOLDER}/kubelet"),
    "kubelet_config_changed": ("modified_at", places.KUBELET_CONFIG),
    # kubeadm writes a manifest elsewhere, renews certificates, and moves it to its place.
    **{places.moment(path): ("changed_at", path) for path in map(places.manifest, places.STATIC_PODS)},
    **{places.moment(path): ("modified_at", path) for paths in places.STATIC_PODS.values() for path in paths},
    "snapshots": ("paths", f"{places.SNAPSHOTS}/*"),
    "interfaces": ("paths", "/sys/class/net/*"),
    "network_plugins": ("paths", "/etc/cni/net.d/*"),
    "cni_plugins": ("paths", f"{places.CNI_PLUGINS}/*"),
    "architecture": ("output", "uname", "-m"),
    "managers": ("programs", "apt-get", "dnf"),
    # Files of the packages of containerd with their digests, as dpkg-query(1) and rpm(8) know them.
    "conffiles": ("output", "dpkg-query", "--show", "--showformat=${Conffiles}\n", *_CONTAINERD),
    "rpm_files": ("output", "rpm", "--query", "--queryformat", "[%{FILENAMES} %{FILEDIGESTS}\n]", *_CONTAINERD),
    "programs": ("programs", *places.PROGRAMS, "containerd", "crio"),
}


def request(settings: c.Mapping[str, t.Any]) -> Request:
    """settings: the role's variables by their names without cluster_kubeadm_."""
    # Also those that settings have named before, which go with a machine that leaves.
    names = sorted({*places.PROGRAMS, "kubectl", *(str(one["name"]) for one in settings["programs"])})
    return Request(
        files=(
            places.RECORD,
            places.TURN,
            places.CONFIGURATION,
            places.TEARDOWN,
            places.AUTHORITY,
            *places.CERTIFICATES,
            places.UNIT,
            places.UNIT_DROP_IN,
            places.SYSCTL,
            places.MODULES,
            places.CONTAINERD,
        ),
        patterns=(f"{places.IMPORTED}/*", f"{places.UNPACKED}/*"),
        checksums=(*(f"{places.PROGRAMS_FOLDER}/{name}" for name in names), places.STAGED),
        units=("kubelet", "containerd", "crio", *places.FOREIGN),
        processes=("kubeadm",),
        commands=(
            CommandRequest("kubelet", ("kubelet", "--version")),
            CommandRequest("kubeadm", ("kubeadm", "version", "-o", "short")),
            CommandRequest("containerd", ("containerd", "--version")),
            modules.REQUEST,
        ),
        facts={**_FACTS, **surroundings.facts(settings["endpoint"]), **packages.facts(settings["packages"])},
        network=True,
    )
