# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers give to machines of clusters that openshift-install has made files for. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import inventory, machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables

Row = c.Mapping[str, t.Any]
Rows = list[dict[str, t.Any]]
#: Fact of a cluster's host, as the entry point files of the role sets it.
INSTALLATION = "cluster_openshift_installation"
#: Another one: the names of the files that this run is going to make.
AWAITED = "cluster_openshift_awaited"
#: Ignition files by the role of the machines that are installed with them.
_FILES = {machines.BOOTSTRAP: "bootstrap.ign", machines.MASTER: "master.ign", machines.WORKER: "worker.ign"}
_ARTIFACTS = ("kernel", "initramfs", "rootfs")
#: CoreOS fetches its root file system and its ignition file by network before anything is on the disk.
_ARGUMENTS = ("rd.neednet=1",)


def of_server(groups: Groups, hostvars: Variables, host: str) -> dict[str, t.Any]:
    """What a boot server gives to machines of the clusters that it serves, with what the inventory has for it."""
    given = {kind: hostvars[host].get(f"dns_pxe_{kind}") or [] for kind in ("artifacts", "ignitions", "profiles")}
    served = inventory.clusters_of(groups, hostvars, host)
    return with_given(read({name: hostvars.get(name, {}) for name in served}), given)


def read(clusters: c.Mapping[str, Row]) -> dict[str, Rows]:
    """artifacts, ignitions and profiles, as dns_pxe takes them. clusters: variables of their hosts, by name; those without files have none."""
    found: dict[str, Rows] = {"artifacts": [], "ignitions": [], "profiles": []}
    for name, variables in clusters.items():
        made: Row = variables.get(INSTALLATION) or {}
        names = made.get("publishable") or variables.get(AWAITED) or ()
        gone = inventory.bootstrap_is("complete", variables)
        # The file of the bootstrap machine has the keys of the cluster.
        files = {
            role: file for role, file in _FILES.items() if file in names and not (gone and role == machines.BOOTSTRAP)
        }
        if not files:
            continue
        # In check mode nobody has asked the program for its release.
        release = made.get("artifacts") or {}
        found["artifacts"] += [
            _artifact(name, kind, release[kind]) if kind in release else _assumed(name, kind) for kind in _ARTIFACTS
        ]
        found["ignitions"] += [
            {"path": f"{name}/{file}", "source": f"{made['path']}/{file}"}
            if made.get("publishable")
            else _assumed(name, file)
            for file in files.values()
        ]
        found["profiles"] += [_profile(name, role, file, variables) for role, file in files.items()]
    return found


def with_given(derived: c.Mapping[str, Rows], given: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """given: what the inventory has, which wins: artifacts and ignition files by their paths, profiles key by key, where role and cluster fit."""
    if not derived["profiles"] or not all(map(_is_rows, given.values())):
        # The role reports what is none.
        return dict(given)
    found: dict[str, t.Any] = {}
    for kind in ("artifacts", "ignitions"):
        paths = {one.get("path") for one in given[kind]}
        found[kind] = [*(one for one in derived[kind] if one["path"] not in paths), *map(dict, given[kind])]
    profiles = [_overridden(one, given["profiles"]) for one in derived["profiles"]]
    # One that only changes others boots nothing itself.
    whole = [
        dict(one) for one in given["profiles"] if "kernel" in one or not any(_fits(one, other) for other in profiles)
    ]
    return {**found, "profiles": [*profiles, *whole]}


def _is_rows(value: t.Any) -> bool:
    return isinstance(value, c.Sequence) and all(isinstance(one, c.Mapping) for one in value)


def _assumed(cluster: str, name: str) -> dict[str, t.Any]:
    """This run finds out later."""
    return {"path": f"{cluster}/{name}", "source": "openshift-install", "checksum": "unknown", "assumed": True}


def _artifact(cluster: str, kind: str, made: Row) -> dict[str, t.Any]:
    return {"path": f"{cluster}/{kind}", "source": made["location"], "checksum": f"sha256:{made['sha256']}"}


def _profile(cluster: str, role: str, file: str, variables: Row) -> dict[str, t.Any]:
    networks = variables.get("hwaccel_machine_network") or ""
    first = networks if isinstance(networks, str) else str(next(iter(networks), ""))
    return {
        "role": role,
        "cluster": cluster,
        **{kind: f"{cluster}/{kind}" for kind in _ARTIFACTS},
        "ignition": f"{cluster}/{file}",
        "arguments": [*_ARGUMENTS, "ip=dhcp6" if ":" in first else "ip=dhcp"],
    }


def _overridden(derived: Row, given: c.Sequence[Row]) -> dict[str, t.Any]:
    found = dict(derived)
    for one in given:
        if _fits(one, derived):
            found |= {key: value for key, value in one.items() if key != "cluster"}
    return found


def _fits(given: Row, derived: Row) -> bool:
    """Those of an architecture are whole ones: a cluster's files are for one architecture."""
    return (
        given.get("role") == derived["role"]
        and given.get("cluster", "") in ("", derived["cluster"])
        and not given.get("architecture")
    )
