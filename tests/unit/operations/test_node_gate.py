# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates over a fleet: waiting, verdicts, slices, and what is told."""

from __future__ import annotations

import datetime
import functools
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import chain, names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pools import parse_pools
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.resources import parse_plugin_config
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Gone, ManyFaults, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import node_gate
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import run
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s
from ansible_collections.hwaccel.gpu.tests.unit.operations.fake_cluster import FakeCluster, Step
from ansible_collections.hwaccel.gpu.tests.unit.operations.gate_fleets import Clock, broken, daemon_set, fleet, healthy, settings, training


def test_a_healthy_fleet_passes_at_the_first_look_and_writes_nothing(clock: Clock) -> None:
    cluster = fleet(16, clock=clock)
    result = run(settings(), cluster)
    assert result.values["nodes"] == {"passed": 16, "waiting": 0, "failed": 0, "unknown": 0}
    assert result.failure is None
    assert not result.changed
    assert cluster.writes == []
    assert result.values["pools"] == [{
        "pool": "training", "nodes": 16, "expected": 128, "seen": 128, "resources": {s.GPU: {"expected": 128, "seen": 128}},
        "passed": 16, "waiting": 0, "failed": 0, "unknown": 0, "settled": clock.now, "simulated": 0, "kernels": [s.KERNEL], "drivers": ["580"],
    }]


def test_a_branch_is_no_second_driver_where_one_node_has_told_its_version(clock: Clock) -> None:
    told = s.node("training-0", labels={"pool": "training", names.DRIVER_VERSION_LABEL: "580.178.04"}, allocatable=8)
    cluster = FakeCluster([told, training(1, allocatable=8)], [*healthy("training-0"), *healthy("training-1")], on_idle=clock.advance)
    assert run(settings(), cluster).values["pools"][0]["drivers"] == ["580.178.04"]


def test_a_precompiled_driver_is_called_by_its_version_before_gpu_feature_discovery_has_spoken(clock: Clock) -> None:
    driver = s.driver("training-0")
    driver["metadata"]["labels"] = {names.DRIVER_VERSION_WANTED_LABEL: "595.91.07"}
    driver["spec"]["containers"][0]["image"] = "nvcr.io/nvidia/driver:595-6.8.0-134-generic-ubuntu24.04"
    cluster = FakeCluster([training(0, allocatable=8)], [driver, s.toolkit("training-0"), s.validator("training-0")], on_idle=clock.advance)
    assert run(settings(), cluster).values["pools"][0]["drivers"] == ["595.91.07"]


def test_waits_until_the_last_node_has_passed(clock: Clock) -> None:
    loading = [s.driver("training-1", s.running(ready=False, started=False)), s.validator("training-1", s.running(ready=False))]

    def drivers_load(cluster: FakeCluster) -> None:
        for pod, now in zip(loading, (s.driver("training-1"), s.validator("training-1")), strict=True):
            now["metadata"] = pod["metadata"] | {"labels": {}}
            cluster.put(now)

    cluster = FakeCluster([training(0), training(1)], [*healthy("training-0"), *loading], [lambda cluster: clock.advance(6), drivers_load], clock.advance)
    result = run(settings(), cluster)
    assert result.values["nodes"]["passed"] == 2
    assert result.values["pools"][0]["settled"] == clock.now > 1000
    assert result.progress[0].startswith("driver: 1 of 2 passed, 1 waiting: training-1 (driver: compiling or loading); at most ")
    assert result.progress[-1] == "driver: 2 of 2 passed"


def test_what_still_waits_at_the_end_has_failed(clock: Clock) -> None:
    loading = [s.driver("training-0", s.running(ready=False, started=False)), s.validator("training-0", s.running(ready=False))]
    cluster = FakeCluster([training(0)], loading, on_idle=clock.advance)
    result = run(settings(wait_timeout=60), cluster)
    assert result.values["faults"][0]["reason"].startswith("still so after 60 s: the driver is compiling")
    assert result.values["faults"][0]["log_tail"]
    assert result.failure is not None


