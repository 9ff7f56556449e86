# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One gate over a fleet: judge every node, wait while some may still pass, then say which failed and keep those apart."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import datetime
import functools
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, expected, exporters, resources
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.chain import Verdict, Wanted
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import ROLE_OF_GATE
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import EXPORTER, VALIDATOR
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, Overloaded, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.wording import some
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import node_gate_changes as changes
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import node_gate_nfd as nfd
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import node_gate_report as report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import node_gate_rights as rights
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import node_gate_rollouts as rollouts
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import quarantine as marks
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate_fleet import Fleet, is_candidate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate_settings import Settings

#: The kubelet repeats what failed after at most five minutes: so long, a failure from before this run is only the last try's result.
STALE = 330.0
#: One look at the events of pods and of nodes.
_CYCLE = 4.0
#: And where only the DaemonSets' and Deployments' own state is waited for.
_SHORT_CYCLE = 1.0
#: Where a container that has failed runs again for a moment between two back-offs. A driver's run takes minutes, and may be the one that works.
_KEPT_FAILED = ("devices", exporters.GATE)
_LINE_EVERY = 5.0
_SAME_LINE_EVERY = 60.0


@dataclasses.dataclass
class Gate:
    """One run of one gate, over all its slices."""

    settings: Settings
    client: Client
    fleet: Fleet
    #: time.time(): slices are processes of their own.
    started: float
    verdicts: dict[str, Verdict] = dataclasses.field(default_factory=dict)
    #: Of nodes that are not judged, because their exporter waits for their driver (the driver's verdict) or somebody has switched off what would be judged.
    held: dict[str, Verdict] = dataclasses.field(default_factory=dict)
    #: Nodes that may not stay as they are: what was seen, and since when.
    stuck: dict[str, tuple[str, float]] = dataclasses.field(default_factory=dict)
    #: Nodes that have failed by what a pod is in, and have not passed since: its uid.
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    #: What DaemonSets and Deployments have not done yet, and since when that has not changed.
    rollout: tuple[list[str], float] = dataclasses.field(default_factory=lambda: ([], 0.0))
    #: Deployments that were not up at the last look.
    controllers: list[nfd.Controller] = dataclasses.field(default_factory=list)
    #: Crashes that do not count, by the validator pod's uid and step: only while the driver is away is that to be seen.
    excused: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    #: When a node of a pool was last seen to wait, time.time() by pool.
    waited: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Nodes whose mark was too hard for those that mend them.
    softened: list[str] = dataclasses.field(default_factory=list)
    line: str = ""
    line_at: float = 0.0
    broken: ApiError | None = None
    _waiting: set[str] = dataclasses.field(default_factory=set)

    @property
    def timeout(self) -> float:
        return self.settings.timeout_of(len(self.verdicts))

    @property
    def left(self) -> float:
        return max(0.0, self.started + self.timeout - time.time())

    def judge(self) -> None:
        """New verdicts for nodes whose facts are new, then what has lasted too long."""
        self.judge_changed()
        now = time.time()
        for name in sorted(self._waiting):
            verdict = self.verdicts[name]
            self.waited[self.fleet.pool_names[name]] = now
            if verdict.grace:
                self._age(name, verdict, now)
            else:
                self.stuck.pop(name, None)

    def judge_changed(self) -> None:
        """Costs what changed, and not what the fleet has: called after every event."""
        for name in self.fleet.take_changed():
            self.held.pop(name, None)
            verdict = self._verdict(name) if name in self.fleet.nodes else None
            if verdict is not None:
                self._set(name, self._kept(name, self._fresh(verdict)))
            else:
                self.verdicts.pop(name, None)
                self.stuck.pop(name, None)
                self._waiting.discard(name)

    def _verdict(self, name: str) -> Verdict | None:
        """None where the node is not judged."""
        gate, node, pods = self.settings.gate, self.fleet.nodes[name], self.fleet.pods_of(name)
        judged, wanted = self._is_target(name), self._excusing(pods, self.wanted(name))
        held = exporters.held(node, pods, wanted, to_come=judged) if gate == exporters.GATE else None
        if judged and held is None:
            verdict = exporters.judge(pods) if gate == exporters.GATE else chain.judge(gate, node, pods, wanted)
            verdict = expected.judged(gate, node, self.fleet.expected[name], pods, verdict)
            held = expected.switched_off(gate, node) if verdict.state == chain.WAITING else None
            if held is None:
                return verdict
        if held is not None:
            self.held[name] = held
        return None

    def waiting(self) -> bool:
        return bool(self._waiting)

    def _set(self, name: str, verdict: Verdict) -> None:
        self.verdicts[name] = verdict
        if verdict.state == chain.WAITING:
            self._waiting.add(name)
        else:
            if name in self._waiting:
                self._waiting.discard(name)
                self.waited[self.fleet.pool_names[name]] = time.time()
            self.stuck.pop(name, None)

    def unfinished(self) -> bool:
        """DaemonSets or Deployments still go on. One that stands still for too long is not waited for, nor one that Kubernetes moves by itself."""
        settings, now = self.settings, time.time()
        found = rollouts.unfinished(self.client, settings.gate, settings.namespace, self.fleet.expecting, self.fleet.pods_by_owner())
        self.look_at_controllers()
        found += map(str, self.down)
        if found != self.rollout[0]:
            self.rollout = (found, now)
        return bool(found) and now - self.rollout[1] < chain.GRACE

    @property
    def down(self) -> list[nfd.Controller]:
        """Deployments that do not come up unless somebody does something."""
        return [one for one in self.controllers if not one.moves(self.fleet.nodes)]

    def look_at_controllers(self) -> None:
        self.controllers = nfd.lacking(self.client) if self.settings.gate == "features" else []

    def look(self, seconds: float, done: c.Callable[[], bool]) -> None:
        """See what happens. Time in which the server was away ages nothing. Raises ApiError where it stays away."""
        began = time.time()
        try:
            self.fleet.watch(self.client, seconds, done)
        except (Unreachable, Overloaded):
            # A watch is given up sooner than a request.
            self.unfinished()
            self._skip(time.time() - began)

    def meet(self) -> None:
        """The first request of a slice, which is the one that waits for a server that is away."""
        began = time.time()
        self.client.resource("v1", "Node")
        self._skip(time.time() - began)

    def settle(self, state: str, prefix: str) -> None:
        """Whatever still waits ends as `state`; what only the observer can be blamed for is not known."""
        for name in sorted(self._waiting):
            verdict = self.verdicts[name]
            self._set(name, dataclasses.replace(verdict, state=chain.UNKNOWN if verdict.observer else state, reason=prefix + verdict.reason))

    def wanted(self, name: str) -> Wanted:
        node, pool = self.fleet.nodes[name], self.fleet.pool(name)
        config = self.settings.plugin_configs.get(node.plugin_config or pool.plugin_config or "default")
        return Wanted(
            gpu_declared=pool.gpu is not None, expected=resources.expected(node, pool, config),
            host_driver=self.provider(name) in ("host", "existing") or bool(node.host_driver), existing=self.provider(name) == "existing",
            absences=self.fleet.absences[name],
        )

    def provider(self, name: str) -> str:
        """Who brings the node's driver, "" where nobody has said."""
        pool = self.fleet.pool(name)
        return pool.driver.provider or self.settings.driver_providers.get(pool.name, "")

    def _excusing(self, pods: chain.Pods, wanted: Wanted) -> Wanted:
        validator = pods.get(VALIDATOR)
        if validator is None:
            return wanted
        found = chain.excused(pods, dataclasses.replace(wanted, excused=self.excused.get(validator.uid, {})))
        if found:
            self.excused[validator.uid] = found
        return dataclasses.replace(wanted, excused=found)

    def progress(self) -> list[str]:
        """At most one line, where it says something new or the last one is long ago."""
        line, now = report.progress_line(self.settings.gate, self.verdicts, self.left), time.time()
        text = line.partition(";")[0]
        if now - self.line_at < (_SAME_LINE_EVERY if text == self.line else _LINE_EVERY):
            return []
        self.line, self.line_at = text, now
        return [line]

    def pack(self) -> dict[str, t.Any]:
        kept = ("started", "stuck", "failed", "rollout", "excused", "waited", "softened", "line", "line_at")
        return {"fleet": self.fleet.pack(), **{name: getattr(self, name) for name in kept}}

    def _is_target(self, name: str) -> bool:
        if name in self.settings.exclude:
            return False
        node, pool = self.fleet.nodes[name], self.fleet.pool(name)
        if self.provider(name) == "none" and self.settings.gate != "features":
            return False
        pod = self.fleet.pods_of(name).get(ROLE_OF_GATE[self.settings.gate])
        # Upstream's device plugin has no node selector: where there is no GPU it crashes for ever, and that is normal.
        has_pod = pod is not None and (pod.ours or self.settings.gate != "devices")
        # A node that has the gate's pod is judged even while NFD's labels are away.
        if self.settings.gate == exporters.GATE:
            return has_pod or expected.names_part(self.fleet.expected[name], EXPORTER)
        return is_candidate(node, pool) or (node.managed and has_pod)

    def _fresh(self, verdict: Verdict) -> Verdict:
        """A pod found failed when the run began may have been repaired since its last try: it gets one more."""
        if verdict.state == chain.FAILED and verdict.pod is not None and verdict.pod.uid not in self.fleet.fresh:
            return dataclasses.replace(verdict, state=chain.WAITING, grace=STALE)
        return verdict

    def _kept(self, name: str, verdict: Verdict) -> Verdict:
        """What a pod has failed by lasts until its node passes."""
        if verdict.state == chain.PASSED:
            self.failed.pop(name, None)
        if self.settings.gate not in _KEPT_FAILED or verdict.pod is None:
            return verdict
        if verdict.state == chain.FAILED:
            self.failed[name] = verdict.pod.uid
        return dataclasses.replace(verdict, state=chain.FAILED) if self.failed.get(name) == verdict.pod.uid else verdict

    def _skip(self, seconds: float) -> None:
        self.stuck = {name: (seen, since + seconds) for name, (seen, since) in self.stuck.items()}
        self.rollout = (self.rollout[0], self.rollout[1] + seconds)

    def _age(self, name: str, verdict: Verdict, now: float) -> None:
        seen = f"{verdict.link}|{verdict.pod.name if verdict.pod else ''}|{verdict.next_step}"
        known, since = self.stuck.get(name, ("", now))
        if known != seen:
            since = self._began(verdict.since, now)
        self.stuck[name] = (seen, since)
        if verdict.pod is None and not verdict.since:
            # The DaemonSet controller makes a large fleet's pods by and by: at 20 requests a second (kube-controller-manager, --kube-api-qps).
            since = max(since, self.fleet.grown)
        if now - since >= verdict.grace:
            self._set(name, dataclasses.replace(verdict, state=chain.FAILED))

    def _began(self, when: str, now: float) -> float:
        """When that was, on this machine's clock, by how long ago it is on the server's; `now` where the server tells no time."""
        server = self.client.server_time()
        try:
            return now if server is None else now - max(0.0, server - datetime.datetime.fromisoformat(when).timestamp())
        except ValueError:
            return now


