# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only one run at a time writes a set: runs with slices, kills, pauses, skewed clocks and lost answers, in orders that hypothesis generates."""

from __future__ import annotations

import collections.abc as c
import datetime
import typing as t

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import ensure as manifest_set
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import held_client, hold, holder, turn
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import CONFIG_MAP, NODE
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.schedules import Run, Violation, World
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.set_server import ASKS
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.test_ensure import call, config_map

#: Number of schedules in make test, and in make soak.
FEW, MANY = 520, 20_000
#: Maximum number of schedules until a hole is found. Schedules depend on the source of the state machine below, so the number may change with it.
HOLE = 5_000
_MOST_RUNS = 4
_FAULTS = ("request lost", "answer lost", "sent twice", "slow")


class Schedules(RuleBasedStateMachine):
    """Up to four runs; who goes on, who dies and what gets lost is drawn."""

    ran = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = World().__enter__()
        type(self).ran += 1

    @initialize(
        linger=st.sampled_from((0.0, 5.0, 40.0, 100.0)),
        ready_after=st.sampled_from((0.0, 15.0, 100.0)),
        there=st.booleans(),
    )
    def cluster(self, linger: float, ready_after: float, there: bool) -> None:
        if there:
            self.world.finish(self.world.begin("first", self.world.hosts[0], sliced=False))
        self.world.server.linger, self.world.server.ready_after = linger, ready_after

    @precondition(lambda self: len(self.world.runs) <= _MOST_RUNS)
    @rule(
        ask=st.sampled_from(sorted(ASKS)),
        host=st.integers(0, 2),
        user=st.sampled_from(("root", "other")),
        sliced=st.booleans(),
        far=st.booleans(),
    )
    def begin(self, ask: str, host: int, user: str, sliced: bool, far: bool) -> None:
        hosts = self.world.hosts
        self.world.begin(ask, hosts[host], user=user, sliced=sliced, controller=hosts[(host + far) % 3])

    @precondition(lambda self: self.world.runs)
    @rule(which=st.integers(0, _MOST_RUNS), steps=st.sampled_from((1, 2, 3, 5, 8, 13, 21, 34, 55, 150)))
    def go(self, which: int, steps: int) -> None:
        run = self.run_of(which)
        for _step in range(steps):
            if run.over:
                break
            run.step()
        self.judged()

    @precondition(lambda self: self.world.runs)
    @rule(which=st.integers(0, _MOST_RUNS), fault=st.sampled_from(_FAULTS), steps=st.integers(1, 3))
    def lose(self, which: int, fault: str, steps: int) -> None:
        self.run_of(which).fault = fault
        self.go(which, steps)

    @precondition(lambda self: self.world.runs)
    @rule(which=st.integers(0, _MOST_RUNS), what=st.sampled_from(("all", "worker", "module")))
    def kill(self, which: int, what: str) -> None:
        self.run_of(which).kill(what)
        self.judged()

    @rule(seconds=st.sampled_from((20.0, 95.0, 300.0)))
    def sleep(self, seconds: float) -> None:
        """All of them are stopped, as with a laptop that was shut."""
        self.world.time += seconds

    def run_of(self, which: int) -> Run:
        return self.world.runs[which % len(self.world.runs)]

    def judged(self) -> None:
        if self.world.violations:
            raise self.world.violations[0]

    def teardown(self) -> None:
        """All end, one last run brings the set to what it asks for, and one removes it."""
        try:
            self.judged()
            self.world.finish(*(run for run in self.world.runs if not run.over))
            self.judged()
            self.last("second", {"a", "b"})
            self.last("absent", set())
            if self.world.server.records():
                raise Violation("a record is left that no run has")
        finally:
            self.world.__exit__()

    def last(self, ask: str, names: set[str]) -> None:
        run = self.world.begin(ask, self.world.hosts[1])
        self.world.finish(run)
        self.judged()
        if run.failure is not None:
            raise Violation(f"nothing is in the way of the last run, and it fails: {run.failure}")
        if {key.name for key in self.world.server.members()} != names:
            raise Violation(f"the last run has left {sorted(map(str, self.world.server.members()))}")


def explore(schedules: int, machine: type[Schedules] = Schedules, *, shrink: bool = True) -> int:
    """Run schedules, and return their number. Raises Violation."""
    machine.ran = 0
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=schedules,
            stateful_step_count=12,
            deadline=None,
            database=None,
            derandomize=True,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        ),
    )
    return machine.ran


