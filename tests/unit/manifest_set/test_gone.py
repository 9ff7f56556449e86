# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the deletion of workloads and their pods. Pods of a node that is not ready stay until it is ready again; everything else is deleted."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.options import Report
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time
from ansible_collections.hwaccel.gpu.tests.unit.clusters.workloads import WorkloadCluster
from ansible_collections.hwaccel.gpu.tests.unit.manifest_set.test_ensure import call, config_map

WITHOUT_AGENT = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, config_map("settings")]


def installed(**nodes: str) -> WorkloadCluster:
    """A workload, its ConfigMap and their Namespace, with a pod on each node."""
    cluster = WorkloadCluster(**nodes)
    cluster.objects.pop(("namespaces", "", "n"))
    call(
        cluster,
        [
            *WITHOUT_AGENT,
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "agent", "namespace": "n"},
                "spec": {"a": "1"},
            },
        ],
    )
    cluster.run_pods(*nodes)
    cluster.writes.clear()
    return cluster


def removed(cluster: WorkloadCluster) -> tuple[Report, float]:
    """The report, and the seconds that the removal took."""
    time = Time()
    started = time.now
    report = call(cluster, state="absent", wait=True, wait_timeout=300, clock=time.clock())
    return report, time.now - started


@pytest.mark.parametrize("ready", ["Unknown", "False"])
def test_pods_on_a_node_that_is_not_ready_are_named_and_not_waited_for(ready: str) -> None:
    cluster = installed(good="True", bad=ready)
    report, seconds = removed(cluster)
    assert report.failure is None, str(report.failure)
    assert seconds < 60
    (workload, space) = report.warnings
    assert workload.startswith("DaemonSet n/agent is deleted and waits for pod n/agent-1 on node bad: not ready")
    assert space.startswith("Namespace n is deleted and waits for pod n/agent-1 on node bad: not ready")
    assert "delete its Node object" in workload
    assert [write for write in cluster.writes if write.startswith("delete")] == [
        "delete DaemonSet agent",
        "delete ConfigMap settings",
        "delete Namespace n",
        "delete ConfigMap s",
        "delete Namespace hwaccel-gpu-records",
    ]


def test_short_slices_have_the_same_result() -> None:
    cluster, time = installed(good="True", bad="Unknown"), Time()
    report = call(cluster, state="absent", wait=True, wait_timeout=300, clock=time.clock(0))
    for _slice in range(20):
        if report.pending is not None:
            time.sleep(5)
            report = call(
                cluster, state="absent", wait=True, wait_timeout=300, clock=time.clock(0), resume=report.pending
            )
    assert (report.pending, report.failure, len(report.warnings)) == (None, None, 2)


def test_a_second_run_has_nothing_to_remove() -> None:
    cluster = installed(good="True", bad="Unknown")
    removed(cluster)
    cluster.writes.clear()
    again, _seconds = removed(cluster)
    assert (again.failure, again.changed, cluster.writes) == (None, False, [])


def test_pods_that_do_not_end_on_a_ready_node_are_waited_for_and_named() -> None:
    cluster = installed(good="True", bad="Unknown")
    cluster.objects["pods", "n", "agent-0"]["metadata"]["finalizers"] = ["example.com/held"]
    report, seconds = removed(cluster)
    assert seconds >= 300
    message = str(report.failure)
    assert "DaemonSet n/agent: waiting for pod n/agent-0 on node good, pod n/agent-1 on node bad" in message
    assert "kubectl describe pod" in message
    assert "finalizers" not in message


def test_a_pod_whose_node_was_deleted_is_waited_for() -> None:
    cluster = installed(bad="Unknown")

    def node_deleted(_request: Request) -> None:
        cluster.objects.pop(("pods", "n", "agent-0"), None)
        cluster.objects.pop(("daemonsets", "n", "agent"), None)
        raise NotFound("nodes bad not found")

    cluster.on("get", node_deleted, kind="Node")
    report, _seconds = removed(cluster)
    assert (report.failure, report.warnings) == (None, [])


