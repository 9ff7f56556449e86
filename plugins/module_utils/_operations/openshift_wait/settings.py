# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of openshift_wait, and the problems of their values."""

from __future__ import annotations

import collections
import collections.abc as c
import dataclasses
import datetime
import math
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval import identities
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.rules import ApprovalPolicy
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import values
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import BOOTSTRAP as BOOTSTRAP_MACHINE
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.snapshot import (
    MASTER,
    WORKER,
    Installation,
    Machine,
    Snapshot,
    Surroundings,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import settings as approving

API, BOOTSTRAP, NODES, INSTALL = PHASES = ("api", "bootstrap", "nodes", "install")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names."""

    name: str
    until: str = INSTALL
    expected_nodes: c.Sequence[c.Mapping[str, t.Any]] = ()
    added_nodes: c.Sequence[str] = ()
    allow_rejoin: c.Sequence[str] = ()
    serving_ca: str = ""
    installation: c.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    machines: c.Sequence[c.Mapping[str, t.Any]] = ()
    surroundings: c.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    api_timeout: float = 1200.0
    bootstrap_timeout: float = 3600.0
    nodes_timeout: float = 3600.0
    install_timeout: float = 3600.0
    leg: float = 0.0
    waited: c.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    @property
    def phases(self) -> tuple[str, ...]:
        """What is waited for, in this order."""
        return PHASES[: PHASES.index(self.until) + 1]

    def limit(self, phase: str) -> float:
        """Seconds."""
        limits = (self.api_timeout, self.bootstrap_timeout, self.nodes_timeout, self.install_timeout)
        return dict(zip(PHASES, limits, strict=True))[phase]


@dataclasses.dataclass(frozen=True)
class Decided:
    """The options as the run uses them. policy: None if no requests are approved. base: what is known of the install besides its API."""

    policy: ApprovalPolicy | None
    base: Snapshot


def decided(settings: Settings, record: Record | None = None) -> Decided:
    """record: beside the folder of the installation. Raises ManyFaults with all problems of the options."""
    faults = [*_name(settings), *_numbers(settings), *_machines(settings), *_of_machines(settings)]
    policy = None
    if settings.expected_nodes or settings.allow_rejoin or settings.serving_ca:
        given = approving.Settings(
            settings.expected_nodes,
            "openshift",
            allow_rejoin=settings.allow_rejoin,
            serving_ca=settings.serving_ca,
        )
        try:
            policy = approving.policy(given)
        except ManyFaults as error:
            faults += error.faults
    if policy is not None:
        faults += _unlike(settings, policy)
    expires = _moment(settings.installation.get("not_after") or "", faults)
    if faults:
        raise ManyFaults(faults)
    return Decided(policy, _base(settings, expires, record))


def _base(settings: Settings, expires: datetime.datetime | None, record: Record | None) -> Snapshot:
    folder, around = settings.installation, settings.surroundings
    members = {name: around.get(name) for name in ("api_members", "config_members")}
    return Snapshot(
        name=settings.name,
        now=datetime.datetime.fromtimestamp(0, datetime.UTC),
        installation=Installation(
            path=folder.get("path") or "",
            files=folder.get("files", True),
            infrastructure=folder.get("infrastructure") or (record.infrastructure if record else ""),
            expires=expires,
            installed=folder.get("installed", False) or bool(record and record.installed),
        ),
        machines=tuple(_machine(one) for one in settings.machines),
        surroundings=Surroundings(
            **{name: None if value is None else tuple(map(identities.plain, value)) for name, value in members.items()},
            config_refused=around.get("config_refused") or "",
            wildcard=around.get("wildcard") or "",
        ),
    )


def _machine(given: c.Mapping[str, t.Any]) -> Machine:
    known = {name: value for name, value in given.items() if value is not None}
    return Machine(**{**known, "name": identities.plain(str(given["name"]))})


def _name(settings: Settings) -> c.Iterator[Fault]:
    if not identities.is_node_name(identities.plain(settings.name)):
        what, why = f"{values.shown(settings.name)} cannot be used", "it is not a DNS name"
        yield Fault(what, "name", why, "give name and base domain of the cluster, such as dgxpod.example.com")


def _numbers(settings: Settings) -> c.Iterator[Fault]:
    if not 0 <= settings.leg < math.inf:
        yield Fault(f"leg {settings.leg:g} cannot be used", "leg", "it is below 0", "set a number of seconds, or none")
    for phase in PHASES:
        value = settings.limit(phase)
        if not 0 < value < math.inf:
            name = f"{phase}_timeout"
            why = "the wait would never end" if value == math.inf else "it is not above 0"
            yield Fault(f"{name} {value:g} cannot be used", name, why, "set a number of seconds")


def _machines(settings: Settings) -> c.Iterator[Fault]:
    # A bootstrap machine can become a worker later, under the same name.
    counted = collections.Counter(
        (identities.plain(str(one["name"])), one["role"] == BOOTSTRAP_MACHINE) for one in settings.machines
    )
    for (name, _bootstraps), count in sorted(counted.items()):
        if count > 1:
            why = f"{count} machines have this name"
            yield Fault(f"machine {name} cannot be told from another one", "machines", why, "correct the names")


def _of_machines(settings: Settings) -> c.Iterator[Fault]:
    for number, one in enumerate(settings.machines):
        if not identities.is_node_name(identities.plain(str(one["name"]))):
            what, why = f"{values.shown(str(one['name']))} cannot be used", "it is not a DNS name"
            yield Fault(what, f"machines[{number}].name", why, "give the name in the machine's reverse record")
        for key in ("fetches", "restarts", "quiet"):
            value = one.get(key)
            if value is not None and not 0 <= value < math.inf:
                yield Fault(
                    f"{value:g} cannot be used", f"machines[{number}].{key}", "it is not 0 or more", "correct it"
                )


def _unlike(settings: Settings, policy: ApprovalPolicy) -> c.Iterator[Fault]:
    """Progress and causes are by machine, so that a node without a machine would be waited for in silence."""
    becoming = {identities.plain(str(one["name"])) for one in settings.machines if one["role"] in (MASTER, WORKER)}
    nodes = {identity.name for identity in policy.expected.identities}
    if not becoming:
        return
    for name in sorted(nodes - becoming):
        yield Fault(f"expected node {name} has no machine", "machines", "", "add it as a master or worker")
    for name in sorted(becoming - nodes):
        yield Fault(
            f"machine {name} is not expected", "expected_nodes", "", "add it, so that its requests are approved"
        )


def _moment(text: str, faults: list[Fault]) -> datetime.datetime | None:
    if not text:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        where, why = "installation.not_after", "it is no time in ISO 8601 with its zone"
        faults.append(Fault(f"{values.shown(text)} cannot be used", where, why, "give it as 2026-12-01T06:00:00Z"))
        return None
    return moment
