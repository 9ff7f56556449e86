# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One sandbox for many mutants of manifests: the engine applies them, and the gates of all stages judge each one's node.

    bench = Bench(make_sandbox, rendered.everything())
    outcomes = bench.run(mutants)

What the API server or the engine refuses, is never applied. All others run, many at once, each in a lane (lanes.py). A node without a mutation is judged
with them, so that a mutant counts as caught only if the sound node has passed in the same time. The gates are those that site runs, in its order, then
the pod of gpu_validation.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import contextlib
import copy
import dataclasses
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import trial
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.ensure import ensure
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import SetOptions
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.resolve import members_of
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import manifests
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError, HwaccelError, NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import validation
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import nfd, report
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import begin
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.plugins.module_utils._workloads.runs import RunOptions
from ansible_collections.hwaccel.gpu.plugins.modules.manifest_set import ARGUMENT_SPEC
from ansible_collections.hwaccel.gpu.tests.live.mutations import asked, lanes, rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Mutant, Obj, mutated
from ansible_collections.hwaccel.gpu.tests.live.mutations.outcomes import CAUGHT, REFUSED, SURVIVES, Outcome, outcome
from ansible_collections.hwaccel.gpu.tests.live.mutations.rules import judge
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

#: Factor for the delays of a real node.
TIME_SCALE = 0.01
#: Mutants that run at once, and threads that ask about them.
LANES, _THREADS = 40, 8
#: Seconds that a mutant has at least, and times what the sound node needed: 900 and more of a real node.
LEAST, FACTOR = 6.0, 2.0
#: Seconds after which even a sound node has failed, on whatever machine.
_LIMIT = 600.0
#: Seconds after which nodes do not join because of a mutant, and in which the API server follows the schema of a kind.
_NODES, _SCHEMA = 60.0, 1.0
_GATES, _SOUND = ("features", "driver", "devices", "exporters"), "sound"
_DEFAULTS = {name: spec.get("default") for name, spec in ARGUMENT_SPEC.items()}
_GPU = rendered.GPU | {"count": 2}
_POOLS = [
    rendered.POOLS[0] | {"gpu": {"product": rendered.GPU["product"], "count": 2}},
    {
        "name": "boards",
        "selector": "pool=boards",
        "gpu": {"product": "Orin", "count": 1},
        "driver": {"provider": "host"},
    },
]
_IDLE = (asked.MINE, asked.OTHER, asked.TAKEN)
#: As a gate: the rules of manifests.
RULES = "rules"
#: Mutants that are alone, after which it is measured again how long a sound node needs.
_PACED = 40
#: Kinds of a lane that would act on later lanes.
_REMOVED = ("DaemonSet", "Deployment", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "RuntimeClass")


@dataclasses.dataclass
class Lane:
    """objects: what it has beside the shared ones. own: the components that it runs itself. board: whether its GPU is integrated."""

    name: str
    mutant: Mutant | None
    objects: list[Obj]
    own: set[str]
    board: bool = False

    @property
    def node(self) -> str:
        return f"{self.name}-0"

    @property
    def on_node(self) -> bool:
        """Whether a node shows its mutation; otherwise a Deployment does."""
        return not self.objects or any(item.get("kind") == "DaemonSet" for item in self.objects)


