# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a member runs as it is set, and what its turn has to do otherwise. Pure.

In its turn a machine is taken out of service: its certificates are renewed, its control plane is upgraded, its node drained, its kubelet replaced and
restarted, each of them only where it has to be. Everything follows from
what is on the machine, so that a run continues one that was killed at any point.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import contents
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import MEMBER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import (
    Host,
    Version,
    version_of,
    version_text,
)
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import documents, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.certificates import (
    Certificates,
    certificates,
)

Settings = c.Mapping[str, t.Any]
_OLDER_PROGRAM = "its kubelet runs an older program"


@dataclasses.dataclass(frozen=True)
class Turn:
    """reasons: why the machine has a turn, empty if it has none. begun: whether an earlier run has begun it.

    gated: whether its node had passed the gate for GPUs before, None if nothing was recorded. upgrade: whether kubeadm has to upgrade it.
    restart: whether its kubelet is restarted. runtime: whether containerd is restarted before it.
    upgraded: whether it is a server whose control plane has the version that is set.
    renew: whether its certificates are renewed. pods: static pods that are restarted, because they have not loaded their certificates.
    names: whether the certificate of its API server is issued again, because it lacks names. applied: as places.CONFIGURATION has it.
    """

    reasons: tuple[str, ...] = ()
    begun: bool = False
    gated: bool | None = None
    upgrade: bool = False
    restart: bool = False
    runtime: bool = False
    upgraded: bool = False
    renew: bool = False
    pods: tuple[str, ...] = ()
    names: bool = False
    applied: c.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "reasons": list(self.reasons), "pods": list(self.pods)}


def turn(host: Host, settings: Settings, now: Found, writes: c.Collection[str], *, runtime: bool = False) -> Turn:
    """writes: paths of files that this run writes. runtime: whether containerd has not loaded its configuration, or will not have."""
    if now.state != MEMBER:
        return Turn()
    wanted = version_of(settings["version"])
    older = _older(now, wanted)
    outdated = (f"its containerd has not loaded {places.CONTAINERD}",) if runtime else ()
    stale = (*_stale(host, settings, writes), *outdated) if not older else ()
    record, applied = contents.noted(host.text(places.TURN)), contents.noted(host.text(places.CONFIGURATION))
    # A run was killed when everything was done but to remove its secrets.
    begun = host.text(places.TURN) or host.fact("secrets")
    wanted_parts = documents.components(settings)
    issued = certificates(host, (wanted_parts[documents.CLUSTER]["apiServer"] or {}).get("certSANs", ()))
    changed = _changed(applied, wanted_parts, serves=now.serves) if not older else {}
    # kubeadm may have been killed after the version was there. A package replaces the kubelet, and leaves the rest to kubeadm.
    whole = bool(older or record.get("upgrade")) or _OLDER_PROGRAM in stale or documents.KUBELET in changed
    interrupted = ["an earlier run was interrupted there"] if begun else []
    reasons = (*older, *stale, *changed.values(), *_renewals(issued), *interrupted)
    return Turn(
        reasons,
        begun=bool(begun),
        gated=record.get("gated"),
        upgrade=whole or bool(changed),
        # kubeadm writes the configuration of the kubelet, also where it has written it before.
        restart=whole or bool(stale),
        runtime=runtime,
        upgraded=now.control_plane == wanted,
        renew=issued.renew,
        pods=issued.pods,
        names=bool(issued.lacking) and issued.renewable,
        applied=applied,
    )


def behind(found: Turn, now: Found) -> Found:
    return dataclasses.replace(now, behind=found.reasons, begun=found.begun)


def _older(now: Found, wanted: Version) -> tuple[str, ...]:
    parts = {"its control plane": now.control_plane or wanted, "its kubelet": now.version}
    return tuple(f"{name} is {version_text(version)}" for name, version in parts.items() if version != wanted)


def _stale(host: Host, settings: Settings, writes: c.Collection[str]) -> tuple[str, ...]:
    """Why the kubelet that runs is another one than is on the disk, or will be."""
    since = host.unit("kubelet").started_at
    reasons = []
    if staged(host, settings):
        reasons.append("its kubelet is another program than the one that is set")
    if host.unit("kubelet").active:
        if host.later(host.moment("kubelet_changed"), since):
            reasons.append(_OLDER_PROGRAM)
        if host.later(host.moment("kubelet_config_changed"), since):
            reasons.append(f"its kubelet has not loaded {places.KUBELET_CONFIG}")
        units = (places.UNIT, places.UNIT_DROP_IN)
        if any(path in writes or host.newer(path, since) for path in units):
            reasons.append("its kubelet runs with an older unit")
    return tuple(reasons)


def _changed(applied: Settings, wanted: Settings, *, serves: bool) -> dict[str, str]:
    """Why kubeadm has to write the configuration of a machine anew, by kind. What is not known to be there has to be."""
    parts = {documents.CLUSTER: "its control plane"} if serves else {}
    parts[documents.KUBELET] = "its kubelet"
    return {
        kind: f"{part} has another configuration than the one that is set"
        for kind, part in parts.items()
        if applied.get(kind) != wanted[kind]
    }


def _renewals(issued: Certificates) -> tuple[str, ...]:
    """Expired ones are renewed before any turn, as no server is healthy with them."""
    if issued.renew:
        return () if issued.expired else (issued.state,)
    if issued.lacking and issued.renewable:
        return (f"the certificate of its API server lacks {', '.join(issued.lacking)}",)
    return (f"static pods have not loaded renewed certificates ({', '.join(issued.pods)})",) if issued.pods else ()


def installed(program: Settings) -> str:
    """Where a program of the settings runs from."""
    return f"{places.PROGRAMS_FOLDER}/{program['name']}"


def staged(host: Host, settings: Settings) -> bool:
    """Whether the kubelet that is set is another program than the installed one, which it replaces in the machine's turn only."""
    return any(
        one["name"] == "kubelet" and not contents.holds(host, installed(one), one) for one in settings["programs"]
    )