def test_timeout_grows_with_the_fleet(clock: Clock) -> None:
    gate = node_gate._begin(settings(), fleet(20), {})
    gate.judge()
    assert gate.timeout == 1800 + 20 * 0.3


def test_a_failure_from_before_the_run_gets_one_more_try(clock: Clock) -> None:
    """Repaired before the run, the container still sits in its back-off: it starts during the run, and passes."""
    nodes, pods = [training(0)], broken("training-0")

    def starts(cluster: FakeCluster) -> None:
        for pod in pods:
            cluster.remove("Pod", pod["metadata"]["name"])
        for pod in healthy("training-0"):
            cluster.put(pod)

    cluster = FakeCluster(nodes, pods, [lambda cluster: None, starts], clock.advance)
    assert run(settings(max_failed=0), cluster).values["nodes"]["passed"] == 1
    stays = FakeCluster(nodes, pods, on_idle=clock.advance)
    began = clock.now
    assert run(settings(max_failed=0), stays).values["nodes"]["failed"] == 1
    assert clock.now - began < node_gate.STALE + 60


def test_a_run_that_began_before_the_gate_is_no_try_of_its_time(clock: Clock) -> None:
    """Repaired before the run, while a try was under way: that one still ends badly, the next one passes."""
    nodes, pods = [training(0)], healthy("training-0")
    driver, validator = pods[0], pods[2]
    metadata = driver["metadata"]

    def becomes(status: s.Obj, *, ready: bool) -> t.Callable[[FakeCluster], None]:
        def change(cluster: FakeCluster) -> None:
            cluster.put(s.driver("training-0", status) | {"metadata": metadata})
            cluster.put(s.validator("training-0", s.done() if ready else s.running(ready=False)) | {"metadata": validator["metadata"]})

        return change

    last = s.done(1, restarts=4)
    script = [becomes(last, ready=False), becomes(s.crash_loop("d", 4), ready=False), becomes(s.running(restarts=5), ready=True)]
    cluster = FakeCluster(nodes, pods, script, clock.advance)
    becomes(s.running(ready=False, restarts=4), ready=False)(cluster)
    assert run(settings(max_failed=0), cluster).values["nodes"]["passed"] == 1
    script = [becomes(last, ready=False), becomes(s.crash_loop("d", 5), ready=False)]
    cluster = FakeCluster(nodes, pods, script, clock.advance)
    becomes(s.running(ready=False, restarts=4), ready=False)(cluster)
    began = clock.now
    assert run(settings(max_failed=0), cluster).values["nodes"]["failed"] == 1
    assert clock.now - began < 60, "a run that began under the eyes of the gate decides"


@pytest.mark.parametrize(("seen", "decided"), [("ImagePullBackOff", False), ("ErrImagePull", True)])
def test_only_a_pull_of_its_time_is_a_failure_at_once(clock: Clock, seen: str, decided: bool) -> None:
    """The kubelet says ErrImagePull after a try, and ImagePullBackOff until the next."""
    pods = [s.driver("training-0", s.waiting("ErrImagePull", "manifest unknown")), s.validator("training-0", s.running(ready=False))]
    later = [s.driver("training-0", s.waiting(reason, "manifest unknown")) | {"metadata": pods[0]["metadata"]} for reason in ("ImagePullBackOff", seen)]
    cluster = FakeCluster([training(0)], pods, [functools.partial(FakeCluster.put, obj=obj) for obj in later], clock.advance)
    began = clock.now
    assert run(settings(max_failed=0), cluster).values["nodes"]["failed"] == 1
    assert (clock.now - began < 60) is decided


def test_crashes_seen_while_the_driver_loads_are_forgotten_when_it_is_ready(clock: Clock) -> None:
    """Also by a later slice, and when nothing was seen between the driver's readiness and the step's next crash."""
    before, after, last = (f"2026-11-20T10:0{minute}:00Z" for minute in (0, 1, 2))
    loading = [s.driver("training-0", s.running(ready=False, started=False)), s.toolkit("training-0", since=before)]
    validator = s.validator("training-0", s.crash_loop("driver-validation", 3, ended=before))
    cluster = FakeCluster([training(0)], [*loading, validator], on_idle=clock.advance)
    first = run(settings(), cluster, deadline=clock.monotonic())
    assert first.pending is not None
    for old, now in ((loading[0], s.driver("training-0", since=after)), (validator, s.validator("training-0", s.crash_loop("d", 4, ended=last)))):
        now["metadata"] = old["metadata"] | {"labels": {}}
        cluster.put(now)
    second = run(settings(), cluster, deadline=clock.monotonic() + 5, resume=json.loads(json.dumps(first.pending)))
    assert second.failure is None
    assert "crashed once" in second.progress[-1]