def pruned(
    cluster: WorkloadCluster, time: Time, resume: dict[str, t.Any] | None = None, slices: float | None = None
) -> Report:
    return call(
        cluster,
        WITHOUT_AGENT,
        wait=True,
        wait_timeout=300,
        max_prune="50%",
        clock=time.clock(slices),
        resume=resume or {},
    )


def test_pruning_waits_for_the_pods_of_a_workload() -> None:
    cluster, time = installed(good="True"), Time()
    cluster.objects["pods", "n", "agent-0"]["metadata"]["finalizers"] = ["example.com/held"]
    first = pruned(cluster, time, slices=0)
    assert first.pending is not None
    assert first.progress == ["1 being deleted, DaemonSet n/agent: waits for foregroundDeletion"]
    second = pruned(cluster, time, first.pending, slices=0)
    assert second.pending is not None
    del cluster.objects["pods", "n", "agent-0"], cluster.objects["daemonsets", "n", "agent"]
    last = pruned(cluster, time, second.pending, slices=0)
    assert (last.pending, last.failure, last.changed, last.warnings) == (None, None, True, [])
    row = next(row for row in last.rows.values() if row.key.name == "agent")
    assert (row.action, row.reason) == ("deleted", "")


def test_pruning_names_the_pods_that_do_not_end() -> None:
    cluster, time = installed(good="True"), Time()
    cluster.objects["pods", "n", "agent-0"]["metadata"]["finalizers"] = ["example.com/held"]
    report = pruned(cluster, time)
    assert "1 object is still being deleted after 300 s" in str(report.failure)
    assert "DaemonSet n/agent: waiting for pod n/agent-0 on node good" in str(report.failure)
    again = pruned(cluster, time)
    assert "waiting for pod n/agent-0" in str(again.failure), "a later run waits as well, as long as the pod exists"
    del cluster.objects["pods", "n", "agent-0"], cluster.objects["daemonsets", "n", "agent"]
    assert pruned(cluster, time).failure is None
    cluster.writes.clear()
    assert (pruned(cluster, time).changed, cluster.writes) == (False, [])


def test_pruning_deletes_settings_after_the_pods_that_read_them() -> None:
    cluster, time = installed(good="True"), Time()
    cluster.objects["pods", "n", "agent-0"]["metadata"]["finalizers"] = ["example.com/held"]
    only = [*WITHOUT_AGENT[:1], config_map("other")]
    options: dict[str, t.Any] = {"wait": True, "wait_timeout": 300, "max_prune": "99%"}
    first = call(cluster, only, clock=time.clock(0), **options)
    assert [write for write in cluster.writes if write.startswith("delete")] == ["delete DaemonSet agent"]
    del cluster.objects["pods", "n", "agent-0"], cluster.objects["daemonsets", "n", "agent"]
    assert first.pending is not None
    last = call(cluster, only, clock=time.clock(0), resume=first.pending, **options)
    assert (last.pending, last.failure) == (None, None)
    assert [write for write in cluster.writes if write.startswith("delete")] == [
        "delete DaemonSet agent",
        "delete ConfigMap settings",
    ]
    assert {row.key.name: row.action for row in last.rows.values()} == {
        "n": "unchanged",
        "other": "created",
        "agent": "deleted",
        "settings": "deleted",
    }


def test_a_slice_that_ends_while_it_waits_keeps_its_rows_and_warnings() -> None:
    cluster, time = installed(good="True", bad="Unknown"), Time()
    report = pruned(cluster, time, slices=0)
    for _slice in range(20):
        if report.pending is not None:
            time.sleep(5)
            report = pruned(cluster, time, report.pending, slices=0)
    assert (report.pending, report.failure, len(report.warnings)) == (None, None, 1)


def test_pruning_does_not_wait_for_a_node_that_is_not_ready() -> None:
    cluster, time = installed(good="True", bad="Unknown"), Time()
    report = pruned(cluster, time)
    assert report.failure is None, str(report.failure)
    assert report.warnings[0].startswith(
        "DaemonSet n/agent is deleted and waits for pod n/agent-1 on node bad: not ready"
    )
