# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot servers give to machines of clusters that openshift-install has made files for. Pure."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import closing, inventory, machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.inventory import Groups, Variables
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.openshift import agent_booting

Row = c.Mapping[str, t.Any]
Rows = list[dict[str, t.Any]]
#: Fact of a cluster's host, as the entry point files of the role sets it.
INSTALLATION = "cluster_openshift_installation"
#: Another one: the names of the files that this run is going to make.
AWAITED = "cluster_openshift_awaited"
#: Another one, of a cluster that was installed when the run began: machines that are added (hosts), whether the program of the release is there (artifacts),
#: and ignition files by their names (pointers). Those of the folder may have an authority that the cluster does not have any more.
JOINING = "cluster_openshift_joining"
#: Another one: problems of the cluster, with which a run changes nothing.
_FAULTS = "cluster_openshift_faults"
#: Another one: how the phases of this run have ended.
_OUTCOMES = "hwaccel_phase_outcomes"
#: Ignition files by the role of the machines that are installed with them.
_FILES = {machines.BOOTSTRAP: "bootstrap.ign", machines.MASTER: "master.ign", machines.WORKER: "worker.ign"}
#: Of a master that installs itself: the ignition file of the live system.
_IN_PLACE = "bootstrap-in-place-for-live-iso.ign"
_ARTIFACTS = ("kernel", "initramfs", "rootfs")
#: CoreOS fetches its root file system and its ignition file by network before anything is on the disk.
_ARGUMENTS = ("rd.neednet=1",)


def of_server(groups: Groups, hostvars: Variables, host: str) -> dict[str, t.Any]:
    """What a boot server gives to machines of the clusters that it serves, with what the inventory has for it."""
    given = {kind: hostvars[host].get(f"dns_pxe_{kind}") or [] for kind in ("artifacts", "ignitions", "profiles")}
    clusters = {name: hostvars.get(name, {}) for name in inventory.clusters_of(groups, hostvars, host)}
    return with_given(read(clusters), given, _unused(clusters))


def read(clusters: c.Mapping[str, Row]) -> dict[str, Rows]:
    """artifacts, ignitions and profiles, as dns_pxe takes them. clusters: variables of their hosts, by name; those without files have none.

    Of a cluster that is installed, there is something only while machines are added.
    """
    found: dict[str, Rows] = {"artifacts": [], "ignitions": [], "profiles": []}
    for name, variables in clusters.items():
        if JOINING not in variables:
            for kind, rows in agent_booting.read(name, variables.get(INSTALLATION) or {}, _names(variables)).items():
                found[kind] += rows
        files = _files(variables)
        if not files or _is_at_rest(variables):
            continue
        found["artifacts"] += _artifacts(name, variables)
        found["ignitions"] += [_ignition(name, file, variables) for file in files.values()]
        found["profiles"] += [_profile(name, role, file, variables) for role, file in files.items()]
    return found


def is_unmade(variables: Row) -> bool:
    """Whether this run could not make the files of a cluster, so that its machines stay as they are. variables: of its host."""
    outcomes = (variables.get("ansible_facts") or {}).get(_OUTCOMES) or {}
    return bool((outcomes.get("installation") or {}).get("state") == closing.FAILED)


def _files(variables: Row) -> dict[str, str]:
    """Ignition files by the role of their machines."""
    if JOINING in variables:
        # Each machine of an installed cluster can be added by a pointer, whatever the cluster was installed by.
        return {role: _FILES[role] for role in (machines.MASTER, machines.WORKER)}
    names, gone = _names(variables), inventory.bootstrap_is("complete", variables)
    # The file of the bootstrap machine has the keys of the cluster.
    files = {role: file for role, file in _FILES.items() if file in names and not (gone and role == machines.BOOTSTRAP)}
    return files | ({machines.MASTER: _IN_PLACE} if _IN_PLACE in names else {})


def _names(variables: Row) -> c.Collection[str]:
    """Files of the installation that there are, or that this run is going to make."""
    made: Row = variables.get(INSTALLATION) or {}
    return made.get("publishable") or (() if is_unmade(variables) else variables.get(AWAITED)) or ()


def _is_at_rest(variables: Row) -> bool:
    """Whether it is installed and no machine is added. Then nobody reads what the program would have to name."""
    return JOINING in variables and not variables[JOINING]["hosts"]


def _unused(clusters: c.Mapping[str, Row]) -> Rows:
    """Profiles of machines that are all there or gone, or whose cluster has problems, to which keys in the inventory may belong."""
    return [
        _profile(name, role, file, variables)
        for name, variables in clusters.items()
        if JOINING in variables or _names(variables) or variables.get(_FAULTS)
        for role, file in _FILES.items()
        if _is_at_rest(variables) or role not in _files(variables)
    ]


def _artifacts(cluster: str, variables: Row) -> Rows:
    """Without the program of the release, which an installed cluster may have lost, they have to be in the inventory."""
    release = (variables.get(INSTALLATION) or {}).get("artifacts") or {}
    if not release and JOINING in variables and not variables[JOINING]["artifacts"]:
        return []
    # In check mode nobody has asked the program for its release.
    return [
        _artifact(cluster, kind, release[kind]) if kind in release else _assumed(cluster, kind) for kind in _ARTIFACTS
    ]


def _ignition(cluster: str, file: str, variables: Row) -> dict[str, t.Any]:
    path = f"{cluster}/{file}"
    if JOINING in variables:
        return {"path": path, "content": variables[JOINING]["pointers"][file]}
    made: Row = variables.get(INSTALLATION) or {}
    return {"path": path, "source": f"{made['path']}/{file}"} if made.get("publishable") else _assumed(cluster, file)


def with_given(
    derived: c.Mapping[str, Rows], given: c.Mapping[str, t.Any], unused: c.Sequence[Row] = ()
) -> dict[str, t.Any]:
    """given: what the inventory has, which wins: artifacts and ignition files by their paths, profiles key by key, where role and cluster fit.

    unused: profiles of clusters whose machines are all there.
    """
    if not (derived["profiles"] or unused) or not all(map(_is_rows, given.values())):
        # The role reports what is none.
        return dict(given)
    found: dict[str, t.Any] = {}
    for kind in ("artifacts", "ignitions"):
        paths = {one.get("path") for one in given[kind]}
        found[kind] = [*(one for one in derived[kind] if one["path"] not in paths), *map(dict, given[kind])]
    profiles = [_overridden(one, given["profiles"]) for one in derived["profiles"]]
    # One that only changes others boots nothing itself.
    whole = [
        dict(one)
        for one in given["profiles"]
        if "kernel" in one or not any(_fits(one, other) for other in [*profiles, *unused])
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
        **({"live": True} if file == _IN_PLACE else {}),
        "arguments": [*_ARGUMENTS, "ip=dhcp6" if ":" in first else "ip=dhcp"],
    }


def _overridden(derived: Row, given: c.Sequence[Row]) -> dict[str, t.Any]:
    found = dict(derived)
    for one in given:
        if _fits(one, derived):
            found |= {key: value for key, value in one.items() if key not in _kept(one, derived)}
    return found


def _kept(given: Row, derived: Row) -> tuple[str, ...]:
    """Keys that stay as they are derived. A live system finds the disk itself, so what is given for all clusters is not meant for it."""
    return ("cluster", "install_device") if derived.get("live") and not given.get("cluster") else ("cluster",)


def _fits(given: Row, derived: Row) -> bool:
    """Those of an architecture are whole ones: a cluster's files are for one architecture."""
    return (
        given.get("role") == derived["role"]
        and given.get("cluster", "") in ("", derived["cluster"])
        and not given.get("architecture")
    )