@pytest.mark.parametrize(("away", "waited"), [(0, chain.REBOOT), (600, chain.REBOOT - 600), (86400, 0)])
def test_a_node_that_is_not_ready_is_waited_for_as_long_as_a_reboot_takes(clock: Clock, away: int, waited: float) -> None:
    """Counted from when its kubelet fell silent, so that a node that has been dead for days does not hold up a run."""
    cluster = fleet(16, clock=clock)
    lost = cluster.get(cluster.resource("v1", "Node"), "training-5")
    since = datetime.datetime.fromtimestamp(clock.now - away, tz=datetime.UTC).isoformat()
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": since}]
    cluster.put(lost)
    began = clock.now
    result = run(settings(), cluster)
    assert result.values["failed_nodes"] == ["training-5"]
    assert waited <= clock.now - began <= waited + 30


def test_shortfall_of_gpus(clock: Clock) -> None:
    cluster = FakeCluster([training(number, allocatable=7 if number == 5 else 8) for number in range(16)],
                          [pod for number in range(16) for pod in healthy(f"training-{number}")], on_idle=clock.advance)
    result = run(settings("devices"), cluster)
    assert result.values["failed_nodes"] == ["training-5"]
    assert result.values["faults"][0]["reason"] == "7 nvidia.com/gpu schedulable, 8 nvidia.com/gpu expected"
    assert result.values["pools"][0]["seen"] == 127


def test_users_who_take_every_gpu_change_nothing(clock: Clock) -> None:
    """Allocatable is what the node offers, whoever uses it."""
    cluster = fleet(2)
    for number in range(2):
        job = s.pod("job", f"training-{number}", {}, {"train": s.running()}, "example.org/train:1")
        job["spec"]["containers"][0]["resources"] = {"limits": {s.GPU: "8"}}
        cluster.put(job)
    result = run(settings("devices"), cluster)
    assert result.values["nodes"]["passed"] == 2
    assert cluster.writes == []


def test_shared_gpus_are_expected_by_the_plugin_configuration(clock: Clock) -> None:
    config = parse_plugin_config({"sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": s.GPU, "replicas": 4}]}}})
    node = training(0)
    node["status"]["allocatable"][s.GPU + ".shared"] = "32"
    cluster = FakeCluster([node], healthy("training-0"), on_idle=clock.advance)
    assert run(settings("devices", plugin_configs={"default": config}), cluster).values["nodes"]["passed"] == 1
    assert run(settings("devices"), cluster).values["nodes"]["failed"] == 1


def test_an_observer_that_loses_the_cluster_fails_no_node(clock: Clock) -> None:
    def lost(*_args: t.Any) -> t.Any:
        raise Unreachable("watching pods", "https://cluster:6443", "connection refused")

    cluster = fleet(16, {3}, clock, [lost])
    cluster.list = lost  # type: ignore[method-assign]
    result = run(settings(), cluster)
    assert result.values["nodes"] == {"passed": 15, "waiting": 0, "failed": 0, "unknown": 1}
    assert result.values["failed_nodes"] == []
    assert cluster.writes == []
    assert "lost the cluster" in str(result.failure)


