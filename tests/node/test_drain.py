# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime drains the node of a machine before it restarts Docker there, by ssh and by the API of the machine's cluster.

The machine and its Docker are real, and so are API server, evictions and budgets. The node of the machine's name is simulated: what is shown is what
the role does to both and in which order, not that pods of the node are Docker's containers.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandboxes, find_programs
from ansible_collections.hwaccel.gpu.tests.live.test_drain import BUDGETS, DEPLOYMENTS, NODE, SPACE, DrainCluster
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig
from ansible_collections.hwaccel.gpu.tests.node.rig.login import let_in
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import PYTHON, Machine

DAEMON = "/etc/docker/daemon.json"
VARIABLES = {
    "ansible_user": "root",
    "ansible_python_interpreter": PYTHON,
    "node_runtime_node": NODE,
    "node_runtime_engines": ["docker"],
    "node_runtime_without_gpu": True,
    "node_runtime_cdi": False,
    "node_runtime_min_disk_gib": 0.1,
    "node_runtime_skipped_checks": ["clock"],
}


@dataclasses.dataclass
class Place:
    """A machine with Docker, and the cluster whose node it is said to be."""

    machine: Machine
    environment: dict[str, str]
    cluster: DrainCluster

    def play(self, *arguments: str, clusters: site.Clusters | None = None, **variables: t.Any) -> site.Run:
        """The host of the cluster says how the cluster is reached, by a variable of its own, and nothing of how itself is, as in our examples."""
        one = {
            "hwaccel_connection": {"kubeconfig": "{{ kept_in }}/kubeconfig"},
            "kept_in": str(self.cluster.sandbox.state_dir),
        }
        known = {"one": one} if clusters is None else clusters
        machines = {"workers": {self.machine.name: {"ansible_host": self.machine.address, **VARIABLES, **variables}}}
        return site.playbook("node_runtime", known, *arguments, machines=machines, environment=self.environment)

    def changed(self, *arguments: str, **variables: t.Any) -> int:
        run = self.play(*arguments, **variables)
        assert run.rc == 0, run.stdout
        return run.changed()

    def started(self) -> str:
        return self.machine.sh("systemctl show docker -p MainPID")

    def make_due(self) -> str:
        """The role has nothing to do but to restart Docker, whose file is newer than itself. Returns which process it is."""
        if '"nvidia"' not in self.machine.read(DAEMON):
            self.changed(node_runtime_drain="never")
        self.machine.sh(f"touch {DAEMON}")
        return self.started()


@pytest.fixture(scope="module")
def place(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Place]:
    machine = rig.machine("drained")
    # Docker looks at it when it is asked to run something with it.
    machine.write("/usr/bin/nvidia-container-runtime", '#!/bin/sh\nexec runc "$@"\n', "0755")
    machine.write(DAEMON, "{}")
    machine.sh("systemctl start docker")
    with contextlib.closing(Sandboxes(find_programs())) as sandboxes:
        yield Place(machine, let_in(machine, tmp_path_factory.mktemp("login")), DrainCluster(sandboxes.make()))


@pytest.fixture(autouse=True)
def cleared(place: Place) -> c.Iterator[None]:
    yield
    place.cluster.clear()