def run(settings: Settings, client: Client, *, check_mode: bool = False, deadline: float | None = None, resume: dict[str, t.Any] | None = None) -> Outcome:
    """deadline: time.monotonic() at which a slice ends; resume: the `pending` of the slice before.

    In check mode the gate looks once, waits for nothing and writes nothing. It fails only where the run would lack a right.
    """
    marks.limit_of(settings.max_failed, 0)
    gate = _begin(settings, client, resume or {})
    gate.judge()
    if check_mode:
        gate.softened = changes.soften(gate, check_mode=True)
        return _report(gate, check_mode=True)
    lines = gate.progress()
    try:
        gate.meet()
        if not resume:
            gate.softened = changes.soften(gate, check_mode=False)
        while gate.left > 0 and (gate.waiting() or gate.unfinished()):
            now = time.monotonic()
            if deadline is not None and deadline - now < 0.1:
                return Outcome(pending=gate.pack(), progress=lines)
            nodes_wait = gate.waiting()
            seconds = min(_CYCLE if nodes_wait else _SHORT_CYCLE, gate.left, *([deadline - now] if deadline is not None else []))
            gate.look(seconds, functools.partial(_judged, gate, nodes_wait))
            gate.judge()
            lines += gate.progress()
        if gate.left <= 0:
            # While nodes waited nobody looked at them.
            gate.look_at_controllers()
    except ApiError as error:
        gate.judge_changed()
        gate.broken = error
    result = _report(gate)
    result.progress = lines + [line for line in result.progress if line not in lines]
    return result


