# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the role cluster_k3s for one machine: what it needs before it can become a node. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import oneline, record, templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import contents as contents_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import prerequisites
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import FOREIGN, MEMBER, SERVER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content, written
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, version_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import (
    adoption,
    boards,
    configuration,
    engine,
    external,
    hardening,
    kernel,
    networks,
    places,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import found as finding
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import turn as turning
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import FileBefore, Record

Settings = c.Mapping[str, t.Any]
#: Ports of a node and of a server (https://docs.k3s.io/installation/requirements#inbound-rules-for-k3s-nodes, pkg/daemons/config/types.go).
_NODE_PORTS = {10250: "kubelet", 6444: "the load balancer of its agent"}
_SERVER_PORTS = {6443: "K3s", 10257: "kube-controller-manager", 10259: "kube-scheduler"}
_ETCD_PORTS = {2379: "etcd", 2380: "etcd"}
#: On each node (https://docs.k3s.io/installation/registry-mirror#requirements).
_REGISTRY_PORTS = dict.fromkeys((5001, 6443), "the registry that nodes share")
#: K3s reads drop-ins of its configuration, and renews certificates of all components by a restart, in every version that is still released.
_OLDEST = (1, 32)
#: A release of K3s (https://docs.k3s.io/upgrades). The number after +k3s counts builds of the same Kubernetes.
_RELEASE = re.compile(r"v?1\.\d+\.\d+\+k3s\d+")
#: With the kernel's default of 128, kubelet and kube-proxy end with `too many open files` as soon as there are some containers.
_INSTANCES = "fs.inotify.max_user_instances = 8192\n"
_text = functools.partial(templating.render, "cluster_k3s")


def plan(host: Host, settings: Settings) -> dict[str, t.Any]:
    """The plan, in plain data. settings: the role's variables by their names without cluster_k3s_.

    found: as model.Found documents it; identity: as model.Machine; turn: as turn.Turn. datastore: of a server, as _datastore documents it. named: whether a
    file with a token is named to it. before: network interfaces that were there before. alike: lines in files of others that servers must have in common.
    adopts: what changes with a K3s that is adopted. programs: to install, each with name, source, checksum, remote and path. images: archives to copy, each
    with name, source, checksum and remote. files, contents, folders, absent: as files.written documents them. kernel: files with its settings that have to be
    loaded. hardened: whether the machine is or was hardened. record: text for teardown, empty if the machine has it already.
    """
    settings = _of_machine(host, settings)
    now = finding.found(host, settings["adopt"])
    taken = adoption.adopted(host, settings, now.state)
    now = dataclasses.replace(now, endpoint=taken.server) if taken else now
    damaged = record.faults(host, places.ROLE)
    kept = Record() if damaged else record.read(host, places.ROLE) or _first(host, bool(taken))
    faults = [*oneline.faults("cluster_k3s", settings), *configuration.faults(settings), *damaged]
    skipped = settings["skipped_checks"]
    lacking = [] if now.state == FOREIGN or faults else _lacking(host, settings, now)
    # A member runs in spite of them, and other changes must not wait for them.
    faults += [] if now.state == MEMBER else lacking
    faults += [*_version_faults(host, settings, now), *_kept(host, settings, now), *taken.faults]
    faults += _foreign(host, settings, kept) if not taken else []
    contents = _contents(host, settings) if not faults else []
    absent = [*_unneeded(host, settings, kept), *taken.absent]
    made = written(host, [*taken.contents, *contents] if not faults else [], absent if not faults else [])
    touched = [*(one["path"] for one in made["files"]), *made["absent"]]
    turn = turning.turn(host, settings, now, touched, bool(taken) or _unstarted(host, settings, kept))
    new = _recorded(kept, host, settings, contents, bool(taken))
    return {
        "messages": [*_messages(host, lacking, turn, now), *([] if faults else _differing(settings))],
        "faults": [fault.as_dict() for fault in faults],
        "found": turning.behind(turn, now).as_dict(),
        "turn": turn.as_dict(),
        "datastore": _datastore(host, now),
        "named": "token-file" in finding.entry(host),
        "alike": [line for line in host.fact("foreign_critical").splitlines() if line],
        "before": kept.settings.get("before", "").split(),
        "adopts": list(taken.lines),
        "identity": prerequisites.identity(host, settings["node"], skipped),
        "packages": [],
        "programs": _programs(host, settings, now),
        "images": _archives(host, settings),
        **made,
        "stops": [],
        "kernel": _kernel(host, settings),
        "hardened": hardening.on(settings) or bool(kept.settings.get("hardened")),
        "reload_units": places.unit(settings["role"]) in touched,
        "actions": [],
        "record": "" if faults else record.changed(host, places.ROLE, new),
    }


def _of_machine(host: Host, settings: Settings) -> Settings:
    """Without programs and images for other architectures. Whoever has etcd keeps it."""
    mine = contents_of.of_architecture(host, settings)
    kept = contents_of.has(host, places.ETCD) and not external.is_set(settings)
    datastore = "etcd" if kept else settings["datastore"]
    return {**mine, "datastore": datastore, "board_labels": boards.labels(host, settings)}


def _lacking(host: Host, settings: Settings, now: Found) -> list[Fault]:
    """What the machine needs and has not got."""
    skipped = settings["skipped_checks"]
    # Boards need other things, with other messages.
    others = [*(["memory"] if boards.known(host) else []), *(["cgroup"] if boards.old(host) else [])]
    return [
        *prerequisites.faults(host, _needs(settings, now), [*skipped, *others]),
        *boards.faults(host, settings, skipped),
        *engine.faults(host, settings),
        *([] if "kernel" in skipped else kernel.faults(host, settings)),
        *([] if "networks" in skipped else networks.lacking(host, settings)),
    ]


def _foreign(host: Host, settings: Settings, kept: Record) -> list[Fault]:
    """What others have set that the role decides, and credentials of theirs, which would be lost."""
    faults = []
    if deciding := adoption.deciding(host):
        why = f"it has options that the role decides: among {', '.join(sorted(configuration.RESERVED))}"
        next_step = "remove them there, and set the role's variables"
        what = "the configuration of others would join in"
        faults += [Fault(what, path, why, next_step) for path in deciding]
    if settings["registries"] and places.REGISTRIES in host.files and places.REGISTRIES not in kept.files:
        next_step = "move what it has to cluster_k3s_registries, and remove it; or unset cluster_k3s_registries"
        faults.append(Fault("there are registries of others already", places.REGISTRIES, "", next_step))
    return faults


def _messages(host: Host, lacking: c.Sequence[Fault], turn: turning.Turn, now: Found) -> list[str]:
    ours = (places.CONFIGURATION, places.ENTRY)
    others = [path for path in host.fact("drop_ins").split() if path not in ours]
    if contents_of.has(host, places.FOREIGN_CONFIGURATION):
        others.insert(0, places.FOREIGN_CONFIGURATION)
    foreign = [f"{path} stays as it is, beside {places.CONFIGURATION}" for path in others]
    if now.state != MEMBER:
        return foreign
    left, _due = turning.lasting(host)
    return [*foreign, *([left] if left and left not in turn.reasons else []), *map(str, lacking)]


def _needs(settings: Settings, now: Found) -> prerequisites.Needs:
    serves = settings["role"] == SERVER
    etcd = _ETCD_PORTS if configuration.embedded(settings) else {}
    shared = _REGISTRY_PORTS if settings["embedded_registry"] else {}
    return prerequisites.Needs(
        ports={**_NODE_PORTS, **shared, **({**_SERVER_PORTS, **etcd} if serves else {})},
        networks={"network of pods": settings["pod_network"], "network of Services": settings["service_network"]},
        version=version_of(settings["version"]),
        serves=serves,
        member=now.state == MEMBER or now.running or now.data,
        # K3s itself adds networks of pods and Services to NO_PROXY (https://docs.k3s.io/advanced#configuring-an-http-proxy).
        endpoint=settings["endpoint"],
        # K3s sets failSwapOn: false for its kubelets (pkg/daemons/agent/agent_linux.go).
        swap=True,
    )


def _version_faults(host: Host, settings: Settings, now: Found) -> list[Fault]:
    """A version that is too old or none of K3s, and a program that is neither there nor given, or that is of another version."""
    version, faults = version_of(settings["version"]), []
    if not _RELEASE.fullmatch(str(settings["version"])) or version < _OLDEST:
        what = f"{settings['version'] or 'no version'} is set, which is no release of K3s that is supported"
        next_step = f"set one such as v1.36.4+k3s1, and at least {_OLDEST[0]}.{_OLDEST[1]}"
        faults.append(Fault(what, "cluster_k3s_version", "", next_step))
    one, has = turning.program(settings), host.version("k3s")
    if not one and not has:
        next_step = "set cluster_k3s_programs, with one for this architecture"
        faults.append(
            Fault("k3s is not installed", f"architecture {host.fact('architecture')}", "none is given", next_step)
        )
    runs = turning.installed(host)
    builds = turning.build(runs), turning.build(settings["version"])
    differs_from_set = (has, builds[0]) != (version, builds[1])
    if has and differs_from_set and (not one or contents_of.holds(host, places.PROGRAM, one)) and not faults:
        next_step = "set its source and checksum in cluster_k3s_programs, or the version that it has"
        faults.append(
            Fault(f"K3s {runs} is installed, and {settings['version']} is set", places.PROGRAM, "", next_step)
        )
    if now.state == MEMBER and has == version and builds[0] > builds[1]:
        why, next_step = "K3s is not downgraded", f"set {runs}"
        faults.append(Fault(f"the machine has K3s {runs}, and {settings['version']} is set", "", why, next_step))
    return faults


def _kept(host: Host, settings: Settings, now: Found) -> list[Fault]:
    """What a cluster keeps for its life. Its datastore changes only where that is asked for by name."""
    if now.state != MEMBER:
        return []
    if settings["role"] != SERVER:
        return engine.changed(host, settings)
    faults = [
        *engine.changed(host, settings),
        *configuration.kept(host.text(places.CONFIGURATION), settings),
        *external.changed(host, settings),
    ]
    if settings["migrates"]:
        return faults
    datastore, next_step = _datastore(host, now), "run hwaccel.gpu.cluster_k3s -e cluster_k3s_entry=migrate_datastore"
    if datastore == MOVING:
        what, why = "the data of the server are being moved from SQLite to etcd", "an earlier run was interrupted there"
        faults.append(Fault(what, places.MIGRATION, why, f"{next_step}, which completes it"))
    if datastore == SQLITE and configuration.embedded(settings):
        what, why = (
            "the server has SQLite, and etcd is set",
            "a cluster changes its datastore only if that is asked for",
        )
        next_step = f"{next_step}, which moves its data after a copy; or have no other server, and unset it"
        faults.append(Fault(what, "cluster_k3s_datastore", why, next_step))
    return faults


#: Datastores of a server.
SQLITE, EMBEDDED, EXTERNAL, MOVING = "SQLite", "etcd", "external", "moving"


def _datastore(host: Host, now: Found) -> str:
    """Of a server that is a member, empty otherwise. moving: from SQLite to etcd, which a run has begun and not ended."""
    if now.state != MEMBER or not now.serves:
        return ""
    if places.MIGRATION in host.files:
        return MOVING
    if contents_of.has(host, places.ETCD):
        return EMBEDDED
    return SQLITE if contents_of.has(host, places.SQLITE) else EXTERNAL


def _programs(host: Host, settings: Settings, now: Found) -> list[dict[str, t.Any]]:
    """That of a member is replaced in its turn, and only made ready before."""
    found = []
    for one in settings["programs"]:
        path = places.STAGED if now.state == MEMBER and turning.staged(host, settings) else places.PROGRAM
        if not contents_of.holds(host, path, one):
            found.append({**one, "name": "k3s", "path": path, "remote": contents_of.remote(one)})
    return found


def _archives(host: Host, settings: Settings) -> list[dict[str, t.Any]]:
    """Those that are not where K3s imports them from, which may be on a disk of its own, or that were copied with another content."""
    there = host.fact("archives").splitlines()
    lacking = contents_of.archives(host, settings, places.COPIED)
    return [
        one for one in contents_of.named(settings) if one in lacking or f"{places.IMAGES}/{one['name']}" not in there
    ]


def _unneeded(host: Host, settings: Settings, kept: Record) -> list[str]:
    """A program that was made ready and is in its place by now, and files of what is not set any more."""
    ready = bool(host.checksums.get(places.STAGED)) and not turning.staged(host, settings)
    unset = [] if settings["registries"] else [places.REGISTRIES]
    if not hardening.on(settings):
        unset += [places.HARDENED, *hardening.FILES]
    stale = [path for path in unset if path in host.files and path in kept.files]
    return [*([places.STAGED] if ready else []), *stale]


def _differing(settings: Settings) -> list[str]:
    """What hardening leaves as it is set."""
    if not hardening.on(settings):
        return []
    kept = hardening.kept(configuration.given(settings), settings["role"] == SERVER)
    kept += [] if settings["secrets_encryption"] else ["Secrets are not encrypted (1.2.27)"]
    return [f"cluster_k3s_hardening leaves it as it is set: {', '.join(kept)}"] if kept else []


def _kernel(host: Host, settings: Settings) -> list[str]:
    hardens = hardening.on(settings) and hardening.differing(host)
    return [*([places.SYSCTL] if prerequisites.few_instances(host) else []), *([places.HARDENED] if hardens else [])]


def _contents(host: Host, settings: Settings) -> list[Content]:
    contents = [
        Content(places.CONFIGURATION, configuration.text(settings), "0600", sensitive=True),
        Content(places.unit(settings["role"]), _text("k3s.service", command=settings["role"])),
    ]
    if registries := configuration.registries(settings):
        contents.append(Content(places.REGISTRIES, registries, "0600", sensitive=True))
    if prerequisites.few_instances(host) or _INSTANCES in host.text(places.SYSCTL):
        contents.append(Content(places.SYSCTL, _INSTANCES))
    return [*contents, *(hardening.contents(settings, configuration.HEAD) if hardening.on(settings) else [])]


def _first(host: Host, adopts: bool) -> Record:
    """before: what the network of pods may add to later. kubelet: whether another kubelet has left something. A K3s that is adopted has its own of both."""
    others = "yes" if host.fact("kubelet_files") and not adopts else ""
    return Record(settings={"before": "" if adopts else " ".join(host.fact("interfaces").split()), "kubelet": others})


def _unstarted(host: Host, settings: Settings, kept: Record) -> bool:
    """Whether an earlier run has adopted its K3s, and was killed before it was restarted."""
    since = host.unit(places.UNITS[settings["role"]]).started_at
    return "links" in kept.settings and host.later(host.moment("entered"), since)


def _recorded(kept: Record, host: Host, settings: Settings, contents: c.Sequence[Content], adopts: bool) -> Record:
    """A K3s that is adopted is removed with the cluster, and its unit does not come back."""
    files = dict(kept.files)
    if adopts:
        kept = dataclasses.replace(kept, settings={**kept.settings, "links": " ".join(host.fact("links").split())})
        host = dataclasses.replace(host, files={}, checksums={})
    if settings["programs"] or adopts:
        files.setdefault(places.PROGRAM, FileBefore(bool(host.checksums.get(places.PROGRAM)), ""))
    before = dict(kept.settings)
    if hardening.on(settings):
        before = {"hardened": "yes", "sysctls": " ".join(hardening.differing(host)), **before}
    return dataclasses.replace(kept, files=contents_of.rewritten(host, files, contents), settings=before)
