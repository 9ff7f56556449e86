# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is observed of an install at one moment, as plain data: of its folder, its boot servers and load balancers, its machines, and its API. Pure.

Whoever observes fills it. `install_state` says from it how far the install is, `progress` what it waits for, `causes` why it does not go on.
"""

from __future__ import annotations

import dataclasses
import datetime

BOOTSTRAP, MASTER, WORKER = ROLES = ("bootstrap", "master", "worker")

#: The stages of a machine's boot, in their order. All but the last are those of boot servers' logs; at CONFIG it has its pool's configuration from 22623.
NOTHING, REQUESTED, ADDRESS, LOADER, KERNEL, IGNITION, REPORTED, CONFIG = BOOT_STAGES = (
    "nothing",
    "requested",
    "address",
    "loader",
    "kernel",
    "ignition",
    "reported",
    "config",
)

#: How the API of a cluster answers: it is read; not at all; with a certificate of another authority, or one that is not valid at this time; to others only.
ANSWERS, SILENT, UNTRUSTED, UNTIMELY, LOCKED = API_ANSWERS = ("answers", "silent", "untrusted", "untimely", "locked")


@dataclasses.dataclass(frozen=True)
class Installation:
    """The folder of an installation and the record beside it.

    path: for messages. files: whether openshift-install has written anything in it. infrastructure: infraID, by metadata.json or the record, "" if unknown.
    expires: when the first certificate of the bootstrap file expires, None if unknown. installed: whether the cluster was observed as installed before.
    """

    path: str = ""
    files: bool = False
    infrastructure: str = ""
    expires: datetime.datetime | None = None
    installed: bool = False


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine of the inventory.

    name: as its reverse record has it. role: one of ROLES. stage: the furthest of BOOT_STAGES since its power came on. what: what it has downloaded last, or
    its address. refused: what it was not given, with the reason, "" if nothing stops it. fetches: how often it has downloaded its ignition file for this
    installation. restarts: how often it has started from the network since then. quiet: seconds since its last request to a boot server, None if unknown. said:
    the last error on its console or in its journal, "" if unknown. joined: whether the boot servers remember it as a node. written: whether it was installed
    with the files of this installation, or of one before.
    """

    name: str
    role: str
    stage: str = NOTHING
    what: str = ""
    refused: str = ""
    fetches: int = 0
    restarts: int = 0
    quiet: float | None = None
    said: str = ""
    joined: bool = False
    written: bool = False

    def at_least(self, stage: str) -> bool:
        return BOOT_STAGES.index(self.stage) >= BOOT_STAGES.index(stage)

    @property
    def node_names(self) -> frozenset[str]:
        """Names that its Node may have."""
        return frozenset((self.name, self.name.partition(".")[0]))


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """What the install depends on. api_members, config_members: machines to which load balancers send 6443 and 22623, None if unknown.

    config_refused: why api-int:22623 cannot be reached from the machines' network, "" if it can, or nobody has tried. wildcard: what is wrong with the record
    *.apps in DNS, "" likewise.
    """

    api_members: tuple[str, ...] | None = None
    config_members: tuple[str, ...] | None = None
    config_refused: str = ""
    wildcard: str = ""


@dataclasses.dataclass(frozen=True)
class Api:
    """answer: one of API_ANSWERS. where: its address. why: the error if it is not read."""

    answer: str = SILENT
    where: str = ""
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Version:
    """ClusterVersion. completed: whether its history has a completed installation. text: message of its Progressing or Failing condition."""

    completed: bool = False
    available: bool = False
    failing: bool = False
    progressing: bool = False
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Operator:
    """A ClusterOperator. reason: reason and message of the condition that is not as it should be, "" if all are."""

    name: str
    available: bool = True
    degraded: bool = False
    progressing: bool = False
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Node:
    """waiting: why it is not Ready, "" if it is. control_plane: by its labels."""

    name: str
    waiting: str = ""
    control_plane: bool = False


@dataclasses.dataclass(frozen=True)
class Request:
    """A certificate signing request that is not approved. node: the name that it is for. code: why not, "" if nobody has judged it. text: the whole message."""

    name: str
    node: str
    code: str = ""
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Answers:
    """What the API server has answered.

    infrastructure: `status.infrastructureName` of Infrastructure cluster, "" if it has none yet. bootstrapped: whether ConfigMap kube-system/bootstrap, or an
    installation before, says that bootstrap is complete. removable: whether etcd does without the bootstrap machine. evidence: of both, "" if nothing was ever
    read. version: None before there is one. serving: expected nodes that serve with a certificate of the cluster, None if this is not observed.
    """

    infrastructure: str = ""
    bootstrapped: bool = False
    removable: bool = False
    evidence: str = ""
    version: Version | None = None
    operators: tuple[Operator, ...] = ()
    nodes: tuple[Node, ...] = ()
    requests: tuple[Request, ...] = ()
    serving: frozenset[str] | None = None

    @property
    def installed(self) -> bool:
        return self.version is not None and self.version.completed


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """name: such as dgxpod.example.com. now: by the clock of the host that observes, with its zone. answers: what was read last, also of an API that is silent
    now.
    """

    name: str
    now: datetime.datetime
    installation: Installation = Installation()
    machines: tuple[Machine, ...] = ()
    surroundings: Surroundings = Surroundings()
    api: Api = Api()
    answers: Answers = Answers()

    def of_role(self, *roles: str) -> tuple[Machine, ...]:
        return tuple(machine for machine in self.machines if machine.role in roles)

    def node_of(self, machine: Machine) -> Node | None:
        return next((node for node in self.answers.nodes if node.name in machine.node_names), None)
