# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains a node before its container engine is restarted, and uncordons it afterwards.

Like `kubectl drain` (kubernetes, staging/src/k8s.io/kubectl/pkg/drain/drain.go): cordon, evict, wait. It differs from that, and from k8s_drain of
kubernetes.core, in issues that their users report:

- A node that cannot be drained is not cordoned (kubernetes issue 37592): pods are sorted, and each eviction is validated by a dry run before.
- All pods are tried in each round, so that one that a budget protects does not block the others (kubernetes.core issue 711).
- A pod is identified by its uid and its node, not by its name (kubernetes.core issue 792, kubernetes issue 138229).
- An incomplete drain is a failure, and names what prevents the eviction of each pod (kubectl issue 172).
- Only the writer of a cordon lifts it (NVIDIA/k8s-driver-manager issue 212). An annotation records that it was this module, and the owner of
  the field shows that nobody has lifted and renewed it since.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    BudgetRefused,
    Conflict,
    Fault,
    Forbidden,
    HwaccelError,
    Invalid,
    ManyFaults,
    NotFound,
    WebhookDenied,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet, quarantine
from ansible_collections.hwaccel.gpu.plugins.module_utils._state import draining, objects

Obj = dict[str, t.Any]

FIELD_MANAGER = "hwaccel-gpu-node-drain"
#: Owners of a cordon.
OURS, OTHERS, NOBODY = "node_drain", "others", ""
_NODE = Resource("", "v1", "Node", "nodes", False)
_POD = Resource("", "v1", "Pod", "pods", True)
_UNSCHEDULABLE = ("f:spec", "f:unschedulable")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options of the module, under its names."""

    name: str
    timeout: float = 600.0
    force: bool = False
    delete_emptydir_data: bool = False
    ignore_not_found: bool = False
    cluster_uid: str | None = None
    option_variables: c.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def called(self, option: str) -> str:
        return self.option_variables.get(option, option)


class NotDrained(HwaccelError):
    """The node is not drained and stays cordoned. faults: why each pod remains."""

    def __init__(self, what: str, faults: c.Sequence[Fault]) -> None:
        super().__init__(what, next_step="run again to continue")
        self.faults = tuple(faults)
        self.args = (
            "\n".join([f"{what}, and stays cordoned until it is released:", *(f"- {fault}" for fault in faults)]),
        )


@dataclasses.dataclass
class Progress:
    """State that one slice passes to the next. until: time.time()."""

    until: float
    evicted: list[str] = dataclasses.field(default_factory=list)
    reported: str = ""


@dataclasses.dataclass
class Evictions:
    """One round of evictions. done: pods that are terminating. held: why others are not yet, by pod. faults: permanent errors."""

    done: list[str] = dataclasses.field(default_factory=list)
    held: dict[str, str] = dataclasses.field(default_factory=dict)
    faults: list[Fault] = dataclasses.field(default_factory=list)


def drain(
    settings: Settings, client: Client, clock: Clock, *, check_mode: bool = False, resume: Obj | None = None
) -> Outcome:
    """resume: the `pending` of the previous slice."""
    node = _node(client, settings)
    if node is None:
        return _absent(settings)
    if not resume:
        found = _look(client, settings, node)
        tried = _evict(client, found, dry_run=True)
        faults = [*found.faults, *(_cordon_faults(client, node) if check_mode else ()), *tried.faults]
        if faults:
            return Outcome(values=_values(node, found, (), tried.held), failure=ManyFaults(faults))
        if check_mode:
            return _planned(node, found, tried)
    changed = quarantine.rewrite(client, _NODE, settings.name, _cordoned(clock), FIELD_MANAGER)
    progress = Progress(**resume) if resume else Progress(clock.now() + settings.timeout)
    return _rounds(settings, client, clock, progress, changed=changed)


def release(
    settings: Settings, client: Client, clock: Clock, *, check_mode: bool = False, resume: Obj | None = None
) -> Outcome:
    """Uncordons the node once it is Ready. resume: the `pending` of the previous slice."""
    until, pause = (resume or {}).get("until") or clock.now() + settings.timeout, _FIRST_PAUSE
    while True:
        node = _node(client, settings)
        if node is None:
            return _absent(settings)
        whose, ready = cordoned_by(node), objects.node(node)
        if check_mode or whose != OURS or ready.ready:
            break
        if clock.now() >= until:
            why = f"it is not Ready after {settings.timeout:g} s: {ready.reason}"
            failure = HwaccelError(
                f"node {settings.name} stays cordoned", "", why, "check why its kubelet is not ready, and run again"
            )
            return Outcome(values=_values(node), failure=failure)
        if clock.slice_over(pause):
            return Outcome(
                pending={"until": until}, progress=[f"node {settings.name} is not Ready yet: {ready.reason}"]
            )
        clock.sleep(pause)
        pause = min(pause * 1.6, _LONGEST_PAUSE)
    if _uncordoned(node) is None:
        return Outcome(
            values=_values(node),
            progress=[f"node {settings.name} stays cordoned because others cordoned it"] * bool(whose),
        )
    changed = check_mode or quarantine.rewrite(client, _NODE, settings.name, _uncordoned, FIELD_MANAGER)
    end = {
        OURS: "is uncordoned",
        OTHERS: "stays cordoned because others cordoned it again",
        NOBODY: "was uncordoned by others",
    }[whose]
    values = _values(node) | {"cordoned_by": OTHERS if whose == OTHERS else NOBODY}
    return Outcome(changed, values, progress=[f"node {settings.name} {end}"])


def cordoned_by(node: Obj) -> str:
    if not (node.get("spec") or {}).get("unschedulable"):
        return NOBODY
    annotated = names.CORDONED in (node["metadata"].get("annotations") or {})
    # If others uncordoned and cordoned the node, they own the field, and the annotation still exists.
    owned = fieldsets.contains(fieldsets.of_object(node, FIELD_MANAGER, operation="Update"), _UNSCHEDULABLE)
    return OURS if annotated and owned else OTHERS


def _rounds(settings: Settings, client: Client, clock: Clock, progress: Progress, *, changed: bool) -> Outcome:
    """Evicts pods until none is left that must leave, the timeout has passed, or the slice is over."""
    pause, lines = _FIRST_PAUSE, list[str]()
    while True:
        node = client.get(_NODE, settings.name)
        found = _look(client, settings, node)
        # Pods that were created since the first list count too: they were scheduled before the cordon, or have this node set.
        tried = Evictions(faults=list(found.faults)) if found.faults else _evict(client, found)
        waiting = [pod.where for pod in (*found.ending, *found.leaving) if pod.where not in tried.held]
        progress.evicted += [name for name in tried.done if name not in progress.evicted]
        changed = changed or bool(tried.done)
        if (line := _line(settings.name, progress, waiting, tried.held)) != progress.reported:
            lines.append(line)
            progress.reported = line
        failure = None
        if tried.faults:
            failure = NotDrained(f"node {settings.name} is not drained", tried.faults)
        elif (found.leaving or found.ending) and clock.now() >= progress.until:
            failure = NotDrained(
                f"node {settings.name} is not drained after {settings.timeout:g} s",
                _left(settings, node, waiting, tried.held),
            )
        if failure or not (found.leaving or found.ending):
            return Outcome(changed, _values(node, found, progress.evicted, tried.held), failure=failure, progress=lines)
        if clock.slice_over(pause):
            return Outcome(changed, pending=dataclasses.asdict(progress), progress=lines or [line])
        clock.sleep(pause)
        pause = min(pause * 1.6, _LONGEST_PAUSE)


def _node(client: Client, settings: Settings) -> Obj | None:
    """None if the cluster does not have the node, and that is allowed. Raises ManyFaults if it is another cluster."""
    fleet.refuse_another(client, settings.cluster_uid or "")
    try:
        return client.get(_NODE, settings.name)
    except NotFound:
        if settings.ignore_not_found:
            return None
        raise HwaccelError(
            f"there is no node {settings.name}",
            "name",
            "the cluster does not have it",
            "correct the name (kubectl get nodes), or the connection",
        ) from None


def _look(client: Client, settings: Settings, node: Obj) -> draining.Pods:
    pods = client.list(_POD, field_selector=f"spec.nodeName={settings.name}").items
    return draining.sort(
        node, pods, settings.called, force=settings.force, delete_emptydir_data=settings.delete_emptydir_data
    )


def _evict(client: Client, found: draining.Pods, *, dry_run: bool = False) -> Evictions:
    tried = Evictions()
    faults: dict[str, Fault] = {}
    for pod in found.leaving:
        try:
            client.evict(pod.name, pod.namespace, uid=pod.uid, dry_run=dry_run)
            tried.done.append(pod.where)
        except (NotFound, Conflict):
            # The pod is gone, or another one has its name.
            continue
        except (BudgetRefused, Forbidden, Invalid, WebhookDenied) as refused:
            # This error concerns one pod. Errors of the server concern all pods, so they are not waited for with each of them.
            fault = refused.faults[0]
            if refused.status == 429 or _namespace_ends(refused):
                tried.held[pod.where] = fault.why
            else:
                # A missing permission concerns each pod of the namespace.
                faults.setdefault(fault.next_step if isinstance(refused, Forbidden) else pod.where, fault)
    tried.faults = list(faults.values())
    return tried


def _namespace_ends(refused: ApiError) -> bool:
    """Nothing can be created in a terminating namespace, including evictions. The namespace controller deletes its pods (kubectl's drain.go waits as well)."""
    return any(
        cause.get("reason") == "NamespaceTerminating"
        for cause in (refused.body.get("details") or {}).get("causes") or ()
    )


def _cordon_faults(client: Client, node: Obj) -> list[Fault]:
    """Validates the cordon by a dry run, if the node is not cordoned."""
    patch = _cordoned(Clock())(node)
    try:
        # The kubelet updates the node often, so a conflict is retried.
        with contextlib.suppress(Conflict):
            if patch is not None:
                client.patch(_NODE, node["metadata"]["name"], "", patch, field_manager=FIELD_MANAGER, dry_run=True)
    except ApiError as refused:
        return list(refused.faults)
    return []


def _cordoned(clock: Clock) -> c.Callable[[Obj], Obj | None]:
    def change(node: Obj) -> Obj | None:
        if cordoned_by(node):
            return None
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock.now()))
        return {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {names.CORDONED: now}},
            "spec": {"unschedulable": True},
        }

    return change


