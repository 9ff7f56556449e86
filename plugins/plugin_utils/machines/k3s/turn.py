# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a member runs as it is set, and what its turn has to do otherwise. Pure.

In its turn a machine's node is drained, and its K3s replaced and restarted. Everything follows from what is on the machine, so that a run continues one that
was killed at any point.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority, contents
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import MEMBER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host, version_of
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import hardening, places

Settings = c.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Turn:
    """reasons: why the machine has a turn, empty if it has none. begun: whether an earlier run has begun it.

    gated: whether its node had passed the gate for GPUs before, None if nothing was recorded. upgrade: whether its version changes.
    restart: whether its K3s is restarted. stays: whether its node is not drained for that. upgraded: whether it is a server with the version that is set.
    runtime, pods: nothing but K3s is restarted.
    """

    reasons: tuple[str, ...] = ()
    begun: bool = False
    gated: bool | None = None
    upgrade: bool = False
    restart: bool = False
    stays: bool = False
    upgraded: bool = False
    runtime: bool = False
    pods: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "reasons": list(self.reasons), "pods": list(self.pods)}


def turn(host: Host, settings: Settings, now: Found, writes: c.Collection[str], adopts: bool = False) -> Turn:
    """writes: paths of files that this run writes. adopts: whether the K3s that runs is adopted, and was not restarted since."""
    if now.state != MEMBER:
        return Turn()
    wanted = version_of(settings["version"])
    runs, release = installed(host), (wanted, build(settings["version"]))
    older = (f"its K3s is {runs}",) if (now.version, build(runs)) != release else ()
    stale = _stale(host, settings, writes) if not (older or adopts) else ()
    # Servers whose certificates have expired are started again before their turn.
    idle = not (host.unit(places.UNITS[settings["role"]]).active or older or adopts or now.expired)
    stopped = ("its K3s does not run",) if idle else ()
    taken = ("it is adopted",) if adopts else ()
    record = contents.noted(host.text(places.TURN))
    interrupted = ("an earlier run was interrupted there",) if host.text(places.TURN) else ()
    # Within the 90 days in which K3s issues them again at a start (https://docs.k3s.io/cli/certificate).
    left, due = lasting(host)
    renewals = (left,) if due and not now.expired else ()
    restarts = (*older, *taken, *stale, *stopped, *renewals)
    reasons = (*restarts, *interrupted)
    return Turn(
        reasons,
        begun=bool(interrupted),
        gated=record.get("gated"),
        upgrade=bool(older or record.get("upgrade")),
        restart=bool(restarts),
        # Pods outlive a start and a restart (KillMode of the unit), and neither program nor settings are others than those that run.
        stays=bool(restarts) and not (older or stale or staged(host, settings)),
        upgraded=now.serves and now.version == wanted,
    )


def behind(found: Turn, now: Found) -> Found:
    return dataclasses.replace(now, behind=found.reasons, begun=found.begun)


def program(settings: Settings) -> Settings:
    """That of the machine's architecture."""
    return t.cast("Settings", next(iter(settings["programs"]), {}))


def installed(host: Host) -> str:
    """The release that is installed, such as v1.36.4+k3s1, empty if there is none."""
    words = host.commands["k3s"].output.split() if "k3s" in host.commands else []
    return next((word for word in words if "+k3s" in word), "")


def build(release: str) -> int:
    """The number after +k3s, which counts builds of the same Kubernetes."""
    digits = str(release).rpartition("+k3s")[2]
    return int(digits) if digits.isdigit() else 0


def staged(host: Host, settings: Settings) -> bool:
    """Whether the program that is set is another one than that which is installed, which it replaces in the machine's turn only."""
    one = program(settings)
    return bool(one) and not contents.holds(host, places.PROGRAM, one)


def lasting(host: Host) -> tuple[str, bool]:
    """How long the first certificate lasts that K3s issues again at a start, empty if there is none, and whether one of them is to be."""
    days, due = authority.lasting(map(host.text, (*places.CERTIFICATES, *places.NODE_CERTIFICATES)), host.now)
    return authority.expiry(days, "its K3s"), due


def unread(path: str) -> str:
    """The reason of a file that K3s has not loaded."""
    return f"its K3s has not loaded {path}"


def _stale(host: Host, settings: Settings, writes: c.Collection[str]) -> tuple[str, ...]:
    """Why the K3s that runs is another one than is on the disk, or will be."""
    unit = host.unit(places.UNITS[settings["role"]])
    reasons = ["its K3s is another program than the one that is set"] if staged(host, settings) else []
    if not unit.active:
        return tuple(reasons)
    since = unit.started_at
    if host.later(host.moment("program_changed"), since):
        reasons.append("its K3s runs an older program")
    for path in (places.CONFIGURATION, places.REGISTRIES, *hardening.FILES):
        if path in writes or host.newer(path, since):
            reasons.append(unread(path))
    if places.unit(settings["role"]) in writes or host.newer(places.unit(settings["role"]), since):
        reasons.append("its K3s runs with an older unit")
    return tuple(reasons)