def test_pods_leave_before_docker_is_restarted_and_a_budget_keeps_it_from_that(place: Place) -> None:
    cluster = place.cluster
    cluster.serve(DEPLOYMENTS, "train")
    cluster.serve(DEPLOYMENTS, "web")
    cluster.budget("train")
    place.machine.write(DAEMON, "{}")
    running = place.started()
    audit = AuditLog(cluster.sandbox.audit_log)
    foreseen = place.play("--check")
    assert (foreseen.rc, [str(request) for request in audit.our_writes()]) == (0, []), foreseen.stdout
    assert "node gpu-0 would be cordoned, would evict" in foreseen.stdout
    assert foreseen.results("node_drain")[0]["held"] != []

    held = place.play(node_runtime_drain_timeout=5)
    assert held.rc == 2
    assert "node gpu-0 is not drained after 5 s, and stays cordoned" in held.failures[-1]
    assert "The disruption budget train needs 1 healthy pods" in held.failures[-1]
    assert '"nvidia"' in place.machine.read(DAEMON), "it is written, and the next run loads it"
    assert (place.started(), cluster.unschedulable, len(cluster.running("train"))) == (running, True, 1)

    cluster.client.delete(BUDGETS, "train", SPACE)
    cluster.created.remove((BUDGETS, "train"))
    done = place.play()
    assert done.rc == 0, done.stdout
    drained, released = done.results("node_drain")
    assert [name.rpartition("/")[2].split("-")[0] for name in drained["evicted"]] == ["train"]
    assert (place.started() != running, cluster.unschedulable, released["cordoned_by"]) == (True, False, "")
    order = [task["action"].rpartition(".")[2] for task in done.tasks if task["result"].get("changed")]
    assert order[-3:] == ["node_drain", "systemd", "node_drain"]

    audit.mark()
    assert place.changed() == 0
    assert [str(request) for request in audit.our_writes()] == []


@pytest.mark.slow
def test_a_run_that_ended_between_restart_and_release_is_finished_by_the_next(place: Place) -> None:
    place.make_due()
    place.machine.sh("systemctl restart docker")
    place.cluster.drain()
    assert place.cluster.unschedulable
    assert place.changed() == 1
    assert (place.cluster.unschedulable, names.CORDONED in place.cluster.node["metadata"]["annotations"]) == (
        False,
        False,
    )


@pytest.mark.slow
def test_containers_that_outlive_the_restart_stay(place: Place) -> None:
    place.machine.write(DAEMON, '{"live-restore": true}')
    place.make_due()
    assert place.machine.sh("docker info --format '{{.LiveRestoreEnabled}}'").strip() == "true"
    place.cluster.serve(DEPLOYMENTS, "web")
    running, pods = place.started(), place.cluster.running("web")
    assert place.changed() == 1
    assert (place.started() != running, place.cluster.running("web")) == (True, pods)
    running = place.make_due()
    assert place.changed(node_runtime_drain="always") == 3
    assert (place.started() != running, place.cluster.pods("web"), place.cluster.unschedulable) == (True, [], False)
    place.machine.write(DAEMON, "{}")
    place.machine.sh("systemctl restart docker")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"node_runtime_node": "gpu-9"}, "the cluster has no node gpu-9: there is nothing to drain"),
        (
            {"clusters": {}},
            "gpu-0 is not drained, though a restart of docker ends its containers: the machine belongs to no cluster",
        ),
    ],
)
def test_a_machine_that_is_no_node_yet_is_restarted_at_once(
    place: Place, variables: dict[str, t.Any], told: str
) -> None:
    running = place.make_due()
    run = place.play(**variables)
    assert (run.rc, run.changed()) == (0, 1), run.stdout
    assert told in " ".join(run.stdout.split())
    assert place.started() != running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ("one", "has no hwaccel_connection, and the inventory has several clusters"),
        ("two", "this is not the cluster in the inventory"),
        ("three", "is not a host of the inventory"),
    ],
)
def test_where_another_cluster_could_be_meant_nothing_is_restarted(place: Place, cluster: str, told: str) -> None:
    running = place.make_due()
    two = {"hwaccel_connection": {"kubeconfig": place.cluster.sandbox.kubeconfig}, "hwaccel_cluster_uid": "another"}
    run = place.play(clusters={"one": {}, "two": two}, hwaccel_cluster=cluster)
    assert (run.rc, place.started()) == (2, running)
    assert told in run.failures[-1]


@pytest.mark.slow
def test_teardown_drains_as_well(place: Place) -> None:
    running = place.make_due()
    place.cluster.serve(DEPLOYMENTS, "web")
    run = place.play("-e", "node_runtime_entry=teardown")
    assert run.rc == 0, run.stdout
    assert len(run.results("node_drain")[0]["evicted"]) == 1
    assert (place.started() != running, place.cluster.pods("web"), place.cluster.unschedulable) == (True, [], False)
    assert "nvidia" not in place.machine.read(DAEMON)