def test_one_run_at_a_time_in_any_schedule() -> None:
    assert explore(FEW) >= 500


@pytest.mark.slow
def test_one_run_at_a_time_in_many_schedules() -> None:
    ran = explore(MANY)
    print(f"{ran} schedules, no violation")
    assert ran >= MANY


def released_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect: each slice is a separate run."""
    monkeypatch.setattr(hold.Held, "pause", hold.Held.release)
    monkeypatch.setattr(manifest_set, "turn_of", lambda _resume, run: turn.Turn(run))


def without_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect: waits inside a wave, and writes, do not check the hold."""
    monkeypatch.setattr(held_client.HeldClient, "__getattr__", lambda self, name: getattr(self._client, name))


def by_the_holders_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect: the expiry time that the holder has written is compared with the reader's clock."""

    def blocking(self: t.Any, record: t.Any) -> t.Any:
        found = record.hold
        if found is None or self._is_ours(record) or self._turn.holder.is_dead(found.holder):
            return None
        until = (
            datetime.datetime.strptime(found.renewed, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.UTC).timestamp()
            + found.seconds
        )
        self._turn.sighted = (found.holder, found.renewed, self._clock.monotonic())
        return None if until <= self._clock.now() else found

    monkeypatch.setattr(hold.Held, "_blocking", blocking)


