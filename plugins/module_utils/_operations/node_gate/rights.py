# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rights a gate lacks for what its run would do next. A run finds out by its requests; check mode, which makes none of them, asks."""

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

#: Kinds of every Kubernetes: not worth a discovery.
_DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
_DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments", True)
_POD = Resource("", "v1", "Pod", "pods", True)
_EVENT = Resource("", "v1", "Event", "events", True)

#: A mark is written on condition of what was read just before.
_MARKING: tuple[Question, ...] = (("get", NODE, ""), ("patch", NODE, ""))
_LOOKING: tuple[Question, ...] = (("list", _DAEMON_SET, ""),)
#: In all namespaces.
_LOOKING_AT_CONTROLLERS: tuple[Question, ...] = (("list", _DEPLOYMENT, ""),)
_WAITING: tuple[Question, ...] = (("watch", NODE, ""), ("watch", _POD, ""))
#: In all namespaces, for how hard a mark may be. Without it a run goes on, and marks softly.
_WEIGHING: tuple[Question, ...] = (("list", _DAEMON_SET, ""),)
#: Without these a run goes on, and its faults say less.
_TELLING: tuple[Question, ...] = (("get", _POD, "log"), ("list", _EVENT, ""))


@dataclasses.dataclass(frozen=True)
class Lacking:
    """needed: without them the run fails. telling: without them it says less of why a node failed, or marks it less."""

    needed: tuple[Right, ...] = ()
    telling: tuple[Right, ...] = ()

    def added_to(self, outcome: Outcome) -> Outcome:
        """The outcome of a check, with all that is lacking; a failure, of a run that would change nothing, where the run would fail."""
        outcome.values["missing_rights"] = rights.as_dicts(sorted((*self.needed, *self.telling)))
        outcome.warnings += [str(fault) for fault in rights.faults(self.telling)]
        if self.needed:
            outcome.changed, outcome.failure = False, ManyFaults(rights.faults(self.needed))
        return outcome


def of_run(snapshot: GateSnapshot, *, marks_due: bool) -> Lacking:
    """Of the run that a check stands for. Where no node is known yet, it will have some to wait for. marks_due: nodes are to be marked, freed or labelled.

    A fleet that has passed, with nothing to mark, costs one request, and one more for Deployments.
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
    """For what lifts marks without judging anything."""
    return Lacking(tuple(rights.refused(client, _MARKING, "")))