def _begin(settings: Settings, client: Client, resume: dict[str, t.Any]) -> Gate:
    renamed = {sharing.renamed for config in settings.plugin_configs.values() for sharing in config.sharing}
    besides = (settings.driver_namespace,) if settings.gate == exporters.GATE and settings.driver_namespace else ()
    fleet = Fleet(settings.gate, settings.pools, settings.namespace, settings.pod_selector, sorted(renamed), besides, settings.daemon_sets)
    if not resume:
        fleet.read(client)
        return Gate(settings, client, fleet, time.time())
    fleet.unpack(resume["fleet"])
    stuck = {name: (seen, since) for name, (seen, since) in resume["stuck"].items()}
    rollout = (list(resume["rollout"][0]), float(resume["rollout"][1]))
    told = {name: resume[name] for name in ("failed", "excused", "waited", "softened", "line", "line_at")}
    return Gate(settings, client, fleet, resume["started"], stuck=stuck, rollout=rollout, **told)


def _judged(gate: Gate, nodes_wait: bool) -> bool:
    """After an event: nothing waits any more, so that the gate may end.

    Where nothing waited before either, pods are still to be seen: all that come, and not one a look.
    """
    gate.judge_changed()
    return nodes_wait and not gate.waiting()


def _report(gate: Gate, *, check_mode: bool = False) -> Outcome:
    """The end: verdicts settled, failed nodes marked, passed ones freed, everything told."""
    if gate.broken is not None:
        gate.settle(chain.UNKNOWN, "the gate could not look any further: ")
    elif not check_mode:
        gate.settle(chain.FAILED, f"still so after {gate.timeout:.0f} s: ")
    states = {name: verdict.state for name, verdict in gate.verdicts.items()}
    plan = marks.plan(gate.settings.gate, states, gate.fleet.nodes, gate.settings.max_failed)
    result = Outcome()
    quarantined, released = changes.mark(gate, plan, check_mode=check_mode)
    quarantined = sorted({*quarantined, *gate.softened}.difference(released))
    switched = changes.switch(gate, check_mode=check_mode)
    result.changed = bool(quarantined or released or switched)
    client = None if gate.broken is not None or check_mode else gate.client
    result.values = report.values(gate, plan, client) | {"quarantined": quarantined, "released": released, "switched": switched, "missing_rights": []}
    if check_mode:
        rights.of_run(gate, marks_due=result.changed).told_in(result)
        lacking = [name for name in gate.verdicts if not gate.fleet.nodes[name].uid]
        result.warnings += [f"the cluster has no node {some(lacking)}, and a pool names it"] if lacking else []
    else:
        result.warnings += rollouts.left_behind(gate)
    if not gate.verdicts and not gate.held and gate.settings.gate in chain.GATES:
        result.warnings.append(f"gate {gate.settings.gate}: no node to judge, none shows a GPU and no declared pool with GPUs has one")
    if not check_mode:
        result.progress = [report.last_line(gate.settings.gate, gate.verdicts, plan, gate.held)]
        down = nfd.faults(gate.client, gate.down) if gate.broken is None else []
        result.failure = report.failure(gate.settings.gate, gate.verdicts, plan, result.values["faults"], gate.broken, down)
    return result
