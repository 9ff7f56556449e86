# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as a gate observes it: nodes and pods reduced to facts, kept current by watches, and packed between slices."""

from __future__ import annotations

import base64
import collections
import collections.abc as c
import contextlib
import dataclasses
import json
import math
import operator
import time
import typing as t
import zlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import pods as parts
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import selectors, trouble
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.expected import ROLE_OF_GATE, Expected, has_gpus
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import GpuFacts, NodeFacts, reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import ContainerFacts, PodFacts, reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import CPU, Assigner, Pool
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Client, Event
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Gone, ManyFaults, Overloaded, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import resting

_VERSION = 1
#: Maximum seconds between two events of a watch that is not yet current.
_FLOWING = 0.1
#: Seconds between lists if watches expire at once, because otherwise a whole fleet would be listed many times a second (client-go's
#: reflector backs off to 30 seconds as well). The first list is not delayed.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0


class Fleet:
    """Facts by node. `changed` names the nodes whose facts are newer than the last `take_changed`."""

    def __init__(
        self,
        gate: str,
        pools: c.Iterable[Pool],
        namespace: str,
        pod_selector: str,
        renamed: c.Collection[str] = (),
        besides: c.Collection[str] = (),
        daemon_sets: c.Iterable[dict[str, t.Any]] | None = (),
    ) -> None:
        """besides: namespaces whose pods are read, and not watched, because the pods that wait for them are watched. daemon_sets: as in `Expected`."""
        self.nodes: dict[str, NodeFacts] = {}
        self.pool_names: dict[str, str] = {}
        #: Parts of which each node must have a pod, from `Expected.of_node`.
        self.expected: dict[str, str] = {}
        #: Pods that were created or retried during this run, so that their state is not the result of an earlier one.
        self.fresh: set[str] = set()
        #: time.time() when the last new pod was observed.
        self.grown = 0.0
        #: How often each node became NotReady during this run.
        self.absences: collections.Counter[str] = collections.Counter()
        #: time.time() of the last read of everything.
        self.read_at = -math.inf
        self._pods: dict[str, dict[str, PodFacts]] = {}
        self._changed: set[str] = set()
        self._versions: dict[str, str] = {}
        #: The kind whose events were still arriving at the end of its time. It gets most of the next interval.
        self._behind = ""
        self._expired_in_a_row, self._list_at = 0, -math.inf
        self._assigner = Assigner(pools)
        self._pools = {pool.name: pool for pool in self._assigner.pools}
        self._named = frozenset(name for pool in self._assigner.pools for name in pool.nodes)
        self._role = ROLE_OF_GATE[gate]
        self._selector = selectors.parse(pod_selector) if pod_selector else None
        self.expecting = Expected(gate, daemon_sets, self._selector)
        self._namespace = namespace
        # The namespace that is read last is watched from there on.
        self._namespaces = (*(one for one in besides if one != namespace), namespace)
        self._renamed = tuple(renamed)

    def pool(self, node: str) -> Pool:
        name = self.pool_names[node]
        return self._pools.get(name) or Pool(name, declared=False)

    def pods_of(self, node: str) -> dict[str, PodFacts]:
        """One pod for each part of the chain."""
        chosen: dict[str, PodFacts] = {}
        for pod in self._pods.get(node, {}).values():
            held = chosen.get(pod.role)
            if held is None or pod.preference > held.preference:
                chosen[pod.role] = pod
        return chosen

    def pods_by_owner(self) -> dict[str, int]:
        """How many pods of each DaemonSet are known."""
        return dict(
            collections.Counter(pod.owner for pods in self._pods.values() for pod in pods.values() if not pod.deleting)
        )

    def take_changed(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed

    def read(self, client: Client) -> None:
        """Reads everything once, page by page. Raises ManyFaults if the declared pools overlap."""
        self.read_nodes(client)
        self.read_all_pods(client)

    def read_all_pods(self, client: Client) -> None:
        self.read_pods(client, self._namespaces)
        self.read_at = time.time()

    @property
    def resting(self) -> bool:
        """Whether the pods are those of DaemonSets at rest: no rollout is under way, and they cannot be watched, because they were not read."""
        return "pods" not in self._versions

    def read_resting_pods(self, client: Client) -> bool:
        """Whether all DaemonSets of the chain are at rest, so that their pods are known without being read."""
        groups = resting.pods_of_all(
            client, self._namespaces, lambda template: self.expecting.part_of(template) != parts.OTHER
        )
        for group in groups or ():
            pod = self._pod(group.pod)
            for name, node in group.places:
                self._keep_pod(dataclasses.replace(pod, name=name, node=node, uid=f"{pod.namespace}/{name}"))
        return groups is not None

    def read_nodes(self, client: Client) -> None:
        """Reads the nodes only. Raises ManyFaults if the declared pools overlap."""
        self._read_nodes(client, client.resource("v1", "Node"))
        faults = self._assigner.faults(complete=False)
        if faults:
            raise ManyFaults(faults)

    def read_pods(self, client: Client, namespaces: c.Iterable[str]) -> None:
        """Replaces all pods at once, so that an incomplete list does not change the known state. Only the last namespace can be watched from there."""
        resource = client.resource("v1", "Pod")
        found: list[PodFacts] = []
        for namespace in namespaces:
            for page in client.pages(resource, namespace):
                found += [pod for pod in map(self._pod, page.items) if pod.role != parts.OTHER]
            self._versions["pods"] = page.resource_version
        self._changed.update(self._pods)
        self._pods = {}
        for pod in found:
            self._keep_pod(pod)

    def watch(self, client: Client, seconds: float, done: c.Callable[[], bool]) -> None:
        """Watches one kind for most of the time, then the other for the rest. Ends early if `done` returns true after an event.

        Raises Unreachable or Overloaded if nothing could be observed.
        """
        if self.resting:
            self.read_all_pods(client)
        short = min(0.5, seconds / 4)
        ends = time.monotonic() + seconds
        # If NFD or the device plugin report, nodes change. If drivers load and exporters start, pods change.
        first, second = ("pods", "nodes") if self._role in (parts.VALIDATOR, parts.EXPORTER) else ("nodes", "pods")
        if self._behind == second:
            first, second = second, first
        self._behind = ""
        if not self._follow(client, first, ends - short, done):
            # A busy server may need longer than the rest to answer, and it has just answered.
            with contextlib.suppress(Unreachable, Overloaded):
                self._follow(client, second, ends, done)

    def _follow(self, client: Client, what: str, deadline: float, done: c.Callable[[], bool]) -> bool:
        resource = client.resource("v1", "Node" if what == "nodes" else "Pod")
        namespace = "" if what == "nodes" else self._namespace
        heard = -math.inf
        try:
            for event in client.watch(resource, namespace, resource_version=self._versions[what], deadline=deadline):
                self._versions[what] = event.object["metadata"]["resourceVersion"]
                self._expired_in_a_row, self._list_at = 0, -math.inf
                if event.type == "BOOKMARK":
                    continue
                self._take(what, event)
                if done():
                    return True
                heard = time.monotonic()
            if time.monotonic() - heard < _FLOWING:
                self._behind = what
        except Gone:
            if self._may_list(deadline):
                if what == "nodes":
                    self._read_nodes(client, resource)
                else:
                    self.read_pods(client, self._namespaces)
        return False

    def _may_list(self, deadline: float) -> bool:
        """Whether the next list is due. Waits for that until the end of the interval."""
        early = self._list_at - time.monotonic()
        if early > 0:
            time.sleep(max(0.0, min(early, deadline - time.monotonic())))
            return False
        self._list_at = time.monotonic() + min(_FIRST_PAUSE * 2**self._expired_in_a_row, _LONGEST_PAUSE)
        self._expired_in_a_row += 1
        return True

    def _take(self, what: str, event: Event) -> None:
        gone = event.type == "DELETED"
        if what == "nodes":
            if gone:
                self._drop_node(event.object["metadata"]["name"])
            else:
                self._keep_node(event.object)
            return
        pod = self._pod(event.object)
        if pod.role == parts.OTHER:
            # The pod was permanent until it completed.
            if self._pods.get(pod.node, {}).pop(pod.uid, None) is not None:
                self._changed.add(pod.node)
            return
        known = self._pods.get(pod.node, {}).get(pod.uid)
        if known is None and not gone:
            self.grown = time.time()
        if known is None or trouble.tried_again(known, pod):
            self.fresh.add(pod.uid)
        if gone:
            self._pods.get(pod.node, {}).pop(pod.uid, None)
            self._changed.add(pod.node)
        else:
            self._keep_pod(pod)

    def _read_nodes(self, client: Client, resource: Resource) -> None:
        seen: set[str] = set()
        for page in client.pages(resource):
            for node in page.items:
                seen.add(self._keep_node(node))
            self._versions["nodes"] = page.resource_version
        for name in (self._named | set(self.nodes)) - seen:
            self._drop_node(name)

    def _keep_node(self, node: dict[str, t.Any]) -> str:
        facts = reduce_node(node, self._renamed)
        self._changed.add(facts.name)
        before = self.nodes.get(facts.name)
        if before is not None and before.ready and not facts.ready:
            self.absences[facts.name] += 1
        self.nodes[facts.name] = facts
        labels = node["metadata"].get("labels") or {}
        pool = self._assigner.pool_of(facts, labels)
        self.pool_names[facts.name] = pool.name
        self.expected[facts.name] = self.expecting.of_node(labels, gpus=has_gpus(facts, pool))
        return facts.name

    def _drop_node(self, name: str) -> None:
        """A node that a pool names is kept as a node that has yet to join."""
        if name in self._named:
            self._keep_node({"metadata": {"name": name}})
            return
        self.nodes.pop(name, None)
        self.pool_names.pop(name, None)
        self.expected.pop(name, None)
        self._changed.add(name)

    def _pod(self, pod: dict[str, t.Any]) -> PodFacts:
        facts = reduce_pod(pod)
        if self._selector is None or not parts.stays(pod):
            return facts
        if selectors.matches(self._selector, pod["metadata"].get("labels") or {}):
            return dataclasses.replace(facts, role=self._role)
        return dataclasses.replace(facts, role=parts.OTHER) if facts.role == self._role else facts

    def _keep_pod(self, pod: PodFacts) -> None:
        # Pods that no gate judges (jobs) are not kept, to save memory.
        if pod.role != parts.OTHER and pod.node:
            self._pods.setdefault(pod.node, {})[pod.uid] = pod
            self._changed.add(pod.node)

    def pack(self) -> str:
        """The state as text for the next slice. Facts of a fleet repeat, so it compresses to about 60 bytes for a pod."""
        state = [
            _VERSION,
            self.grown,
            self._versions,
            sorted(self.fresh),
            self.absences,
            self.pool_names,
            self.expected,
            [_node_row(node) for node in self.nodes.values()],
            [_pod_row(pod) for pods in self._pods.values() for pod in pods.values()],
        ]
        return base64.b64encode(zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 1)).decode()

    def unpack(self, text: str) -> None:
        """The state that `pack` wrote; everything counts as changed."""
        _version, self.grown, self._versions, fresh, absences, self.pool_names, self.expected, nodes, pods = json.loads(
            zlib.decompress(base64.b64decode(text))
        )
        self.fresh, self.absences = set(fresh), collections.Counter(absences)
        for row in nodes:
            node = _node(row)
            self.nodes[node.name] = node
            self._changed.add(node.name)
        for row in pods:
            self._keep_pod(_pod(row))


