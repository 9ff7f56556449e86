# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes are drained and released. Budgets, evictions, cordons and field managers are those of a real API server; kubelets are simulated.

Runtime: one sandbox, half a minute.
"""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import drain
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.drain import NOBODY, OTHERS, OURS, Settings
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

SPACE, NODE = "drained", "gpu-0"
NODES = Resource("", "v1", "Node", "nodes", False)
PODS = Resource("", "v1", "Pod", "pods", True)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", True)
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", True)
BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True)
TOLERANT = [{"operator": "Exists"}]

Obj = dict[str, t.Any]


def pod(**spec: t.Any) -> Obj:
    """A pod spec that prefers the node, but can run on others."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}
    preferred = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    }
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    return {"containers": [container], "affinity": preferred, "terminationGracePeriodSeconds": 1, **spec}


class DrainCluster:
    """One sandbox with workloads on the node. After each test, `clear` removes its objects and the cordon."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        self.created: list[tuple[Resource, str]] = []
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, NAMESPACES)

    def create(self, resource: Resource, name: str, body: Obj, **metadata: t.Any) -> None:
        meta = {"name": name, "namespace": SPACE, **metadata}
        self.client.create(
            {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}, resource
        )
        self.created.append((resource, name))

    def serve(self, resource: Resource, name: str, replicas: int | None = 1, **spec: t.Any) -> None:
        """Creates a workload, and waits until its pods run on the node."""
        labels = {"app": name}
        body = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod(**spec)}}
        self.create(resource, name, {"spec": body | ({"replicas": replicas} if resource is DEPLOYMENTS else {})})
        until(
            lambda: self._on_node(name, resource is DEPLOYMENTS),
            f"{name} to run on {NODE}",
            seen=lambda: self.pods(name, node=""),
        )

    def _on_node(self, app: str, movable: bool) -> list[str]:
        """The uids of the running pods. Pods on other nodes are deleted: the scheduler may not have observed yet that the preferred node is schedulable."""
        for one in self.pods(app, node="") if movable else []:
            if one["spec"].get("nodeName", NODE) != NODE and not one["metadata"].get("deletionTimestamp"):
                self.client.delete(PODS, one["metadata"]["name"], SPACE)
        return self.running(app)

    def budget(self, name: str) -> None:
        """Creates a budget that requires one pod of the app, and waits until the controller has counted the pods."""
        self.create(BUDGETS, name, {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}})
        until(
            lambda: (self.client.get(BUDGETS, name, SPACE).get("status") or {}).get("currentHealthy") == 1,
            "the status of the budget",
        )

    def pods(self, app: str = "", node: str = NODE) -> list[Obj]:
        return self.client.list(
            PODS,
            SPACE,
            label_selector=f"app={app}" if app else "",
            field_selector=f"spec.nodeName={node}" if node else "",
        ).items

    def running(self, app: str, node: str = NODE) -> list[str]:
        """Uids of pods that run and are not being deleted."""
        return [
            one["metadata"]["uid"]
            for one in self.pods(app, node)
            if one["status"].get("phase") == "Running" and not one["metadata"].get("deletionTimestamp")
        ]

    @property
    def node(self) -> Obj:
        return self.client.get(NODES, NODE)

    @property
    def unschedulable(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))

    def cordon(self, value: bool | None) -> None:
        """Cordons the node as kubectl does, or uncordons it."""
        self.client.patch(NODES, NODE, "", {"spec": {"unschedulable": value}}, field_manager="kubectl-cordon")

    def drain(self, *, check_mode: bool = False, **settings: t.Any) -> Outcome:
        return drain.drain(Settings(NODE, **{"timeout": 240.0} | settings), self.client, Clock(), check_mode=check_mode)

    def release(self, **settings: t.Any) -> Outcome:
        return drain.release(Settings(NODE, **{"timeout": 240.0} | settings), self.client, Clock())

    def clear(self) -> None:
        self.release()
        self.cordon(None)
        for resource, name in self.created:
            self.client.delete(resource, name, SPACE)
        self.created.clear()
        until(lambda: not self.pods(node=""), "all pods to be deleted")


@pytest.fixture(scope="module")
def shared(make_sandbox: t.Any) -> DrainCluster:
    return DrainCluster(make_sandbox())


@pytest.fixture
def cluster(shared: DrainCluster) -> c.Iterator[DrainCluster]:
    yield shared
    shared.clear()


def writes(log: AuditLog) -> list[str]:
    return [str(request) for request in log.our_writes()]


def test_pods_move_those_of_the_machine_stay_and_the_second_run_writes_nothing(cluster: DrainCluster) -> None:
    cluster.serve(DEPLOYMENTS, "web")
    cluster.serve(DAEMON_SETS, "agent", volumes=[{"name": "tmp", "emptyDir": {}}])
    mirror = {"kubernetes.io/config.mirror": "0123"}
    cluster.create(
        PODS,
        "static",
        {"spec": pod(nodeName=NODE, automountServiceAccountToken=False)},
        annotations=mirror,
        labels={"app": "static"},
    )
    ends = [{"name": "main", "image": "busybox:1.37", "command": ["sh", "-c", "exit 0"]}]
    cluster.create(
        PODS, "done", {"spec": pod(nodeName=NODE, restartPolicy="Never", containers=ends)}, labels={"app": "done"}
    )
    until(lambda: cluster.pods("done")[0]["status"].get("phase") == "Succeeded", "a pod to end")
    before = cluster.node["spec"]
    kept = {app: cluster.pods(app)[0]["metadata"]["uid"] for app in ("agent", "static", "done")}

    audit = AuditLog(cluster.sandbox.audit_log)
    planned = cluster.drain(check_mode=True)
    assert (planned.changed, writes(audit)) == (True, [])

    done = cluster.drain()
    assert done.failure is None, str(done.failure)
    assert [name.rpartition("/")[2].split("-")[0] for name in done.values["evicted"]] == ["web"]
    assert planned.values["evicted"] == done.values["evicted"]
    assert cluster.pods("web") == []
    assert {app: cluster.pods(app)[0]["metadata"]["uid"] for app in kept} == kept
    assert {
        one["pod"].partition("/")[2].split("-")[0] for one in done.values["staying"] if one["pod"].startswith(SPACE)
    } == {"agent", "static"}
    assert (done.values["cordoned_by"], cluster.unschedulable) == (OURS, True)

    audit.mark()
    again = cluster.drain()
    assert (again.changed, again.failure, again.values["evicted"], writes(audit)) == (False, None, [], [])

    assert cluster.release().changed
    # The node controller removes its taint a moment after the cordon.
    until(lambda: cluster.node["spec"] == before, "the node to have its previous spec")
    assert names.CORDONED not in (cluster.node["metadata"].get("annotations") or {})
    audit.mark()
    assert (cluster.release().changed, writes(audit)) == (False, [])


def test_a_budget_prevents_the_eviction_until_another_pod_is_ready(cluster: DrainCluster) -> None:
    cluster.serve(DEPLOYMENTS, "train")
    cluster.serve(DEPLOYMENTS, "web")
    cluster.budget("train")
    predicted = cluster.drain(check_mode=True)
    assert (predicted.failure, predicted.changed) == (None, True)
    assert [one["why"] for one in predicted.values["held"]] == [
        "The disruption budget train needs 1 healthy pods and has 1 currently"
    ]

    held = cluster.drain(timeout=3.0)
    (name,) = [one["pod"] for one in held.values["held"]]
    assert f"pod {name} cannot be evicted: The disruption budget train needs 1 healthy pods and has 1 currently" in str(
        held.failure
    )
    assert "gpu-0 is not drained after 3 s, and stays cordoned" in str(held.failure)
    # The other pod is evicted nevertheless, and takes some time to end.
    until(lambda: cluster.pods("web") == [], "the pod without a budget to be deleted")
    assert (len(cluster.running("train")), cluster.unschedulable) == (1, True)

    # The second replica runs on another node, because this one is cordoned.
    cluster.client.patch(DEPLOYMENTS, "train", SPACE, {"spec": {"replicas": 2}})
    done = cluster.drain()
    assert (done.failure, done.values["evicted"], done.values["held"]) == (None, [name], [])
    assert cluster.pods("train") == []
    until(lambda: cluster.running("train", node=""), "a pod on another node")


def test_all_problems_are_reported_before_the_first_write(cluster: DrainCluster) -> None:
    cluster.serve(DEPLOYMENTS, "web")
    cluster.serve(DEPLOYMENTS, "cache", volumes=[{"name": "data", "emptyDir": {}}])
    cluster.serve(DEPLOYMENTS, "twice")
    for budget in ("first", "second"):
        cluster.create(BUDGETS, budget, {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "twice"}}}})
    cluster.create(PODS, "alone", {"spec": pod(nodeName=NODE)})
    audit = AuditLog(cluster.sandbox.audit_log)
    refused = cluster.drain()
    messages = [str(fault) for fault in getattr(refused.failure, "faults", ())]
    assert len(messages) == 3, messages
    assert f"{SPACE}/alone" in messages[0] and "set force" in messages[0]
    assert f"{SPACE}/cache-" in messages[1] and "delete_emptydir_data" in messages[1]
    assert f"{SPACE}/twice-" in messages[2] and "more than one PodDisruptionBudget" in messages[2]
    assert (writes(audit), cluster.unschedulable) == ([], False)

    cluster.client.delete(BUDGETS, "second", SPACE)
    cluster.created.remove((BUDGETS, "second"))
    allowed = cluster.drain(force=True, delete_emptydir_data=True)
    assert (allowed.failure, len(allowed.values["evicted"])) == (None, 4)
    assert cluster.pods() == []
    cluster.created.remove((PODS, "alone"))


def test_a_cordon_of_another_user_remains(cluster: DrainCluster) -> None:
    cluster.serve(DEPLOYMENTS, "web")
    cluster.cordon(True)
    audit = AuditLog(cluster.sandbox.audit_log)
    done = cluster.drain()
    assert (done.failure, done.values["cordoned_by"], len(done.values["evicted"])) == (None, OTHERS, 1)
    assert (cluster.release().changed, cluster.unschedulable) == (False, True)
    assert [line for line in writes(audit) if "/nodes/" in line] == []

    cluster.cordon(None)
    assert cluster.drain().values["cordoned_by"] == OURS
    cluster.cordon(None)
    cluster.cordon(True)
    lifted = cluster.release()
    assert (lifted.changed, lifted.values["cordoned_by"], cluster.unschedulable) == (True, OTHERS, True)
    assert names.CORDONED not in (cluster.node["metadata"].get("annotations") or {})


def test_a_pod_that_tolerates_the_cordon_is_evicted_once(cluster: DrainCluster) -> None:
    """Creation times have a resolution of seconds, so a pod that is recreated within the second of the cordon is evicted a second time."""
    cluster.serve(DEPLOYMENTS, "stubborn", tolerations=TOLERANT, nodeSelector={"kubernetes.io/hostname": NODE})
    done = cluster.drain()
    assert (done.failure, done.values["evicted"] != []) == (None, True)
    until(lambda: cluster.running("stubborn"), "the recreated pod")
    audit = AuditLog(cluster.sandbox.audit_log)
    again = cluster.drain()
    assert (again.failure, again.changed, writes(audit)) == (None, False, [])
    assert [one["why"] for one in again.values["staying"] if "stubborn" in one["pod"]] == [
        "it tolerates the cordon, and was created after it"
    ]


def test_the_reported_rights_are_sufficient(cluster: DrainCluster) -> None:
    cluster.serve(DEPLOYMENTS, "web")
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    ]
    group = "rbac.authorization.k8s.io"
    roles = Resource(group, "v1", "ClusterRole", "clusterroles", False)
    bindings = Resource(group, "v1", "ClusterRoleBinding", "clusterrolebindings", False)
    binding = {
        "roleRef": {"kind": "ClusterRole", "name": "drainer", "apiGroup": group},
        "subjects": [{"kind": "User", "name": "drainer", "apiGroup": group}],
    }
    cluster.client.create(
        {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "drainer"}, **binding},
        bindings,
    )
    drainer = connect({"kubeconfig": cluster.sandbox.kubeconfig, "impersonate_user": "drainer"})
    cluster.client.create(
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "drainer"}, "rules": rules[:2]}, roles
    )
    await_right(drainer, "patch", NODES)
    refused = drain.drain(Settings(NODE), drainer, Clock())
    assert "allow drainer to create pods/eviction in namespace drained" in str(refused.failure)
    assert not cluster.unschedulable
    cluster.client.patch(roles, "drainer", "", {"rules": rules})
    await_right(drainer, "create", PODS, SPACE, subresource="eviction")
    done = drain.drain(Settings(NODE, timeout=240.0), drainer, Clock())
    assert (done.failure, len(done.values["evicted"])) == (None, 1)
    assert drain.release(Settings(NODE), drainer, Clock()).values["cordoned_by"] == NOBODY
    for resource in (bindings, roles):
        cluster.client.delete(resource, "drainer")


def playbook(folder: pathlib.Path, **options: t.Any) -> str:
    """The path of a new playbook that calls the module as users do, for the host of the cluster."""
    defaults = {"group/hwaccel.gpu.cluster": "{{ hwaccel_connection }}"}
    play = {"name": "Drain", "hosts": "gpu_clusters", "gather_facts": False, "module_defaults": defaults}
    path = folder / "drain.yml"
    path.write_text(
        yaml.safe_dump([play | {"tasks": [{"name": "Drain", "hwaccel.gpu.node_drain": {"name": NODE, **options}}]}]),
        encoding="utf-8",
    )
    return str(path)


def test_the_next_run_completes_a_killed_one_and_progress_is_reported(
    cluster: DrainCluster, tmp_path: pathlib.Path
) -> None:
    cluster.serve(DEPLOYMENTS, "train")
    cluster.serve(DEPLOYMENTS, "web")
    cluster.budget("train")
    clusters = {"one": site.cluster(cluster.sandbox.kubeconfig)}
    drained = playbook(tmp_path)
    assert site.killed(drained, clusters, lambda: cluster.unschedulable and not cluster.pods("web"))
    assert (len(cluster.running("train")), cluster.unschedulable) == (1, True)

    run = site.playbook(playbook(tmp_path, timeout=11), clusters)
    assert run.rc == 2
    assert "one: node gpu-0: 1 held (drained/train-" in run.stdout, run.stdout
    assert "is not drained after 11 s" in run.failures[0]

    cluster.client.delete(BUDGETS, "train", SPACE)
    cluster.created.remove((BUDGETS, "train"))
    for state in ("drained", "released"):
        done = site.playbook(playbook(tmp_path, state=state), clusters)
        assert (done.rc, done.changed()) == (0, 1), done.stdout
        assert cluster.pods("train") == [] or state == "released"
    assert not cluster.unschedulable
    audit = AuditLog(cluster.sandbox.audit_log)
    again = site.playbook(playbook(tmp_path, state="released"), clusters)
    assert (again.rc, again.changed(), writes(audit)) == (0, 0, [])


def test_a_wrong_cluster_and_a_missing_node_are_reported(cluster: DrainCluster) -> None:
    uid = cluster.client.get(NAMESPACES, "kube-system")["metadata"]["uid"]
    assert cluster.drain(cluster_uid=uid, check_mode=True).failure is None
    with pytest.raises(ManyFaults, match=f"the uid of kube-system is {uid}, hwaccel_cluster_uid is another"):
        cluster.drain(cluster_uid="another")
    with pytest.raises(HwaccelError, match="there is no node gpu-9"):
        drain.drain(Settings("gpu-9"), cluster.client, Clock())
    outcome = drain.drain(Settings("gpu-9", ignore_not_found=True), cluster.client, Clock())
    assert (outcome.changed, outcome.values["found"], cluster.unschedulable) == (False, False, False)
