# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the role cluster_kubeadm for one machine: what it needs before it can become a node. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import oneline, record, templating
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import contents as contents_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import prerequisites
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import FOREIGN, MEMBER, SERVER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.files import Content, written
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import (
    Host,
    Version,
    digest,
    md5,
    version_of,
    version_text,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import (
    encryption,
    modules,
    places,
    sysctls,
    unpacking,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import found as finding
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import packages as pinning
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import turn as turning
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.certificates import (
    Certificates,
    certificates,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import FileBefore, Record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.services import Action

Settings = c.Mapping[str, t.Any]
#: Ports of a node and of a server (https://kubernetes.io/docs/reference/networking/ports-and-protocols/).
_NODE_PORTS = {10250: "kubelet"}
_SERVER_PORTS = {
    6443: "kube-apiserver",
    2379: "etcd",
    2380: "etcd",
    10257: "kube-controller-manager",
    10259: "kube-scheduler",
}
#: kubeadm has the configuration v1beta4 since 1.31, and needs no program of another package since 1.32 (cmd/kubeadm/app/preflight/checks_linux.go).
_OLDEST = (1, 32)
#: With the kernel's default of 128, kubelet and kube-proxy end with `too many open files` as soon as there are some containers.
_INSTANCES = "fs.inotify.max_user_instances = 8192\n"
#: kubeadm wants the default of interfaces (addIPv6Checks in cmd/kubeadm/app/preflight/checks.go), and packets are forwarded by those that are there.
_IPV6 = "net.ipv6.conf.all.forwarding = 1\nnet.ipv6.conf.default.forwarding = 1\n"
_text = functools.partial(templating.render, "cluster_kubeadm")


def plan(host: Host, settings: Settings) -> dict[str, t.Any]:
    """The plan, in plain data. settings: the role's variables by their names without cluster_kubeadm_.

    busy: process IDs of kubeadm, which a run that was killed has left running. found: as model.Found documents it; identity: as model.Machine; turn: as
    turn.Turn. packages: missing ones; apt: whether apt installs them; held: those that it is to hold; kubelet: the package that the machine's turn installs,
    empty if there is none. programs: to install, each with name, source, checksum, remote and path. images: archives to import, each with name, source,
    checksum and remote. cni_plugins: archives to unpack, likewise. files, contents, folders, absent: as files.written documents them.
    modules: of the kernel, to load. kernel: whether its settings are. actions: for services that do not run with the files on disk, as services.Action.
    record: text for teardown, empty if the machine has it already.
    """
    settings = contents_of.of_architecture(host, settings)
    now = finding.found(host)
    damaged = record.faults(host, places.ROLE)
    faults = [*oneline.faults("cluster_kubeadm", settings), *damaged]
    lacking = [] if now.state == FOREIGN or faults else _lacking(host, settings, now)
    # A member runs in spite of them, and other changes must not wait for them.
    faults += [] if now.state == MEMBER else lacking
    faults += [*_version_faults(host, settings, now), *encryption.faults(host, settings, now)]
    owned = _owns_containerd(host, now)
    contents = _contents(host, settings, owned) if not faults else []
    made = written(host, contents, [places.STAGED] if _left_over(host, settings) else [])
    packages, missing = _packages(host, settings), pinning.missing(host, settings, now)
    kept = Record() if damaged else record.read(host, places.ROLE) or _first(host, settings)
    new = _recorded(kept, host, settings, contents, [*packages, *pinning.added(host, missing)])
    touched = [one["path"] for one in made["files"]]
    unread = _unread(host, touched, owned)
    turn = turning.turn(host, settings, now, touched, runtime=unread)
    return {
        "messages": _messages(host, now, lacking),
        "faults": [fault.as_dict() for fault in faults],
        "busy": sorted(host.processes),
        "found": turning.behind(turn, now).as_dict(),
        "turn": turn.as_dict(),
        "identity": prerequisites.identity(host, settings["node"], settings["skipped_checks"]),
        "packages": [*packages, *pinning.pinned(host, settings, missing)],
        "held": pinning.held(host, settings, missing),
        "kubelet": _kubelet(host, settings),
        "apt": pinning.with_apt(host),
        "programs": _programs(host, settings, now),
        "images": contents_of.archives(host, settings, places.IMPORTED),
        "cni_plugins": unpacking.missing(host, settings),
        **made,
        "stops": [],
        "modules": modules.missing(host),
        "kernel": _loads(host, settings),
        "reload_units": any(path in (places.UNIT, places.UNIT_DROP_IN) for path in touched),
        "actions": [one.as_dict() for one in _actions(host, contents, unread and now.state != MEMBER)],
        "record": "" if faults else record.changed(host, places.ROLE, new),
    }


def _messages(host: Host, now: Found, lacking: c.Sequence[Fault]) -> list[str]:
    """What is reported of a member, and holds nothing up."""
    told = [*_expiry(certificates(host)), *encryption.messages(host, now), *map(str, lacking)]
    return told if now.state == MEMBER else []


def _lacking(host: Host, settings: Settings, now: Found) -> list[Fault]:
    """What the machine needs and has not got."""
    return [*prerequisites.faults(host, _needs(host, settings, now), settings["skipped_checks"]), *modules.faults(host)]


def _kubelet(host: Host, settings: Settings) -> str:
    """The package of the kubelet with its version, empty if it comes without one."""
    return next(iter(pinning.pinned(host, settings, ["kubelet"])), "") if "kubelet" in settings["packages"] else ""


def _expiry(issued: Certificates) -> list[str]:
    """How long they last. Others than kubeadm have to renew certificates of an authority whose key it has not."""
    if issued.due and not issued.renewable:
        why = "the key of its authority is not on the machine, so that kubeadm cannot renew it"
        next_step = (
            "renew it with that authority; the next run restarts the static pods that use it, one server at a time"
        )
        return [str(Fault(issued.state, f"{places.KUBERNETES}/pki", why, next_step))]
    # Those that are due are the reason of the machine's turn.
    return [issued.state] if issued.state and not issued.due else []


def _needs(host: Host, settings: Settings, now: Found) -> prerequisites.Needs:
    kubelet: Settings = settings["configuration"].get("KubeletConfiguration", {})
    serves = settings["role"] == SERVER
    return prerequisites.Needs(
        ports={**_NODE_PORTS, **(_SERVER_PORTS if serves else {})},
        networks={"network of pods": settings["pod_network"], "network of Services": settings["service_network"]},
        version=version_of(settings["version"]),
        serves=serves,
        member=now.state == MEMBER or now.running or now.data,
        without_cgroup_1=bool(kubelet.get("failCgroupV1", True)),
        swap=not kubelet.get("failSwapOn", True),
        endpoint=settings["endpoint"],
        direct=(settings["pod_network"], settings["service_network"]),
        containerd=host.version("containerd") if "crio" not in settings["runtime_socket"] else (),
    )


def _programs(host: Host, settings: Settings, now: Found) -> list[dict[str, t.Any]]:
    """The kubelet of a member is replaced in its turn, and only made ready before."""
    found = []
    for one in settings["programs"]:
        path = turning.installed(one)
        if now.state == MEMBER and one["name"] == "kubelet" and turning.staged(host, settings):
            path = places.STAGED
        if not contents_of.holds(host, path, one):
            found.append({**one, "path": path, "remote": contents_of.remote(one)})
    return found


def _left_over(host: Host, settings: Settings) -> bool:
    """Whether a kubelet was made ready that is in its place by now."""
    return bool(host.checksums.get(places.STAGED)) and not turning.staged(host, settings)


def _version_faults(host: Host, settings: Settings, now: Found) -> list[Fault]:
    """A version that is too old or not set, and programs that are neither there nor given, or that are of another version."""
    version, faults = version_of(settings["version"]), []
    if version < _OLDEST:
        what = (
            f"Kubernetes {settings['version']} is not supported" if version else "the version of Kubernetes is not set"
        )
        next_step = f"set one such as 1.36.4, and at least {_OLDEST[0]}.{_OLDEST[1]}"
        faults.append(Fault(what, "cluster_kubeadm_version", "", next_step))
    programs, packages = {one["name"] for one in settings["programs"]}, set(settings["packages"])
    given = {*programs, *packages, *host.fact("programs").split()}
    if missing := [name for name in places.PROGRAMS if name not in given]:
        next_step = (
            "set cluster_kubeadm_programs or cluster_kubeadm_packages, or install the packages of Kubernetes first"
        )
        faults.append(Fault(f"{', '.join(missing)} is not installed", "cluster_kubeadm_programs", "", next_step))
    if twice := sorted(programs & packages):
        next_step = "leave it out of one of them"
        faults.append(
            Fault(f"{', '.join(twice)} is both a program and a package", "cluster_kubeadm_packages", "", next_step)
        )
    # With kubelets of the version there is nothing to upgrade.
    there = now.state == MEMBER and host.version("kubelet") == version
    return [*faults, *([] if there else _other_programs(host, settings, version))]


def _other_programs(host: Host, settings: Settings, version: Version) -> list[Fault]:
    """Programs of another version than the one that is set, which nothing would replace."""
    given = {one["name"]: one for one in settings["programs"]}
    faults = []
    for name in places.PROGRAMS:
        one, has = given.get(name), host.version(name)
        if not has or has == version or name in settings["packages"]:
            continue
        what = f"{name} is {version_text(has)}, and {version_text(version)} is set"
        if one is None:
            next_step = f"set cluster_kubeadm_packages or cluster_kubeadm_programs, or install the package of {version_text(version)}"
            faults.append(Fault(what, turning.installed({"name": name}), "", next_step))
        elif contents_of.holds(host, turning.installed(one), one):
            why = f"it is the {name} of cluster_kubeadm_programs"
            next_step = f"set source and checksum of {version_text(version)} there, or cluster_kubeadm_version: {version_text(has)}"
            faults.append(Fault(what, "cluster_kubeadm_version", why, next_step))
    return faults


def _packages(host: Host, settings: Settings) -> list[str]:
    return [] if {"containerd", "crio"} & set(host.fact("programs").split()) else list(settings["runtime_packages"])


def _ipv6(settings: Settings) -> bool:
    return prerequisites.has_ipv6((settings["pod_network"], settings["service_network"]))


def _loads(host: Host, settings: Settings) -> bool:
    """Whether settings of the kernel are to be loaded, because it has others."""
    facts = ("ip_forward", *(("ipv6_forward",) if _ipv6(settings) else ()))
    return "0" in map(host.fact, facts) or prerequisites.few_instances(host)


def _kernel(host: Host, settings: Settings) -> str:
    """Settings of the kernel. What was once too low stays in the file: it would be again after a restart."""
    needs = prerequisites.few_instances(host) or _INSTANCES in host.text(places.SYSCTL)
    return "net.ipv4.ip_forward = 1\n" + (_IPV6 if _ipv6(settings) else "") + (_INSTANCES if needs else "")


def _contents(host: Host, settings: Settings, owned: bool) -> list[Content]:
    """owned: whether containerd's configuration is the role's."""
    contents = [
        Content(places.MODULES, "\n".join(modules.FACTS) + "\n"),
        Content(places.SYSCTL, _kernel(host, settings)),
    ]
    if any(one["name"] == "kubelet" for one in settings["programs"]):
        contents += [
            Content(places.UNIT, _text("kubelet.service")),
            Content(places.UNIT_DROP_IN, _text("kubelet.service.conf")),
        ]
    if owned:
        release = host.version("containerd")
        contents.append(
            Content(
                places.CONTAINERD,
                _text(
                    "containerd.toml",
                    version=3 if release >= (2,) else 2,
                    systemd=settings["cgroup_driver"] == "systemd",
                    pause=settings["pause_image"],
                ),
            )
        )
    return contents


def _owns_containerd(host: Host, now: Found) -> bool:
    """Whether containerd's configuration is the role's: there was none, or it is as the role has written it.

    Before a machine joins also one that is as its package has brought it. A member runs with it, and would have another cgroup driver.
    """
    try:
        kept = record.read(host, places.ROLE) or Record()
    except HwaccelError:
        return False
    if places.CONTAINERD not in host.files:
        return not host.unit("crio").loaded
    before = kept.files.get(places.CONTAINERD)
    written = before is not None and digest(host.text(places.CONTAINERD)) == before.written
    return written or (now.state != MEMBER and _as_packaged(host))


def _as_packaged(host: Host) -> bool:
    """Debian's containerd has a pause image of its time and cgroupfs, and Docker's has the CRI switched off: nobody has chosen that for this machine.

    Debian's package manager keeps MD5, that of Red Hat SHA-256.
    """
    text = host.text(places.CONTAINERD)
    digests = {md5(text), digest(text)}
    known = map(str.split, f"{host.fact('conffiles')}\n{host.fact('rpm_files')}".splitlines())
    return any(words[0] == places.CONTAINERD and words[1] in digests for words in known if len(words) > 1)


def _unread(host: Host, touched: c.Collection[str], owned: bool) -> bool:
    """Whether containerd runs without the configuration of the role that is on the disk, or will be."""
    unit = host.unit("containerd")
    stale = host.newer(places.CONTAINERD, unit.started_at) and owned
    return unit.active and (places.CONTAINERD in touched or stale)


def _actions(host: Host, contents: c.Sequence[Content], restarts: bool) -> list[Action]:
    """restarts: whether containerd is restarted at once. That of a member is restarted in its turn, when its node is drained."""
    actions = []
    if host.unit("containerd").loaded or places.CONTAINERD in {one.path for one in contents}:
        if not host.unit("containerd").active:
            actions.append(Action("containerd", "started", "nodes need it", health=("ctr", "version")))
        elif restarts:
            actions.append(Action("containerd", "restarted", f"{places.CONTAINERD} changes", health=("ctr", "version")))
    if not host.unit("kubelet").enabled:
        # kubeadm starts it, but only the next boot shows that nothing has enabled it.
        actions.append(Action("kubelet", "started", "it has to start at each boot", health=("true",)))
    return actions


def _first(host: Host, settings: Settings) -> Record:
    """before: what network plugins may add to later. sysctls: what others have, and the role changes."""
    before = " ".join(f"{host.fact('interfaces')} {host.fact('network_plugins')}".split())
    changing = sysctls.changing(host, ipv6=_ipv6(settings))
    kept = {"before": before, **({"sysctls": changing} if changing else {})}
    return Record(services=record.services(host, ("containerd", "kubelet")), settings=kept)


def _recorded(
    kept: Record, host: Host, settings: Settings, contents: c.Sequence[Content], packages: c.Iterable[str]
) -> Record:
    files = dict(kept.files)
    for program in settings["programs"]:
        path = turning.installed(program)
        files.setdefault(path, FileBefore(bool(host.checksums.get(path)), ""))
    files = contents_of.rewritten(host, files, contents)
    return dataclasses.replace(kept, files=files, packages=tuple(sorted({*kept.packages, *packages})))