def is_candidate(facts: NodeFacts, pool: Pool) -> bool:
    """Whether the node has GPUs according to its labels, its pool, or its quarantine. A node that has yet to join counts as one with GPUs."""
    return facts.managed and (
        facts.gpu_present or pool.gpu is not None or facts.quarantined or (not facts.uid and pool.name != CPU)
    )


def _names(kind: type[t.Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


#: All values of a dataclass at once; recursion over the fields costs four times as much for a large fleet.
_OF_NODE, _OF_GPU = operator.attrgetter(*_names(NodeFacts)), operator.attrgetter(*_names(GpuFacts))
_OF_POD, _OF_CONTAINER = operator.attrgetter(*_names(PodFacts)), operator.attrgetter(*_names(ContainerFacts))
_GPU, _ALLOCATABLE, _TAINTS = (_names(NodeFacts).index(name) for name in ("gpu", "allocatable", "taints"))
_INITS, _CONTAINERS = (_names(PodFacts).index(name) for name in ("inits", "containers"))


def _node_row(node: NodeFacts) -> list[t.Any]:
    row = list(_OF_NODE(node))
    row[_GPU] = _OF_GPU(node.gpu)
    return row


def _pod_row(pod: PodFacts) -> list[t.Any]:
    row = list(_OF_POD(pod))
    row[_INITS], row[_CONTAINERS] = (
        [_OF_CONTAINER(one) for one in pod.inits],
        [_OF_CONTAINER(one) for one in pod.containers],
    )
    return row


def _node(row: list[t.Any]) -> NodeFacts:
    """Restores tuples, which JSON converts to lists, because facts are compared and hashed."""
    *plain, slices = row[_GPU]
    row[_GPU] = GpuFacts(*[*plain, tuple(map(tuple, slices))])
    row[_ALLOCATABLE], row[_TAINTS] = tuple(map(tuple, row[_ALLOCATABLE])), tuple(map(tuple, row[_TAINTS]))
    return NodeFacts(*row)


def _pod(row: list[t.Any]) -> PodFacts:
    row[_INITS], row[_CONTAINERS] = (tuple(ContainerFacts(*one) for one in row[at]) for at in (_INITS, _CONTAINERS))
    return PodFacts(*row)