class Bench:
    """`pods`, `devices` and all else of a lane are deleted before the next lanes begin. patience: times what a mutant has otherwise."""

    def __init__(self, make: c.Callable[..., Sandbox], objects: dict[str, list[Obj]]) -> None:
        self.objects, self.patience = objects, 1
        self.sandbox = make({"time_scale": TIME_SCALE, "pools": [_idle()]})
        self.sandbox.wait_limit = _NODES
        self.client: t.Any = connect({"kubeconfig": self.sandbox.kubeconfig})
        self.shared = {role: lanes.shared(found) for role, found in objects.items()}
        self._components = sorted({name for found in objects.values() for name in lanes.own_components(found)})
        self._needed, self._daemon_sets = 0.0, tuple[Obj, ...]()
        self._numbers = iter(range(10**6))
        self._thief = asked.Thief(self.sandbox.kubeconfig, self.client)
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "mutants")
        for role in rendered.ROLES[:-1]:
            assert not (refused := self._apply(rendered.SETS[role], self.shared[role])), refused

    def run(self, found: c.Sequence[Mutant], by_gates: c.Collection[Mutant] = ()) -> c.Iterator[Outcome]:
        """The outcomes, as they come: first what is refused, then what rules find, then lanes, then those that need the cluster for themselves.

        by_gates: mutants that no rule is asked about, so that the gates have to find them.
        """
        ways = {mutant: lanes.isolation(mutant) for mutant in found}
        tried = [mutant for mutant, way in ways.items() if way != lanes.POD]
        refusals = dict(zip(tried, self._threads.map(self.refusal, tried), strict=True))
        for mutant, text in refusals.items():
            if text:
                yield outcome(mutant, self._source(mutant), REFUSED, "engine", text)
        left = list[Mutant]()
        for mutant in [one for one in found if not refusals.get(one)]:
            if mutant not in by_gates and (text := judge.of_mutant(self.objects, mutant)):
                yield outcome(mutant, self._source(mutant), CAUGHT, RULES, text)
            else:
                left.append(mutant)
        for mutant in [one for one in left if ways[one] == lanes.APART]:
            yield outcome(mutant, self._source(mutant), SURVIVES)
        yield from self._asked([one for one in left if ways[one] == lanes.ASKED])
        together = [one for one in left if ways[one] in (lanes.COPY, lanes.SPACE)]
        for start in range(0, len(together), LANES):
            yield from self.together(together[start : start + LANES])
        pods = [one for one in left if ways[one] == lanes.POD]
        if pods:
            yield from self._pods(pods)
        for number, mutant in enumerate(one for one in left if ways[one] == lanes.ALONE):
            self._needed = self._needed if number % _PACED else self._pace()
            yield self.alone(mutant)

    def refusal(self, mutant: Mutant) -> str:
        """Why the engine or the API server refuses the mutated object; "" if they accept it."""
        item = mutated(self._source(mutant), mutant)
        if lanes.isolation(mutant) != lanes.ALONE and mutant.kind != "CustomResourceDefinition":
            lanes.renamed(item, "trial")
        try:
            known, faults = manifests.load([item])
            members, more = members_of(self.client, known, "trial", str(_DEFAULTS["record_namespace"]))
            if faults or more:
                return "\n".join(map(str, [*faults, *more]))
            options = SetOptions(rendered.SETS[mutant.role])
            done = trial.attempt(self.client, options, members[0], members[0].body, None, frozenset(), force=True)
            return "\n".join([*map(str, done.faults), *(f"cannot {verb} {what}" for verb, what, *_more in done.rights)])
        except HwaccelError as error:
            return str(error)

    def together(self, found: c.Sequence[Mutant], sound: c.Sequence[Lane] = ()) -> list[Outcome]:
        """Mutants with lanes, all at once. sound: lanes without a mutation, which have to pass."""
        made = [self._lane(mutant) for mutant in found]
        told = self._judged([*made, *sound])
        for lane in sound:
            assert not told.get(lane.name), f"{lane.name} is sound: {told[lane.name]}"
        return [self._outcome(lane, told) for lane in made]

    def sound_lanes(self) -> list[Lane]:
        """A lane of each kind without a mutation: that one is caught must not be because of its lane."""
        made = []
        for objects in self.objects.values():
            reached, twins = set[int](), rendered.twins(objects)
            for index, item in enumerate(objects):
                if index in twins:
                    continue
                if item["kind"] == "DaemonSet":
                    name = self._name()
                    copied = lanes.placed(lanes.renamed(copy.deepcopy(item), name), name)
                    made.append(Lane(name, None, [copied], {rendered.component(item)}))
                kept = item["kind"] in ("DaemonSet", "Deployment") and item["metadata"]["name"] != "nfd-master"
                if kept and index not in reached:
                    reached |= set(lanes.connected(objects, index))
                    name = self._name()
                    copies = lanes.space(index, {}, objects, name)
                    own = lanes.own_components(objects[place] for place in lanes.connected(objects, index))
                    made.append(Lane(name, None, copies, own))
        return made

    def alone(self, mutant: Mutant) -> Outcome:
        """The mutated object in place of the cluster's own, a new node, and the cluster's own again."""
        lane = Lane(self._name(), mutant, [], set())
        nodes = [lane, Lane(self._name(), mutant, [], set(), board=True)] if lanes.on_board(mutant) else [lane]
        try:
            refused = self._apply(rendered.SETS[mutant.role], self._broken(mutant, lane.name))
            if mutant.kind == "CustomResourceDefinition" and not refused:
                # The API server takes a moment to follow the schema that it has just got.
                time.sleep(_SCHEMA)
                refused = self._apply(rendered.SETS[mutant.role], self._broken(mutant, f"{lane.name}-again"))
            told = {lane.name: ("engine", refused)} if refused else self._judged(nodes, sound=False)
        except HwaccelError as error:
            # A policy for everybody may keep the node itself from the cluster.
            told = {lane.name: ("features", str(error))}
        finally:
            self._restored(mutant.role)
        caught = next((one for one in nodes if one.name in told), lane)
        return self._outcome(caught, told)

    def _broken(self, mutant: Mutant, mark: str) -> list[Obj]:
        objects = [lanes.renewed(item, mark) for item in self.shared[mutant.role]]
        objects[mutant.index] = mutated(self.shared[mutant.role][mutant.index], mutant)
        return objects

    def _restored(self, role: str) -> None:
        """Applies the shared objects until the API server takes them: for a while it still has the schema of a mutated kind."""
        end = time.monotonic() + _LIMIT
        while refused := self._apply(rendered.SETS[role], self.shared[role]):
            assert time.monotonic() < end, refused
            # A mutated kind may have been unknown.
            self.client.forget_discovery()
            time.sleep(0.5)

    # -- lanes

    def _name(self) -> str:
        return f"m{next(self._numbers)}"

    def _source(self, mutant: Mutant) -> Obj:
        return self.objects[mutant.role][mutant.index]

    def _lane(self, mutant: Mutant) -> Lane:
        name, objects = self._name(), self.objects[mutant.role]
        found = lanes.lane_objects(mutant, objects, name)
        copied = lanes.isolation(mutant) == lanes.COPY
        source = [objects[mutant.index]] if copied else lanes.sources(mutant, objects)
        return Lane(name, mutant, found, lanes.own_components(source), lanes.on_board(mutant))

    def _outcome(self, lane: Lane, told: dict[str, tuple[str, str]]) -> Outcome:
        assert lane.mutant
        gate, text = told.get(lane.name, ("", ""))
        # On a cluster the object has its own name.
        text = text.replace(f"-{lane.name}", "")
        return outcome(lane.mutant, self._source(lane.mutant), CAUGHT if text else SURVIVES, gate, text)

    def _judged(self, found: c.Sequence[Lane], *, sound: bool = True) -> dict[str, tuple[str, str]]:
        """Gate and message by the name of each lane that has not passed."""
        told = self._applied(found)
        running = [lane for lane in found if lane.name not in told]
        machines = sorted({lane.board for lane in running if lane.on_node} | {False}) if sound else []
        control = [Lane(self._name(), None, [], set(), board) for board in machines]
        controllers = [lane for lane in running if not lane.on_node]
        if sound and controllers:
            control.append(self._sound_controller())
            assert not (refused := self._apply(f"lanes-{control[-1].name}", control[-1].objects)), refused
        began = time.monotonic()
        try:
            self._fleet([lane for lane in [*running, *control] if lane.on_node])
            nodes = {lane.node: lane.name for lane in running if lane.on_node}
            needed = self._settle([*nodes], [one.node for one in control if one.on_node], self._needed)
            boards = {lane.node for lane in running if lane.board}
            found_here = self._verdicts(list(nodes), nodes.keys() - boards if sound else (), needed)
            told |= {nodes[node]: said for node, said in found_here.items()}
            told |= self._controllers([*(controllers if sound else running), *control[len(machines) :]], began + needed)
        finally:
            self._removed([*found, *control])
        return told

    def _applied(self, found: c.Sequence[Lane]) -> dict[str, tuple[str, str]]:
        """Lanes that the engine refuses as a whole: a fault names its lane."""
        told: dict[str, tuple[str, str]] = {}
        while objects := [item for lane in found if lane.name not in told for item in lane.objects]:
            refused = self._apply(f"lanes-{found[0].name}", objects)
            named = {
                lane.name: text for lane in found for text in refused.splitlines() if f"-{lane.name}" in f"{text} "
            }
            named = {name: text for name, text in named.items() if name not in told}
            if not refused:
                break
            assert named, refused
            told |= {name: ("engine", text) for name, text in named.items()}
        return told

    def _apply(self, name: str, objects: list[Obj]) -> str:
        """The engine's failure, "" if there is none."""
        params = _DEFAULTS | {"name": name, "definition": objects, "wait": False, "adopt": True, "max_prune": "100%"}
        try:
            done = ensure(self.client, params, Clock(), {}, check_mode=False, diff=False)
        except HwaccelError as error:
            return str(error)
        return str(done.failure) if done.failure else ""

    def _fleet(self, found: c.Sequence[Lane]) -> None:
        pools = [
            {"name": one.name, "count": 1, "labels": self._labels(one), "taints": list(rendered.TAINTS)}
            | (rendered.BOARDS if one.board else {"gpu": _GPU})
            for one in found
        ]
        self.sandbox.set_fleet({"time_scale": TIME_SCALE, "pools": [_idle(), *pools]})
        self._daemon_sets = tuple(self.client.list(self.client.resource("apps/v1", "DaemonSet")).items)

    def _labels(self, lane: Lane) -> dict[str, str]:
        return lanes.node_labels(lane.name, self._components, lane.own, "boards" if lane.board else rendered.POOL)

    def _removed(self, found: c.Sequence[Lane]) -> None:
        def remove(item: Obj) -> None:
            resource = self.client.resource(item["apiVersion"], item["kind"])
            with contextlib.suppress(NotFound):
                self.client.delete(resource, item["metadata"]["name"], item["metadata"].get("namespace", ""))

        objects = [item for lane in found for item in lane.objects if item.get("kind") in _REMOVED]
        list(self._threads.map(remove, objects))

    # -- gates

    def _settings(self, gate: str, left_out: c.Iterable[str] = ()) -> Settings:
        return Settings(
            gate,
            parse_pools(_POOLS),
            namespace="",
            pod_selector="app=nvidia-dcgm-exporter" if gate == "exporters" else "",
            max_failed="100%",
            quarantine=False,
            exclude=frozenset(left_out),
            wait_timeout=_LIMIT,
            sample=10**6,
            daemon_sets=self._daemon_sets,
        )

    def _settle(self, nodes: list[str], control: list[str], needed: float = 0.0) -> float:
        """Until all have passed, or those without a mutation have, and the others have had their time. Returns the seconds that the former needed.

        needed: these seconds, where no node without a mutation runs.
        """
        began, needed = time.monotonic(), 0.0 if control else needed
        for name in _GATES[2:]:
            while True:
                # Read again and not watched, since containers that crash change all the time.
                asked = time.monotonic()
                gate = begin(self._settings(name), self.client, {})
                gate.judge_changed()
                passed = {node for node, verdict in gate.verdicts.items() if verdict.state == chain.PASSED}
                took = time.monotonic() - began
                if control and passed.issuperset(control):
                    needed = needed or took
                if passed.issuperset([*nodes, *control]) or (needed and took > self._limit(needed)):
                    break
                assert took < _LIMIT, f"the sound node does not pass: {self._verdicts(control)}"
                time.sleep(max(1.0, 4 * (time.monotonic() - asked)))
        return needed

    def _limit(self, needed: float) -> float:
        return self.patience * max(LEAST, FACTOR * needed)

    def _verdicts(
        self, nodes: list[str], users: c.Collection[str] = (), needed: float = 0.0
    ) -> dict[str, tuple[str, str]]:
        """users: nodes on which a user's pod runs, if all gates pass."""
        told: dict[str, tuple[str, str]] = {}
        for name in _GATES:
            gate = begin(self._settings(name, told), self.client, {})
            gate.judge()
            gate.settle(chain.FAILED, "")
            for row in report.faults(gate.snapshot()):
                if row["node"] in nodes:
                    told[row["node"]] = name, "\n".join((row["reason"], row["log_tail"], row["next_step"]))
        sound = [node for node in users if node not in told]
        return told | (self._validated(sound, needed) if sound else {})

    def _validated(self, nodes: list[str], needed: float) -> dict[str, tuple[str, str]]:
        """Those on which a user's pod does not do what it should."""
        pod = self.objects["gpu_validation"][0]
        others = frozenset(
            node["metadata"]["name"]
            for node in self.client.list(self.client.resource("v1", "Node"), metadata_only=True).items
        ).difference(nodes)
        return self._run_pod(pod, others, len(nodes), needed)

    def _run_pod(self, pod: Obj, others: frozenset[str], parallel: int, needed: float) -> dict[str, tuple[str, str]]:
        seconds = self._limit(needed)
        options = RunOptions(rendered.AGENTS, parallel, 3 * seconds, 3 * seconds, 3 * seconds)
        settings = validation.Settings(
            pod, parse_pools(_POOLS), others, always=True, max_failed="100%", options=options
        )
        one = validation.Validation(settings, self.client, Clock(), {})
        one.choose(check_mode=False)
        failure = one.go_on(check_mode=False).failure
        if failure is not None:
            return {"": ("validation", str(failure))}
        return {
            node: ("validation", "\n".join((found.reason, found.log_tail, found.next_step)))
            for node, found in one.findings.items()
            if found.state != validation.PASSED
        }

    def _controllers(self, found: c.Sequence[Lane], settled: float) -> dict[str, tuple[str, str]]:
        """Lanes whose Deployment is not ready, although one without a mutation is. settled: when nodes without a mutation had passed."""
        if not found:
            return {}
        end, sound = settled + self.patience * LEAST, [lane for lane in found if not lane.mutant]
        while lacking := nfd.lacking(self.client):
            late = [one for one in lacking if any(one.namespace.endswith(f"-{lane.name}") for lane in sound)]
            if time.monotonic() > end and not late:
                break
            assert time.monotonic() < end + _LIMIT, late
            time.sleep(0.5)
        told = {}
        for fault in nfd.faults(self.client, lacking):
            for lane in found:
                if f"-{lane.name}/" in fault.where or (lane.mutant and lanes.isolation(lane.mutant) == lanes.ALONE):
                    told[lane.name] = "features", str(fault)
        return told

    def _sound_controller(self) -> Lane:
        name, objects = self._name(), self.objects["feature_discovery"]
        place = next(place for place, item in enumerate(objects) if lanes.key_of(item) == ("Deployment", "nfd-gc"))
        return Lane(name, None, lanes.space(place, {}, objects, name), set())

    def _pace(self) -> float:
        """Seconds that a node without a mutation needs, when it is alone."""
        lane = Lane(self._name(), None, [], set())
        self._fleet([lane])
        return self._settle([], [lane.node])

    def _asked(self, found: c.Sequence[Mutant]) -> list[Outcome]:
        """Of each policy one without a mutation is asked first, and says how long the API server takes to follow."""
        sound = {(mutant.role, asked.policy_of(self._source(mutant))): mutant for mutant in found}
        pairs = [(Lane(self._name(), None, [], set()), mutant) for mutant in sound.values()]
        pairs += [(Lane(self._name(), mutant, [], set()), mutant) for mutant in found]
        told, began = dict[str, tuple[str, str]](), time.monotonic()
        try:
            for lane, mutant in pairs:
                broken = mutated(self._source(mutant), mutant) if lane.mutant else None
                lane.objects += asked.objects_of(self.objects[mutant.role], mutant.index, broken, lane.name)
                if refused := self._apply(f"asked-{lane.name}", lane.objects):
                    told[lane.name] = "engine", refused
            for lane, mutant in pairs[: len(sound)]:
                assert not (said := told.get(lane.name) or self._asked_of(lane, mutant, _LIMIT)), said
            end = time.monotonic() + self.patience * max(LEAST, (FACTOR - 1) * (time.monotonic() - began))
            for lane, mutant in pairs[len(sound) :]:
                if lane.name not in told:
                    told[lane.name] = asked.GATE, self._asked_of(lane, mutant, end - time.monotonic())
        finally:
            self._removed([lane for lane, _mutant in pairs])
        return [self._outcome(lane, told) for lane, _mutant in pairs if lane.mutant]

    def _asked_of(self, lane: Lane, mutant: Mutant, limit: float) -> str:
        policy, objects = asked.policy_of(self._source(mutant)), self.objects[mutant.role]
        account, namespace = asked.account_of(objects, policy), f"{rendered.AGENTS}-{lane.name}"
        asks = self._thief.prepare(account, namespace)
        return asked.waited(lambda: self._thief.wrong(asks, account, namespace, policy), limit)

    def _pods(self, found: c.Sequence[Mutant]) -> list[Outcome]:
        """Each on one of a few sound nodes."""
        rooms = [Lane(self._name(), None, [], set()) for _number in range(_THREADS)]
        self._fleet(rooms)
        nodes = [room.node for room in rooms]
        needed = self._settle([], nodes)
        others = {node: frozenset({*nodes, *_IDLE} - {node}) for node in nodes}

        def judged(mutant: Mutant) -> Outcome:
            node = nodes.pop()
            try:
                told = self._run_pod(mutated(self._source(mutant), mutant), others[node], 1, needed)
            except (HwaccelError, ApiError, KeyError, TypeError, AttributeError) as error:
                told = {node: ("validation", f"{type(error).__name__}: {error}")}
            finally:
                nodes.append(node)
            gate, text = next(iter(told.values()), ("", ""))
            return outcome(mutant, self._source(mutant), CAUGHT if text else SURVIVES, gate, text)

        return list(self._threads.map(judged, found))


def _idle() -> Obj:
    """For the controllers, and for writes about nodes."""
    return {"name": "idle", "count": len(_IDLE), "taints": list(rendered.CONTROL_PLANE)}
