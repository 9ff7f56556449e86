# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Benches for runs with single mutations of the roles' manifests: one bench per stage, all of them in parallel.

A bench is a sandbox in which the previous stages have passed. For each mutation it gets a new machine (a node with another name, hence with
an empty disk and no driver), and the workloads of the stage are deleted. The next run of the role corrects the effects of a mutation on other
objects, as any other drift. Each pool's driver has its own DaemonSet, so mutations of only that one share a run, each in a pool with one node.
"""

from __future__ import annotations

import collections
import collections.abc as c
import concurrent.futures
import contextlib
import dataclasses
import pathlib
import re
import tempfile
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.tests.live.support import repeated, site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, CONTROLLERS, GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

STAGES = ("feature_discovery", "driver", "device_plugin")
#: Factor for the delays of a real node.
TIME_SCALE = 0.01
#: Seconds after which a waiting node has failed. Without a mutation, a stage passes in two to five seconds.
TIMEOUT = 14
#: For runs that pass.
LONG_TIMEOUT = 600
#: For those that fail: on a busy machine, a cause is not observed before the first, and what is observed by its timeout only takes all of it.
TIMEOUTS = (TIMEOUT, 60, 240, LONG_TIMEOUT)
_NFD_LABEL = "feature.node.kubernetes.io/pci-10de.present"
#: Prefixes of the names of each stage's DaemonSets and Deployments.
_WORKLOADS = {
    "feature_discovery": ("nfd-worker", "nfd-master", "nfd-gc"),
    "driver": ("nvidia-driver", "nvidia-container-toolkit", "nvidia-validator"),
    "device_plugin": ("nvidia-device-plugin", "gpu-feature-discovery"),
}
#: Names of the pool with mutations, and of the pool without them in the same run.
POOL, SOUND = "proof", "sound"
#: The driver's DaemonSets of the pool, for any kernel.
POOL_DRIVER = f"nvidia-driver-{POOL}-6*"
#: Kinds whose objects a mutation can rename, with their API versions.
_RENAMED = {"ConfigMap": "v1", "RuntimeClass": "node.k8s.io/v1"}

Answer = concurrent.futures.Future[site.Run]


@dataclasses.dataclass(frozen=True)
class Mutation:
    """names: regular expressions that must all match the reported failure. why: the effect of the mutation in production.

    patches: of the stage's objects. taints: of the node. variables: additional ones of the inventory.
    before: mutations of previous stages, which run first and are repaired afterwards.
    soak: why only `make soak` runs it, "" if `make test` does as well. refused: by the API server, before anything else is written.
    """

    name: str
    stage: str
    patches: tuple[dict[str, t.Any], ...]
    names: tuple[str, ...]
    why: str
    taints: tuple[dict[str, str], ...] = ()
    variables: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    before: tuple[Mutation, ...] = ()
    soak: str = ""
    refused: bool = False

    @property
    def of_one_pool(self) -> bool:
        """Whether it does not affect other pools."""
        elsewhere = self.taints or self.variables or self.before or self.refused
        return not elsewhere and {item["target"]["name"] for item in self.patches} == {POOL_DRIVER}

    def moved(self, pool: str) -> Mutation:
        """The same mutation for another pool."""
        name = POOL_DRIVER.replace(POOL, pool)
        return dataclasses.replace(
            self, patches=tuple({**item, "target": {**item["target"], "name": name}} for item in self.patches)
        )


def change(kind: str, name: str, *operations: dict[str, t.Any], **merge: t.Any) -> dict[str, t.Any]:
    """A patch of an object: RFC 6902 operations, or the top-level keys of a JSON merge patch."""
    return {"target": {"kind": kind, "name": name}, "patch": list(operations) or merge}


def pod(kind: str, name: str, **spec: t.Any) -> dict[str, t.Any]:
    """A merge patch of the pod spec in a workload."""
    return change(kind, name, spec={"template": {"spec": spec}})


def replace(path: str, value: t.Any) -> dict[str, t.Any]:
    return {"op": "replace", "path": path, "value": value}


def add(path: str, value: t.Any) -> dict[str, t.Any]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, t.Any]:
    return {"op": "remove", "path": path}


def named(path: str, name: str) -> dict[str, t.Any]:
    """An operation that makes the patch fail if the list has another element at this position."""
    return {"op": "test", "path": f"{path}/name", "value": name}


#: Paths of parts of the pod in a workload.
SPEC = "/spec/template/spec"
MAIN = f"{SPEC}/containers/0"
INIT = f"{SPEC}/initContainers/0"


class Bench:
    """One sandbox for one stage and its mutations, one after the other."""

    def __init__(self, make: c.Callable[..., Sandbox], stage: str) -> None:
        self.stage, self._number, self._nodes = stage, 0, dict[str, str]()
        #: By stage: the module calls of its role, for a node of this pool.
        self._calls: dict[str, list[repeated.Call]] = {}
        self.sandbox = make({"time_scale": TIME_SCALE, "pools": [{"name": "idle", "count": 1}]})
        self.client: Client = connect({"kubeconfig": self.sandbox.kubeconfig})
        if STAGES.index(stage):
            self._new_machines()
        for earlier in STAGES[: STAGES.index(stage)]:
            done = self.play(earlier, timeout=LONG_TIMEOUT)
            assert done.rc == 0, done.stdout[-6000:]

    def run(self, playbook: str, mutation: Mutation | None) -> site.Run:
        """The stage, or site, with this mutation, or without any.

        With patches of a stage, only the module calls of its role are repeated, because patches affect nothing else.
        """
        self._clear_from(self.stage)
        if not mutation:
            self._new_machines()
            return self.play(playbook, timeout=LONG_TIMEOUT)
        self._new_machines(taints=mutation.taints)
        for earlier in mutation.before:
            self._clear(earlier.stage)
            self._repeat(earlier.stage, earlier.patches, TIMEOUT)
        self._delete_renamed(mutation.patches)
        for timeout in TIMEOUTS:
            whole = playbook not in STAGES or mutation.variables
            done = (
                self.play(playbook, [mutation], timeout) if whole else self._repeat(playbook, mutation.patches, timeout)
            )
            # On a busy machine, the node may not yet have reached the failure, which a longer run reports then.
            if not done.rc or not unnamed(done, mutation):
                break
        for earlier in mutation.before:
            repaired = self._repeat(earlier.stage, (), LONG_TIMEOUT)
            assert repaired.rc == 0, repaired.stdout[-6000:]
        return done

    def _repeat(self, stage: str, patches: c.Sequence[dict[str, t.Any]], timeout: int) -> site.Run:
        return repeated.repeat(self._calls[stage], patches, timeout)

    def run_together(self, playbook: str, mutations: c.Sequence[Mutation]) -> list[site.Run]:
        """One run with all mutations, reduced for each to the results of its node. The node without a mutation has to pass."""
        self._clear_from(self.stage)
        pools = {f"{POOL}{number}": mutation for number, mutation in enumerate(mutations)}
        self._new_machines([SOUND, *pools])
        moved = [mutation.moved(pool) for pool, mutation in pools.items()]
        for timeout in TIMEOUTS:
            # The limit is one less than the number of mutations, so that the gate ends only after all of them have failed.
            done = self.play(playbook, moved, timeout, str(len(moved) - 1))
            runs = [_of_node(done, self._nodes[pool]) for pool in pools]
            sound = _of_node(done, self._nodes[SOUND])
            if not sound.rc and not any(unnamed(run, mutation) for run, mutation in zip(runs, mutations, strict=True)):
                break
        assert not sound.rc, done.stdout[-6000:]
        return runs

    def play(
        self, playbook: str, mutations: c.Sequence[Mutation] = (), timeout: int = TIMEOUT, max_failed: str = "0"
    ) -> site.Run:
        pools = [{"name": pool, "selector": f"pool={pool}", "gpu": GPU} for pool in self._nodes or [POOL]]
        variables: dict[str, t.Any] = {
            "hwaccel_wait_timeout": timeout,
            "hwaccel_max_failed": max_failed,
            "hwaccel_pools": pools,
        }
        for stage in {mutation.stage for mutation in mutations}:
            variables[f"{stage}_patches"] = [
                patch for mutation in mutations if mutation.stage == stage for patch in mutation.patches
            ]
        for mutation in mutations:
            variables |= mutation.variables
        clusters = {"bench": site.cluster(self.sandbox.kubeconfig, **variables)}
        with tempfile.TemporaryDirectory(prefix="hwaccel-arguments-") as folder:
            arguments = pathlib.Path(folder, "arguments")
            done = site.playbook(playbook, clusters, environment={repeated.ARGUMENTS: str(arguments)})
            if playbook in STAGES and not mutations and not done.rc:
                self._calls[playbook] = repeated.read(arguments)
        return done

    def _new_machines(self, pools: c.Sequence[str] = (POOL,), taints: c.Sequence[dict[str, str]] = ()) -> None:
        """A new machine in each pool."""
        self._number += 1
        names = {pool: f"m{self._number}-{pool}" for pool in pools}
        fleet = [
            {"name": name, "count": 1, "gpu": GPU, "labels": {"pool": pool}, "taints": list(taints)}
            for pool, name in names.items()
        ]
        self.sandbox.set_fleet({"time_scale": TIME_SCALE, "pools": [{"name": "idle", "count": 1}, *fleet]})
        self._nodes = {pool: f"{name}-0" for pool, name in names.items()}
        for earlier in STAGES[: STAGES.index(self.stage)]:
            for node in self._nodes.values():
                self._await_stage(earlier, node)

    def _await_stage(self, stage: str, name: str) -> None:
        """A new machine passes the previous stages without a run, as every late node does. Only those of NFD and of the driver take time."""
        node, pods = self.client.resource("v1", "Node"), self.client.resource("v1", "Pod")
        daemon_sets = self.client.resource("apps/v1", "DaemonSet")
        if not self.client.list(daemon_sets, AGENTS).items:
            return

        def passed() -> bool:
            if stage == "feature_discovery":
                return _NFD_LABEL in (self.client.get(node, name)["metadata"].get("labels") or {})
            validators = self.client.list(
                pods, AGENTS, label_selector="app=nvidia-operator-validator", field_selector=f"spec.nodeName={name}"
            ).items
            return any(
                status.get("ready") for item in validators for status in item["status"].get("containerStatuses") or []
            )

        until(passed, f"{name} to pass {stage}")

    def _delete_renamed(self, patches: c.Sequence[dict[str, t.Any]]) -> None:
        """Deletes objects that a mutation renames, because they are pruned only at the end, when pods could already use them."""
        for item in patches:
            kind, name = item["target"]["kind"], item["target"]["name"]
            if isinstance(item["patch"], dict) and (item["patch"].get("metadata") or {}).get("name"):
                resource = self.client.resource(_RENAMED[kind], kind)
                with contextlib.suppress(NotFound):
                    self.client.delete(resource, name, AGENTS if resource.namespaced else "")

    def _clear_from(self, stage: str) -> None:
        """Also the later stages, which site may have deployed."""
        for one in reversed(STAGES[STAGES.index(stage) :]):
            self._clear(one)

    def _clear(self, stage: str) -> None:
        """Deletes the workloads of the stage, and waits for the deletion of their pods."""
        for kind in ("DaemonSet", "Deployment"):
            resource = self.client.resource("apps/v1", kind)
            for namespace in (AGENTS, CONTROLLERS):
                for item in self.client.list(resource, namespace).items:
                    name = item["metadata"]["name"]
                    if name.startswith(_WORKLOADS[stage]):
                        with contextlib.suppress(NotFound):
                            self.client.delete(resource, name, namespace, propagation="Background")
        pods = self.client.resource("v1", "Pod")
        until(
            lambda: (
                not [
                    item
                    for namespace in (AGENTS, CONTROLLERS)
                    for item in self.client.list(pods, namespace).items
                    if item["metadata"]["name"].startswith(_WORKLOADS[stage])
                ]
            ),
            f"the pods of {stage} to be deleted",
        )


class Benches:
    """Runs the mutations of each stage one after the other, and the stages in parallel. trials: playbook and mutation of each run."""

    def __init__(self, make: c.Callable[..., Sandbox], trials: c.Sequence[tuple[str, Mutation]]) -> None:
        self._make, self._stopped = make, False
        self._pool = concurrent.futures.ThreadPoolExecutor(len(STAGES), "bench")
        self._answers = {(playbook, one.name): Answer() for playbook, one in trials}
        #: Runs without a mutation before and after all others, which have to pass.
        self.sound = {stage: (Answer(), Answer()) for stage in {one.stage for _playbook, one in trials}}
        for stage in self.sound:
            self._pool.submit(self._work, stage, [trial for trial in trials if trial[1].stage == stage])

    def answer(self, playbook: str, mutation: Mutation) -> site.Run:
        return self._answers[playbook, mutation.name].result()

    def close(self) -> None:
        """Starts no further runs."""
        self._stopped = True
        self._pool.shutdown()

    def _work(self, stage: str, trials: c.Sequence[tuple[str, Mutation]]) -> None:
        first, last = self.sound[stage]
        turns: dict[tuple[str, str], list[tuple[Answer, Mutation | None]]] = collections.defaultdict(list)
        turns[trials[0][0], "first"].append((first, None))
        for playbook, one in trials:
            turns[playbook, "together" if one.of_one_pool else f"alone: {one.name}"].append(
                (self._answers[playbook, one.name], one)
            )
        turns[trials[-1][0], "last"].append((last, None))
        try:
            bench = Bench(self._make, stage)
        except BaseException as error:
            _fail([future for turn in turns.values() for future, _one in turn], error)
            raise
        for (playbook, _how), turn in turns.items():
            if self._stopped:
                return
            futures, mutations = [future for future, _one in turn], [one for _future, one in turn if one]
            try:
                runs = (
                    bench.run_together(playbook, mutations) if len(mutations) > 1 else [bench.run(playbook, turn[0][1])]
                )
            except BaseException as error:
                _fail(futures, error)
            else:
                for future, run in zip(futures, runs, strict=True):
                    future.set_result(run)


def _fail(futures: c.Iterable[Answer], error: BaseException) -> None:
    for future in futures:
        future.set_exception(error)


def _of_node(run: site.Run, node: str) -> site.Run:
    """The results of one node only. The run has passed for it if no gate reports it as failed."""
    rows = [
        row
        for result in run.results("node_gate")
        for row in result.get("faults") or []
        if row["node"] == node and row["state"] == "failed"
    ]
    texts = [part for text in run.failures for part in re.split(r"\n(?=- )", text) if node in part]
    tasks = [{"outcome": "failed", "result": {"msg": "\n".join(texts), "faults": rows}}] if rows else []
    return dataclasses.replace(run, rc=len(tasks), tasks=tasks)


def told(run: site.Run) -> str:
    """The messages and log tails that a user reads about a failure."""
    logs = [
        fault.get("log_tail", "")
        for task in run.tasks
        for fault in task["result"].get("faults") or []
        if isinstance(fault, dict)
    ]
    return "\n".join([*run.failures, *logs])


def unnamed(run: site.Run, mutation: Mutation) -> list[str]:
    """Patterns of the mutation that match nothing in the reported failure."""
    text = told(run)
    return [pattern for pattern in mutation.names if not re.search(pattern, text)]