@pytest.mark.parametrize("between_slices", [False, True])
def test_what_could_not_be_seen_does_not_age(clock: Clock, between_slices: bool) -> None:
    """A GPU is late by a few seconds, and just then the server is away for longer than a node may lack one."""
    cluster = FakeCluster([training(0, allocatable=7)], healthy("training-0"), on_idle=clock.advance)
    resume: dict[str, t.Any] = {}
    known = cluster.resource
    steps: list[Step] = [lambda cluster: None, lambda cluster: cluster.put(training(0, allocatable=8))]

    def away(*_args: t.Any) -> t.Any:
        clock.advance(chain.SETTLE + 10)
        raise Unreachable("watching nodes", "https://cluster:6443", "connection refused")

    def late(*args: t.Any) -> t.Any:
        clock.advance(chain.SETTLE + 10)
        cluster.resource = known  # type: ignore[method-assign]
        return known(*args)

    if between_slices:
        resume = json.loads(json.dumps(run(settings("devices"), cluster, deadline=clock.now).pending))
        cluster.resource = late  # type: ignore[method-assign]
    cluster.script = steps if between_slices else [away, *steps]
    assert run(settings("devices"), cluster, resume=resume).values["nodes"]["passed"] == 1


def test_an_expired_watch_lists_again(clock: Clock) -> None:
    def expires(cluster: FakeCluster) -> None:
        for pod in [pod for pod in list(cluster.objects["Pod"].values()) if pod["spec"]["nodeName"] == "training-3"]:
            cluster.remove("Pod", pod["metadata"]["name"])
        for pod in healthy("training-3"):
            cluster.put(pod)
        raise Gone("watching pods")

    cluster = fleet(16, {3}, clock, [expires])
    assert run(settings(), cluster).values["nodes"]["passed"] == 16


def test_a_list_that_breaks_off_leaves_what_was_known(clock: Clock) -> None:
    def expires(cluster: FakeCluster) -> None:
        raise Gone("watching pods")

    cluster = fleet(2, {1}, clock, [expires])
    known, listed = cluster.pages, 0

    def pages(*args: t.Any, **more: t.Any) -> t.Iterator[t.Any]:
        nonlocal listed
        listed += 1
        if listed == 3:
            raise Unreachable("listing pods", "https://cluster:6443", "connection refused")
        yield from known(*args, **more)

    cluster.pages = pages  # type: ignore[method-assign]
    assert run(settings(max_failed=1), cluster).values["failed_nodes"] == ["training-1"]


def test_slices_go_on_where_the_last_one_stood(clock: Clock) -> None:
    cluster = fleet(16, {3}, clock, [lambda cluster: clock.advance(6), lambda cluster: clock.advance(6)])
    listed: list[str] = []
    pages = cluster.pages
    cluster.pages = lambda resource, *args, **kwargs: listed.append(resource.kind) or pages(resource, *args, **kwargs)  # type: ignore[method-assign]
    resume: dict[str, t.Any] = {}
    slices = 0
    lines: list[str] = []
    while True:
        result = run(settings(), cluster, deadline=clock.now + 10, resume=resume)
        slices += 1
        lines += result.progress
        if result.pending is None:
            break
        resume = json.loads(json.dumps(result.pending))
        clock.advance(1)
    assert slices > 5
    assert listed == ["Node", "Pod"]
    assert result.values["failed_nodes"] == ["training-3"]
    assert result.values["quarantined"] == ["training-3"]
    assert len(lines) < slices


def test_excluded_and_opted_out_nodes_are_not_judged(clock: Clock) -> None:
    nodes = [training(0), training(1), s.node("out", labels={names.OPERANDS_LABEL: "false"}), s.node("cpu-0", gpus=0)]
    result = run(settings(exclude=frozenset({"training-1"})), FakeCluster(nodes, healthy("training-0"), on_idle=clock.advance))
    assert result.values["nodes"]["passed"] == 1
    assert sum(result.values["nodes"].values()) == 1


def test_nodes_judged_while_their_nfd_labels_are_away(clock: Clock) -> None:
    cluster = FakeCluster([s.node("n", nfd=False)], healthy("n"), on_idle=clock.advance)
    assert run(settings(pools=()), cluster).values["nodes"]["passed"] == 1


def test_pools_that_overlap_are_told_at_once(clock: Clock) -> None:
    pools = parse_pools([{"name": "a", "selector": "pool=training"}, {"name": "b", "nodes": ["training-0", "gone"]}, {"name": "c", "nodes": ["gone"]}])
    with pytest.raises(ManyFaults) as raised:
        run(settings(pools=pools), fleet(2, clock=clock))
    assert "pools a and b overlap" in str(raised.value)
    assert "pools b and c overlap" in str(raised.value)