def _uncordoned(node: Obj) -> Obj | None:
    metadata = node["metadata"]
    if names.CORDONED not in (metadata.get("annotations") or {}):
        return None
    ours: Obj = {"spec": {"unschedulable": None}} if cordoned_by(node) == OURS else {}
    return {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": {names.CORDONED: None}}, **ours}


def _absent(settings: Settings) -> Outcome:
    values = {"found": False, "ready": False, "cordoned_by": NOBODY, "evicted": [], "staying": [], "held": []}
    return Outcome(
        values=values, progress=[f"the cluster has no node {settings.name}: there is nothing to drain or to uncordon"]
    )


def _planned(node: Obj, found: draining.Pods, tried: Evictions) -> Outcome:
    whose, leaving = cordoned_by(node), [pod.where for pod in found.leaving]
    parts = ["would be cordoned"] * (not whose) + [f"would evict {some(leaving)}"] * bool(leaving)
    parts += [f"would have to wait for {_held(tried.held)}"] * bool(tried.held)
    line = f"node {node['metadata']['name']} {', '.join(parts) or 'is drained'}"
    return Outcome(
        bool(parts), _values(node, found, leaving, tried.held) | {"cordoned_by": whose or OURS}, progress=[line]
    )


def _values(
    node: Obj,
    found: draining.Pods | None = None,
    evicted: c.Iterable[str] = (),
    held: c.Mapping[str, str] | None = None,
) -> Obj:
    staying = found.staying if found else {}
    return {
        "found": True,
        "ready": objects.node(node).ready,
        "cordoned_by": cordoned_by(node),
        "evicted": sorted(evicted),
        "staying": [{"pod": pod, "why": why} for pod, why in sorted(staying.items())],
        "held": [{"pod": pod, "why": why} for pod, why in sorted((held or {}).items())],
    }


def _line(name: str, progress: Progress, waiting: c.Sequence[str], held: c.Mapping[str, str]) -> str:
    parts = [f"{len(waiting)} ending ({some(waiting)})"] * bool(waiting) + [f"{len(held)} held ({_held(held)})"] * bool(
        held
    )
    return f"node {name}: {', '.join(parts) or 'drained'}, {len(progress.evicted)} evicted"


def _held(held: c.Mapping[str, str]) -> str:
    return some([f"{pod}: {why}" for pod, why in held.items()])


def _left(settings: Settings, node: Obj, waiting: c.Iterable[str], held: c.Mapping[str, str]) -> list[Fault]:
    """Why each remaining pod has not left."""
    step = "make sure that the condition is met elsewhere, or ask its owner; then run again to continue"
    faults = [Fault(f"pod {pod} cannot be evicted", "", why, step) for pod, why in sorted(held.items())]
    ready = objects.node(node)
    why = (
        "it has not ended yet"
        if ready.ready
        else f"it is unknown whether it has ended, because the node is not Ready: {ready.reason}"
    )
    step = (
        f"check why it is still running, or increase {settings.called('timeout')}"
        if ready.ready
        else "repair the node's kubelet"
    )
    return faults + [Fault(f"pod {pod} is terminating", "", why, step) for pod in sorted(waiting)]
