# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is observed of an installation before anything is decided, as plain data: whoever observes fills it, and `decision.decide` judges it. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.inputs import Inputs
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.lifetimes import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, Tool

#: openshift-install leaves its state here, with all keys.
STATE_FILE = ".openshift_install_state.json"


@dataclasses.dataclass(frozen=True)
class Folder:
    """The folder of an installation.

    path: for messages. checksums: SHA-256 of its ignition files, by name. state: whether it has STATE_FILE. others: names of what else is in it.
    infrastructure: infraID of its metadata.json, "" if there is none. clock: of the bootstrap file, None if it is not there, or has no certificates that
    count. faults: why files in it cannot be read, or are refused by Ignition. staging: folders beside it that an interrupted run has left. secret: names in
    checksums whose files hold keys, or might.
    """

    path: str
    checksums: c.Mapping[str, str] = dataclasses.field(default_factory=dict)
    state: bool = False
    others: tuple[str, ...] = ()
    infrastructure: str = ""
    clock: Clock | None = None
    faults: tuple[Fault, ...] = ()
    staging: tuple[str, ...] = ()
    secret: frozenset[str] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether there is nothing, or no folder at all."""
        return not (self.of_installation or self.others)

    @property
    def of_installation(self) -> bool:
        """Whether openshift-install has written anything in it. What somebody else has there is never moved away."""
        return bool(self.checksums or self.state)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """What answers at `https://api.<name>.<domain>:6443`, and what is known of its machines.

    name: such as dgxpod.example.com. answers: whether an API server does. infrastructure: `status.infrastructureName` of Infrastructure cluster, "" if it
    could not be read (yet). bootstrapped: whether the bootstrap is complete. installed: whether ClusterVersion has a completed installation.
    written: machines that were installed with the files in the folder, by the boot servers' memory and the cluster's Nodes.
    """

    name: str
    answers: bool = False
    infrastructure: str = ""
    bootstrapped: bool = False
    installed: bool = False
    written: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.bootstrapped or self.installed


@dataclasses.dataclass(frozen=True)
class Requested:
    """inputs: with the salt of the record, or a new one where there is none. tool: the one that would run, None in check mode, which does not run it.

    regenerate_named: machines that may lose their cluster. margin: how long files have to be valid that are used again, by default 12 h, or half the lifetime
    of their certificates where that is less.
    """

    inputs: Inputs
    tool: Tool | None
    adopt: bool = False
    regenerate: bool = False
    regenerate_named: tuple[str, ...] = ()
    margin: datetime.timedelta | None = None


@dataclasses.dataclass(frozen=True)
class Observed:
    """record: None if there is none beside the folder. now: by the clock of the host, with its zone."""

    folder: Folder
    record: Record | None
    cluster: Cluster
    requested: Requested
    now: datetime.datetime
