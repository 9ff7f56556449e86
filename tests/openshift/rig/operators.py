# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for progress.service of the bootstrap machine, cluster-version-operator, and the operators of OpenShift: none of them can be had.

They write what an installation is read from, over time, and only follow what they observe of the cluster: nothing is complete because time has passed.

    with Operators(plane.kubeconfig, Expected(("m0.ocp.example.com",), ("w0.ocp.example.com",)), pace=0.5) as operators:
        ...                                                 # machines join meanwhile, or are switched off
        operators.faults = Faults(degraded={"ingress": "..."})  # from the next step on
        operators.wait(INSTALLED)
    operators.done                                          # what was reached, with seconds since the start

`following` is the state machine: from what is seen to what is next. A thread looks and writes every `pace` seconds, goes on by itself when the API was away,
and picks up where another one has ended, since all of its state is in the cluster.
"""

from __future__ import annotations

import dataclasses
import datetime
import threading
import time
import typing as t
import uuid

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    ApiError,
    NotFound,
    Overloaded,
    Unreachable,
)
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import is_ready, until
from ansible_collections.hwaccel.gpu.tests.openshift.rig import reports
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import put, put_status
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.certificates import Key, Subject, issue

Obj = dict[str, t.Any]

#: Operators in the order in which they become available: those of the control plane, those on it, and those whose pods run on workers where there are any.
_FIRST = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "machine-config", "network", "dns")
_SECOND = ("openshift-apiserver", "openshift-controller-manager", "service-ca", "storage")
_LAST = ("ingress", "authentication", "console", "image-registry", "monitoring")
OPERATORS = (*_FIRST, *_SECOND, *_LAST)
_STEPS = (_FIRST, _SECOND, _LAST)
#: What is reached one after the other.
STARTED, BOOTSTRAPPED, REMOVABLE, INSTALLED = STATES = ("started", "bootstrapped", "removable", "installed")
#: Of an operator whose image a registry does not give, in the words of kubelet and containers/image.
PULL_REFUSED = (
    'Back-off pulling image "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0000": reading manifest: unauthorized: access to the requested resource is '
    "not authorized"
)


@dataclasses.dataclass(frozen=True)
class Expected:
    """Names of the Nodes of an installation, and its release."""

    masters: tuple[str, ...]
    workers: tuple[str, ...] = ()
    release: str = "4.20.3"

    @property
    def enough(self) -> int:
        """Masters with which bootstrap is complete: wait-for-ha-api.sh waits for two of three."""
        return min(2, len(self.masters))

    def nodes_of(self, operator: str) -> tuple[str, ...]:
        return (self.workers or self.masters) if operator in _LAST else self.masters


@dataclasses.dataclass(frozen=True)
class Faults:
    """What goes wrong, and since when it is set. degraded, unavailable: messages by operator. bootstrap_stuck: it never completes. member_stays: etcd keeps the
    bootstrap machine's member."""

    degraded: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    unavailable: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    bootstrap_stuck: bool = False
    member_stays: bool = False

    def of(self, operator: str) -> bool:
        return operator in self.degraded or operator in self.unavailable


@dataclasses.dataclass(frozen=True)
class Seen:
    """What is there. ready: Nodes. bootstrap: status of the ConfigMap, "" without it. removed: whether etcd's member has left. good: operators that are
    available. completed: whether ClusterVersion has a completed installation."""

    ready: frozenset[str] = frozenset()
    bootstrap: str = ""
    removed: bool = False
    good: frozenset[str] = frozenset()
    completed: bool = False


def following(seen: Seen, expected: Expected, faults: Faults) -> Seen:
    """What is there next: at most one step further, and only as far as it follows from what is there now."""
    masters_up = len(seen.ready.intersection(expected.masters)) >= expected.enough
    complete = seen.bootstrap == reports.COMPLETE or (
        seen.bootstrap == reports.PROGRESSING and masters_up and not faults.bootstrap_stuck
    )
    removed = seen.removed or (seen.bootstrap == reports.COMPLETE and not faults.member_stays)
    good = frozenset(name for name in _good(seen, expected) if not faults.of(name))
    return Seen(
        seen.ready,
        reports.COMPLETE if complete else reports.PROGRESSING,
        removed,
        good,
        seen.completed or seen.good == frozenset(OPERATORS) == good,
    )


def _good(seen: Seen, expected: Expected) -> set[str]:
    """Operators that were good, and those of the first step that is not, of which the Nodes are Ready."""
    if not seen.removed:
        return set(seen.good)
    step = next((names for names in _STEPS if not seen.good.issuperset(names)), ())
    return {*seen.good, *(name for name in step if seen.ready.issuperset(expected.nodes_of(name)))}


def waiting(name: str, seen: Seen, expected: Expected) -> str:
    """The message of an operator that is not there yet."""
    missing = [node for node in expected.nodes_of(name) if node not in seen.ready]
    return f"waiting for {', '.join(missing) or 'its pods'}"