def test_events_tell_why_a_pod_cannot_be_made(clock: Clock) -> None:
    cluster = FakeCluster([training(0)], [s.driver("training-0"), s.toolkit("training-0")], on_idle=clock.advance)
    message = 'pods "validator-x" is forbidden: violates PodSecurity "restricted:latest": privileged'
    lacking, complete = daemon_set("validator", s.validator("x"), 1), daemon_set("toolkit", s.toolkit("x"), 1)
    lacking["status"]["currentNumberScheduled"] = 0
    for number, (owner, told) in enumerate(((lacking, message), (complete, "what was repaired since"))):
        owner["metadata"]["uid"] = f"uid-{number}"
        cluster.put(owner)
        cluster.put({
            "kind": "Event", "metadata": {"name": f"e{number}"}, "involvedObject": {"kind": "DaemonSet", "uid": f"uid-{number}"}, "reason": "FailedCreate",
            "message": told, "lastTimestamp": f"2026-11-20T10:0{number}:00Z",
        })
    result = run(settings(max_failed=0), cluster)
    assert "no validator pod is on the node; FailedCreate: pods \"validator-x\" is forbidden" in result.values["faults"][0]["reason"]


def test_logs_are_fetched_for_a_sample_only(clock: Clock) -> None:
    cluster = fleet(30, set(range(10)), clock)
    result = run(settings(sample=4), cluster)
    assert len(result.values["faults"]) == 4
    assert len(result.values["failed_nodes"]) == 10
    assert len({pod for pod, _container, _previous in cluster.logged}) == 4


def test_pods_that_a_controller_has_still_to_make_are_waited_for(clock: Clock) -> None:
    """Right after the apply no NFD worker exists yet: nothing to judge is not the answer then."""
    worker = s.worker("n")
    unseen = daemon_set("nfd-worker", worker, 0, observed=0)
    cluster = FakeCluster([s.node("n", gpus=0, nfd=False)], [], [
        lambda cluster: cluster.put(daemon_set("nfd-worker", worker, 1)), lambda cluster: cluster.put(worker), lambda cluster: None,
        lambda cluster: cluster.put(s.node("n")),
    ], clock.advance)
    cluster.put(unseen)
    result = run(settings("features", pools=()), cluster)
    assert result.values["nodes"]["passed"] == 1
    assert result.warnings == []


def test_pods_that_are_seen_when_no_node_waits_any_more_are_taken_as_they_come(clock: Clock) -> None:
    """One event a look made a fleet of 200 nodes wait ten minutes for what had long happened."""
    others = [s.plugin(f"training-{number}") for number in range(20)]
    for other in others:
        other["metadata"]["ownerReferences"][0]["name"] = "gpu-feature-discovery"

    def appear(cluster: FakeCluster) -> None:
        for other in others:
            cluster.put(other)

    cluster = fleet(20, clock=clock, script=[appear])
    cluster.put(daemon_set("gpu-feature-discovery", others[0], 20))
    began = clock.now
    assert run(settings("devices"), cluster).values["nodes"]["passed"] == 20
    assert clock.now - began <= 20


def test_the_kind_whose_events_still_come_has_most_of_the_next_look(clock: Clock) -> None:
    """Nodes that wait for the device plugin are looked at first, but their pods' events of a large fleet take longer than the rest of a look."""
    asked: list[tuple[str, float]] = []
    cluster = FakeCluster([training(0)], [s.driver("training-0"), s.validator("training-0")], [lambda cluster: None] * 8, clock.advance)
    plain = cluster.watch

    def watch(resource: t.Any, *args: t.Any, deadline: float, **kwargs: t.Any) -> t.Iterator[t.Any]:
        asked.append((resource.kind, round(deadline - clock.monotonic(), 1)))
        if resource.kind == "Pod" and len(asked) < 4:
            cluster.put(s.plugin("training-0", s.running(ready=False)))
        yield from plain(resource, *args, deadline=deadline, **kwargs)

    cluster.watch = watch  # type: ignore[method-assign]
    run(settings("devices", wait_timeout=30), cluster)
    nodes_first, pods_first = [("Node", 3.5), ("Pod", 4.0)], [("Pod", 3.5), ("Node", 4.0)]
    assert asked[:8] == [*nodes_first, *pods_first, *pods_first, *nodes_first]


