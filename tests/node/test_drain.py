# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role node_runtime drains the node of a machine before it restarts Docker there, by ssh and by the API of the machine's cluster.

The machine and its Docker are real, and so are API server, evictions and budgets. The node of the machine is simulated: the tests show what
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
from ansible_collections.hwaccel.gpu.tests.node.rig.login import allow_ssh
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
class DockerNode:
    """A machine with Docker, and the cluster with a simulated node for it."""

    machine: Machine
    environment: dict[str, str]
    cluster: DrainCluster

    def play(self, *arguments: str, clusters: site.Clusters | None = None, **variables: t.Any) -> site.Run:
        """As in our examples, the host of the cluster has the connection of the cluster in a variable, and no connection variables of its own."""
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

    def require_restart(self) -> str:
        """Makes a restart of Docker the only thing that the role has to do: its file is newer than the process. Returns the process."""
        if '"nvidia"' not in self.machine.read(DAEMON):
            self.changed(node_runtime_drain="never")
        self.machine.sh(f"touch {DAEMON}")
        return self.started()


@pytest.fixture(scope="module")
def docker_node(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[DockerNode]:
    machine = rig.machine("drained")
    # Docker checks this program when a container requests the runtime.
    machine.write("/usr/bin/nvidia-container-runtime", '#!/bin/sh\nexec runc "$@"\n', "0755")
    machine.write(DAEMON, "{}")
    machine.sh("systemctl start docker")
    with contextlib.closing(Sandboxes(find_programs())) as sandboxes:
        yield DockerNode(machine, allow_ssh(machine, tmp_path_factory.mktemp("login")), DrainCluster(sandboxes.make()))


@pytest.fixture(autouse=True)
def cleared(docker_node: DockerNode) -> c.Iterator[None]:
    yield
    docker_node.cluster.clear()


def test_pods_are_evicted_before_the_restart_of_docker_and_a_budget_prevents_it(docker_node: DockerNode) -> None:
    cluster = docker_node.cluster
    cluster.serve(DEPLOYMENTS, "train")
    cluster.serve(DEPLOYMENTS, "web")
    cluster.budget("train")
    docker_node.machine.write(DAEMON, "{}")
    running = docker_node.started()
    audit = AuditLog(cluster.sandbox.audit_log)
    predicted = docker_node.play("--check")
    assert (predicted.rc, [str(request) for request in audit.our_writes()]) == (0, []), predicted.stdout
    assert "node gpu-0 would be cordoned, would evict" in predicted.stdout
    assert predicted.results("node_drain")[0]["held"] != []

    held = docker_node.play(node_runtime_drain_timeout=5)
    assert held.rc == 2
    assert "node gpu-0 is not drained after 5 s, and stays cordoned" in held.failures[-1]
    assert "The disruption budget train needs 1 healthy pods" in held.failures[-1]
    assert '"nvidia"' in docker_node.machine.read(DAEMON), "the file is written, and the next run loads it"
    assert (docker_node.started(), cluster.unschedulable, len(cluster.running("train"))) == (running, True, 1)

    cluster.client.delete(BUDGETS, "train", SPACE)
    cluster.created.remove((BUDGETS, "train"))
    done = docker_node.play()
    assert done.rc == 0, done.stdout
    drained, released = done.results("node_drain")
    assert [name.rpartition("/")[2].split("-")[0] for name in drained["evicted"]] == ["train"]
    assert (docker_node.started() != running, cluster.unschedulable, released["cordoned_by"]) == (True, False, "")
    order = [task["action"].rpartition(".")[2] for task in done.tasks if task["result"].get("changed")]
    assert order[-3:] == ["node_drain", "systemd", "node_drain"]

    audit.mark()
    assert docker_node.changed() == 0
    assert [str(request) for request in audit.our_writes()] == []


@pytest.mark.slow
def test_the_next_run_completes_one_that_ended_between_restart_and_release(docker_node: DockerNode) -> None:
    docker_node.require_restart()
    docker_node.machine.sh("systemctl restart docker")
    docker_node.cluster.drain()
    assert docker_node.cluster.unschedulable
    assert docker_node.changed() == 1
    assert (
        docker_node.cluster.unschedulable,
        names.CORDONED in docker_node.cluster.node["metadata"]["annotations"],
    ) == (
        False,
        False,
    )


@pytest.mark.slow
def test_containers_that_survive_the_restart_are_not_drained(docker_node: DockerNode) -> None:
    docker_node.machine.write(DAEMON, '{"live-restore": true}')
    docker_node.require_restart()
    assert docker_node.machine.sh("docker info --format '{{.LiveRestoreEnabled}}'").strip() == "true"
    docker_node.cluster.serve(DEPLOYMENTS, "web")
    running, pods = docker_node.started(), docker_node.cluster.running("web")
    assert docker_node.changed() == 1
    assert (docker_node.started() != running, docker_node.cluster.running("web")) == (True, pods)
    running = docker_node.require_restart()
    assert docker_node.changed(node_runtime_drain="always") == 3
    assert (docker_node.started() != running, docker_node.cluster.pods("web"), docker_node.cluster.unschedulable) == (
        True,
        [],
        False,
    )
    docker_node.machine.write(DAEMON, "{}")
    docker_node.machine.sh("systemctl restart docker")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"node_runtime_node": "gpu-9"}, "the cluster has no node gpu-9: there is nothing to drain"),
        (
            {"clusters": {}},
            "gpu-0 is not drained, though a restart of docker ends its containers: the machine belongs to no cluster",
        ),
    ],
)
def test_docker_is_restarted_without_a_drain_on_a_machine_that_is_no_node(
    docker_node: DockerNode, variables: dict[str, t.Any], message: str
) -> None:
    running = docker_node.require_restart()
    run = docker_node.play(**variables)
    assert (run.rc, run.changed()) == (0, 1), run.stdout
    assert message in " ".join(run.stdout.split())
    assert docker_node.started() != running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("one", "has no hwaccel_connection, and the inventory has several clusters"),
        ("two", "this is not the cluster in the inventory"),
        ("three", "is not a host of the inventory"),
    ],
)
def test_nothing_is_restarted_when_the_cluster_is_ambiguous(
    docker_node: DockerNode, cluster: str, message: str
) -> None:
    running = docker_node.require_restart()
    two = {
        "hwaccel_connection": {"kubeconfig": docker_node.cluster.sandbox.kubeconfig},
        "hwaccel_cluster_uid": "another",
    }
    run = docker_node.play(clusters={"one": {}, "two": two}, hwaccel_cluster=cluster)
    assert (run.rc, docker_node.started()) == (2, running)
    assert message in run.failures[-1]


@pytest.mark.slow
def test_teardown_also_drains(docker_node: DockerNode) -> None:
    running = docker_node.require_restart()
    docker_node.cluster.serve(DEPLOYMENTS, "web")
    run = docker_node.play("-e", "node_runtime_entry=teardown")
    assert run.rc == 0, run.stdout
    assert len(run.results("node_drain")[0]["evicted"]) == 1
    assert (docker_node.started() != running, docker_node.cluster.pods("web"), docker_node.cluster.unschedulable) == (
        True,
        [],
        False,
    )
    assert "nvidia" not in docker_node.machine.read(DAEMON)