class Operators:
    """kubeconfig: of an administrator. pace: seconds between two steps."""

    def __init__(self, kubeconfig: str, expected: Expected, pace: float = 1.0, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.done: dict[str, float] = {}
        self._kubeconfig, self._expected, self._pace = kubeconfig, expected, pace
        self._begin, self._error, self._passing = 0.0, "", ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operators")

    def __enter__(self) -> t.Self:
        self._begin = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()
        assert not self._error, self._error

    def wait(self, state: str, seconds: float = 120) -> None:
        """Until a state of STATES is reached. Raises AssertionError."""
        until(
            lambda: state in self.done or bool(self._error),
            f"state {state}",
            seconds,
            seen=lambda: (self.done, self._passing),
        )
        assert not self._error, self._error

    def _run(self) -> None:
        # Requests are repeated by the next step.
        client = connect({"kubeconfig": self._kubeconfig, "retry_timeout": 1})
        while not self._stop.is_set():
            try:
                self._step(client)
            except (Unreachable, Overloaded, NotFound) as error:
                # The API server is away, or has just begun and does not serve all kinds yet.
                self._passing = str(error)
            except ApiError as error:
                self._error = str(error)
                return
            self._stop.wait(self._pace)

    def _step(self, client: Client) -> None:
        world = _World(client)
        seen = world.seen()
        after = following(seen, self._expected, self.faults)
        self._write(world, after)
        reached = (
            True,
            after.bootstrap == reports.COMPLETE,
            after.removed,
            after.completed,
        )
        for state in (name for name, now in zip(STATES, reached, strict=True) if now):
            self.done.setdefault(state, round(time.monotonic() - self._begin, 1))

    def _write(self, world: _World, after: Seen) -> None:
        expected, faults, release = self._expected, self.faults, self._expected.release
        world.write(reports.bootstrap(after.bootstrap))
        world.write(reports.etcd(after.removed))
        for name in OPERATORS:
            told = "" if name in after.good or faults.of(name) else waiting(name, after, expected)
            bad = {"degraded": faults.degraded.get(name, ""), "unavailable": faults.unavailable.get(name, "")}
            world.write(reports.operator(name, release, waiting=told, **bad))
        if "ingress" in after.good and not world.known("v1", "ConfigMap", "default-ingress-cert", _MANAGED):
            world.write(reports.router_authority(_authority()))
        for name, nodes in world.pools().items():
            world.write(reports.pool(name, len(nodes), len(after.ready.intersection(nodes))))
        failing = "".join(f"Cluster operator {name} is degraded" for name in sorted(faults.degraded)[:1])
        world.version(release, after, failing)


_MANAGED = "openshift-config-managed"


class _World:
    """The cluster at one moment."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._nodes = client.list(client.resource("v1", "Node")).items
        found = client.list(client.resource(reports.CONFIG, "ClusterOperator")).items
        self._operators = {one["metadata"]["name"]: one for one in found}

    def seen(self) -> Seen:
        config = self.known("v1", "ConfigMap", "bootstrap", "kube-system")
        etcd = self.known(reports.OPERATOR, "Etcd", "cluster")
        return Seen(
            frozenset(node["metadata"]["name"] for node in self._nodes if is_ready(node)),
            (config.get("data") or {}).get("status", ""),
            _is(etcd, "EtcdBootstrapMemberRemoved"),
            frozenset(name for name, one in self._operators.items() if _is(one, "Available")),
            any(entry["state"] == "Completed" for entry in self._history()),
        )

    def pools(self) -> dict[str, list[str]]:
        """Names of Nodes by the pool of their role. A master that workloads run on is a worker by its labels, too."""
        found: dict[str, list[str]] = {name: [] for name in reports.POOLS}
        for node in self._nodes:
            labels = node["metadata"].get("labels") or {}
            roles = [name for name in reports.POOLS if f"node-role.kubernetes.io/{name}" in labels]
            for name in roles[:1]:
                found[name].append(node["metadata"]["name"])
        return found

    def known(self, api_version: str, kind: str, name: str, namespace: str = "") -> Obj:
        """{} if it does not exist."""
        if kind == "ClusterOperator":
            return self._operators.get(name, {})
        try:
            return self._client.get(self._client.resource(api_version, kind), name, namespace)
        except NotFound:
            return {}

    def write(self, obj: Obj) -> None:
        """Writes what is not as it should be."""
        metadata = obj["metadata"]
        known = self.known(obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace", ""))
        wanted = reports.dated(obj, known, _now())
        if not known or known.get("data") != wanted.get("data"):
            put(self._client, wanted)
        elif "status" in wanted and not _within(wanted["status"], known.get("status") or {}):
            put_status(self._client, wanted)

    def version(self, release: str, after: Seen, failing: str) -> None:
        before = next(iter(self._history()), {})
        ended = before.get("completionTime") or (_now() if after.completed else "")
        history = reports.release(release, before.get("startedTime") or _now(), ended)
        self.write(reports.version(release, len(after.good), len(OPERATORS), failing, history, str(uuid.uuid4())))

    def _history(self) -> list[Obj]:
        status = self.known(reports.CONFIG, "ClusterVersion", "version").get("status") or {}
        found: list[Obj] = status.get("history") or []
        return found


def _is(obj: Obj, kind: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == (kind, "True") for one in conditions)


def _within(wanted: t.Any, known: t.Any) -> bool:
    """Whether all that is wanted is known. The API server leaves out what is null."""
    if isinstance(wanted, dict):
        return isinstance(known, dict) and all(_within(value, known.get(key)) for key, value in wanted.items())
    return bool(wanted == known)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _authority() -> str:
    """A new certificate of *.apps's authority, which the ingress operator makes for each cluster."""
    begin = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    end = begin + datetime.timedelta(days=730)
    return issue(Subject(f"ingress-operator@{begin.timestamp():.0f}"), Key.generate("P-256"), begin, end).decode()