def test_a_rollout_that_stands_still_is_told_and_not_waited_for_for_ever(clock: Clock) -> None:
    cluster = fleet(2, clock=clock, script=[])
    cluster.put(daemon_set("device-plugin", s.plugin("x"), 2, updated=1))
    began = clock.now
    result = run(settings("devices"), cluster)
    assert result.values["nodes"]["passed"] == 2
    assert result.warnings == ["gate devices did not wait any longer for DaemonSet device-plugin: 1 of 2 pods have its last template"]
    assert 100 <= clock.now - began < 200


def test_a_feature_discovery_that_gets_no_pod_is_waited_for_and_told(clock: Clock) -> None:
    """Of a node without its pod nobody else would say that the labels of its GPUs are missing."""
    found = s.discovery("training-0")
    lacking = daemon_set("gpu-feature-discovery", found, 1)
    lacking["status"]["currentNumberScheduled"] = 0
    made = daemon_set("gpu-feature-discovery", found, 1)
    labelled = training(0, allocatable=8)
    labelled["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3"
    later: list[Step] = [lambda cluster: None, lambda cluster: cluster.put(made), lambda cluster: cluster.put(found), lambda cluster: cluster.put(labelled)]
    for script, warnings in (([], ["gate devices did not wait any longer for DaemonSet gpu-feature-discovery: 0 of 1 pods exist"]), (later, [])):
        cluster = fleet(1, clock=clock, script=script)
        cluster.put(lacking)
        began = clock.now
        result = run(settings("devices"), cluster)
        assert (result.values["nodes"]["passed"], result.warnings) == (1, warnings)
        assert (clock.now - began >= chain.GRACE) is bool(warnings)
        assert cluster.script == []


def test_nfd_that_does_not_label_leaves_nodes_unknown(clock: Clock) -> None:
    cluster = FakeCluster([s.node("n", nfd=False)], [s.worker("n")], on_idle=clock.advance)
    result = run(settings("features", pools=()), cluster)
    assert result.values["nodes"] == {"passed": 0, "waiting": 0, "failed": 0, "unknown": 1}
    assert result.values["failed_nodes"] == []
    assert cluster.writes == []
    assert "0 of 1 nodes failed and 1 are unknown" in str(result.failure)


def test_the_log_decides_what_to_do_next(clock: Clock) -> None:
    cluster = fleet(16, {3}, clock)
    cluster.logs = lambda *args, **kwargs: "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"  # type: ignore[method-assign]
    assert "Secure Boot" in run(settings(), cluster).values["faults"][0]["next_step"]


def test_what_is_known_of_the_cluster_goes_before_what_the_log_guesses(clock: Clock) -> None:
    cluster = FakeCluster([training(0, kernel="6.8.0-45-generic")], broken("training-0"), on_idle=clock.advance)
    cluster.logs = lambda *args, **kwargs: "E: Unable to locate package linux-modules-nvidia-580-6.8.0-45-generic"  # type: ignore[method-assign]
    assert "choose the image for the kernel that runs" in run(settings(), cluster).values["faults"][0]["next_step"]


def test_packed_state_is_the_same_state() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8", "nvidia.com/mig-1g.10gb.count": "7", "pool": "training"}
    node = s.node("training-0", allocatable=8, labels=labels, taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    cluster = FakeCluster([node], [*healthy("training-0"), *broken("training-0")])
    gate = node_gate._begin(settings(), cluster, {})
    gate.judge()
    again = node_gate._begin(settings(), cluster, json.loads(json.dumps(gate.pack())))
    again.judge()
    assert again.fleet.nodes == gate.fleet.nodes
    assert again.fleet._pods == gate.fleet._pods
    assert again.fleet.pool_names == gate.fleet.pool_names
    assert again.verdicts == gate.verdicts