def unreadable_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect: a process whose /proc/PID/stat cannot be read counts as dead."""
    monkeypatch.setattr(holder, "_is_gone", lambda pid, started: holder._started(pid) != started)


@pytest.mark.parametrize("hole", [released_between_slices, without_renewal, by_the_holders_clock, unreadable_is_gone])
def test_each_of_the_four_holes_is_found(
    hole: c.Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hole(monkeypatch)
    with pytest.raises(Violation) as found:
        explore(HOLE, shrink=False)
    print(f"{hole.__name__}: found by schedule {Schedules.ran}: {found.value}")


DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "d", "namespace": "n"},
    "spec": {"a": "1"},
}
ASKED = [DAEMON_SET, config_map("a")]
READY = {"desiredNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1, "updatedNumberScheduled": 1}
THEM = holder.Holder("them", lambda identity: False)


@pytest.fixture(name="time")
def _time() -> Time:
    return Time()


@pytest.fixture(name="cluster")
def _cluster() -> Cluster:
    """A cluster with a node where the pods of the workload never become ready."""
    cluster = Cluster()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "node"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        NODE,
    )
    cluster.writes.clear()
    return cluster


def held_by(cluster: Cluster) -> str:
    annotations = cluster.get(CONFIG_MAP, "s", "hwaccel-gpu-records")["metadata"]["annotations"]
    return str(annotations.get("hwaccel.gpu/held-by", ""))


def one_slice(cluster: Cluster, time: Time, before: Report | None = None, **options: t.Any) -> Report:
    resume = before.pending if before is not None else None
    return call(
        cluster,
        options.pop("asked", ASKED),
        clock=time.clock(10.0),
        resume=resume,
        **({"wait": True, "wait_timeout": 100} | options),
    )


@pytest.mark.parametrize("end", ["ready", "late"])
def test_the_set_is_held_until_the_task_ends_and_a_long_wait_renews_rarely(
    cluster: Cluster, time: Time, end: str
) -> None:
    report, slices = one_slice(cluster, time), 1
    while report.pending is not None:
        assert held_by(cluster) == "me"
        refused = call(cluster, [*ASKED, config_map("theirs")], clock=time.clock(), lock_timeout=0, holder=THEM)
        assert "the set is held by me since" in str(refused.failure)
        if end == "ready" and slices == 6:
            cluster.objects["daemonsets", "n", "d"]["status"] = READY
        report, slices = one_slice(cluster, time, report), slices + 1
        time.sleep(1)
    assert held_by(cluster) == ""
    assert (report.failure is None) is (end == "ready")
    # One write creates the record and takes the hold. Later writes are at the end of the first slice, every 30 seconds after that, and the release.
    assert cluster.writes.count("create ConfigMap s") == 1
    assert cluster.writes.count("replace ConfigMap s") == {"ready": 1 + 1 + 1, "late": 1 + 2 + 1}[end]


def test_a_removal_holds_the_set_from_slice_to_slice(cluster: Cluster, time: Time) -> None:
    call(cluster, ASKED)
    cluster.objects["daemonsets", "n", "d"]["metadata"]["finalizers"] = ["example.com/held"]
    first = one_slice(cluster, time, state="absent")
    assert (held_by(cluster), first.pending is not None) == ("me", True)
    refused = call(cluster, ASKED, clock=time.clock(), lock_timeout=0, holder=THEM)
    assert "held by me" in str(refused.failure)
    late = one_slice(cluster, time, first, state="absent", wait_timeout=5)
    assert "still being deleted" in str(late.failure)
    assert held_by(cluster) == ""


@pytest.mark.parametrize("state", ["present", "absent"])
def test_who_has_lost_the_set_writes_nothing_more(cluster: Cluster, time: Time, state: str) -> None:
    first = one_slice(cluster, time)
    assert first.pending is not None
    assert call(cluster, [*ASKED, config_map("theirs")], clock=time.clock(), holder=THEM).failure is None
    cluster.writes.clear()
    resumed = one_slice(
        cluster, time, Report(pending=first.pending | {"phase": "start"}), asked=[config_map("b")], state=state
    )
    assert "another run took over the set (ConfigMap hwaccel-gpu-records/s): its record was released" in str(
        resumed.failure
    )
    assert "the hold of this run was not renewed for 90 s" in str(resumed.failure)
    assert cluster.writes == []


def test_a_machine_that_was_asleep_knows_it_by_its_wall_clock(cluster: Cluster) -> None:
    """The monotonic clock stops during sleep, and so does the age of the hold."""
    wall, asleep = [0.0], 400.0

    def sleeping(_request: Request) -> None:
        wall[0] += asleep
        assert call(cluster, [config_map("theirs")], clock=Time().clock(), holder=THEM).failure is None

    cluster.on("apply", sleeping, name="a", after=True)
    report = call(cluster, ASKED, clock=Clock(now=lambda: wall[0], monotonic=lambda: 0.0))
    assert "another run took over the set" in str(report.failure)
    assert ("daemonsets", "n", "d") not in cluster.objects


def test_an_error_in_a_later_slice_lets_go(cluster: Cluster, time: Time) -> None:
    first = one_slice(cluster, time)
    cluster.fail(Unreachable("listing daemonsets"), "list")
    with pytest.raises(Unreachable):
        one_slice(cluster, time, first)
    assert held_by(cluster) == ""


def test_a_wait_inside_a_wave_renews_the_hold(cluster: Cluster, time: Time) -> None:
    """Our DaemonSet is created again after the old one is deleted, which takes longer than the duration of a hold."""
    call(cluster, ASKED)
    cluster.objects["daemonsets", "n", "d"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    gone, renewed = time.now + 110, set()

    def look(_request: Request) -> None:
        if (
            time.now >= gone
            and "deletionTimestamp" in cluster.objects.get(("daemonsets", "n", "d"), {"metadata": {}})["metadata"]
        ):
            del cluster.objects["daemonsets", "n", "d"]
        annotations = cluster.objects["configmaps", "hwaccel-gpu-records", "s"]["metadata"]["annotations"]
        renewed.add(annotations.get("hwaccel.gpu/held-renewed"))

    cluster.on("get", look)
    assert call(cluster, ASKED, clock=time.clock()).failure is None
    assert len(renewed - {None}) == 4, "taken, and after 30, 60 and 90 seconds"


def test_a_removal_that_waits_for_the_namespace_of_the_records_leaves_a_set_that_came_since(
    cluster: Cluster, time: Time
) -> None:
    call(cluster, ASKED)
    cluster.stored("Namespace", "hwaccel-gpu-records")["metadata"]["finalizers"] = ["example.com/held"]
    first = one_slice(cluster, time, state="absent")
    assert first.progress == ["the namespace of the records is being deleted"]
    del cluster.objects["namespaces", "", "hwaccel-gpu-records"]
    assert call(cluster, ASKED, holder=THEM).failure is None
    assert one_slice(cluster, time, first, state="absent").failure is None
    assert {("configmaps", "n", "a"), ("daemonsets", "n", "d")} <= set(cluster.objects)
