# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions that a gate lacks for its next changes. A run detects them by its requests. Check mode, which sends none of these, sends access reviews."""

from __future__ import annotations

import dataclasses

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.rights import Question, Right
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.fleet import NODE
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.snapshot import GateSnapshot

#: Kinds that every Kubernetes has, so that no discovery is needed.
_DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
_DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments", True)
_POD = Resource("", "v1", "Pod", "pods", True)
_EVENT = Resource("", "v1", "Event", "events", True)

#: A quarantine is written under the condition that the node has not changed since it was read.
_MARKING: tuple[Question, ...] = (("get", NODE, ""), ("patch", NODE, ""))
_LOOKING: tuple[Question, ...] = (("list", _DAEMON_SET, ""),)
#: Needed in all namespaces.
_LOOKING_AT_CONTROLLERS: tuple[Question, ...] = (("list", _DEPLOYMENT, ""),)
_WAITING: tuple[Question, ...] = (("watch", NODE, ""), ("watch", _POD, ""))
#: Needed in all namespaces, for the effect of the taint. Without it a run continues with PreferNoSchedule.
_WEIGHING: tuple[Question, ...] = (("list", _DAEMON_SET, ""),)
#: Without these a run continues, and its faults have less detail.
_TELLING: tuple[Question, ...] = (("get", _POD, "log"), ("list", _EVENT, ""))


@dataclasses.dataclass(frozen=True)
class Lacking:
    """needed: the run fails without them. telling: without them a run reports fewer causes, or uses the weaker taint."""

    needed: tuple[Right, ...] = ()
    telling: tuple[Right, ...] = ()

    def added_to(self, outcome: Outcome) -> Outcome:
        """The outcome of check mode with all missing permissions. It is a failure without changes if the run would fail."""
        outcome.values["missing_rights"] = rights.as_dicts(sorted((*self.needed, *self.telling)))
        outcome.warnings += [str(fault) for fault in rights.faults(self.telling)]
        if self.needed:
            outcome.changed, outcome.failure = False, ManyFaults(rights.faults(self.needed))
        return outcome


def of_run(snapshot: GateSnapshot, *, marks_due: bool) -> Lacking:
    """Missing permissions of the run. If no node is known yet, the run may have some to wait for. marks_due: nodes must be quarantined, released or labeled.

    A fleet that has passed, with no change, needs one request, and one more for Deployments.
    """
    settings = snapshot.settings
    waits = not snapshot.verdicts or any(verdict.state != chain.PASSED for verdict in snapshot.verdicts.values())
    marks = marks_due or (waits and (settings.marks or settings.gate == "driver"))
    needed = rights.refused(
        snapshot.client, (*_LOOKING, *(_WAITING if waits else ()), *(_MARKING if marks else ())), settings.namespace
    )
    everywhere = rights.refused(snapshot.client, _LOOKING_AT_CONTROLLERS if settings.gate == "features" else (), "")
    telling = rights.refused(snapshot.client, _TELLING if waits else (), settings.namespace)
    telling += rights.refused(
        snapshot.client, _WEIGHING if settings.marks and (waits or _marked_hard(snapshot)) else (), ""
    )
    return Lacking((*needed, *everywhere), tuple(telling))


def _marked_hard(snapshot: GateSnapshot) -> bool:
    return any(quarantine.effect_of(snapshot.fleet.nodes[name]) == quarantine.HARD for name in snapshot.verdicts)


def of_marking(client: Client) -> Lacking:
    """Missing permissions to lift quarantines without judging nodes."""
    return Lacking(tuple(rights.refused(client, _MARKING, "")))
