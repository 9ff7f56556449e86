# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that compute, through a real scheduler, Job controller and garbage collector: proofs, busy and broken nodes, wrong declarations, killed runs.

Runtime: one run of site, ten of validate.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names, resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import DRIVER, reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet, validation
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import AGENTS, GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

MODES = {"ecc": True}
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {"name": "gpu", "count": 3, "labels": {"pool": "gpu"}, "kernel": "6.8.0-134-generic", "gpu": GPU | MODES},
        {"name": "cpu", "count": 1},
    ],
}
POOLS = [{"name": "training", "selector": "pool=gpu", "gpu": GPU | MODES | {"mig": False}}]
NODES = ["gpu-0", "gpu-1", "gpu-2"]
TAKEN = "gpu-1"
BROKEN = "gpu-2"


class Cluster:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})

    def run(self, name: str, *arguments: str, **variables: t.Any) -> site.Run:
        hosts = {"one": site.cluster(self.sandbox.kubeconfig, hwaccel_pools=POOLS, **variables)}
        return site.playbook(name, hosts, *arguments)

    def validate(self, *arguments: str, **variables: t.Any) -> tuple[site.Run, dict[str, t.Any]]:
        run = self.run("validate", *arguments, **{"gpu_validation_schedule_timeout": 240} | variables)
        (result,) = run.results("node_validate")
        return run, result

    def proofs(self) -> dict[str, dict[str, t.Any]]:
        nodes = self.client.list(self.client.resource("v1", "Node"), metadata_only=True).items
        found = {
            node["metadata"]["name"]: (node["metadata"].get("annotations") or {}).get(names.PROOF) for node in nodes
        }
        return {name: json.loads(text) for name, text in found.items() if text}

    @contextlib.contextmanager
    def busy(self, node: str) -> t.Iterator[None]:
        """Somebody's pod has all its GPUs."""
        pods = self.client.resource("v1", "Pod")
        container = {
            "name": "job",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"limits": {"nvidia.com/gpu": 8}},
        }
        spec = {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}],
        }
        self.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "default"}, "spec": spec}, pods
        )
        until(lambda: self.client.get(pods, "job", "default")["status"].get("phase") == "Running", "the job to run")
        try:
            yield
        finally:
            self.client.delete(pods, "job", "default")
            until(
                lambda: not self.client.list(pods, "default", field_selector="metadata.name=job").items,
                "the job to give its GPUs back",
            )

    def gpus(self, node: str) -> int:
        return resources.total(
            schedulable.observed(reduce_node(self.client.get(self.client.resource("v1", "Node"), node)))
        )

    def crashes(self, node: str) -> int:
        """Of the containers that load its driver."""
        pods = map(reduce_pod, self.client.list(self.client.resource("v1", "Pod"), AGENTS).items)
        return sum(one.restarts for pod in pods if (pod.node, pod.role) == (node, DRIVER) for one in pod.containers)

    def jobs(self, label: str = RUN_LABEL) -> list[str]:
        kinds = (("batch/v1", "Job"), ("v1", "Pod"))
        found = [
            item
            for kind in kinds
            for item in self.client.list(self.client.resource(*kind), label_selector=label, metadata_only=True).items
        ]
        return [item["metadata"]["name"] for item in found]


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    found = Cluster(make_sandbox(FLEET))
    run = found.run("site", hwaccel_wait_timeout=240)
    assert run.rc == 0, run.stdout[-6000:]
    return found


def test_check_mode_tells_who_would_run_and_makes_nothing(cluster: Cluster) -> None:
    audit, before = AuditLog(cluster.sandbox.audit_log), cluster.proofs()
    run, result = cluster.validate("--check")
    assert run.rc == 0, run.stdout[-4000:]
    assert result["validated"] == NODES
    assert [str(request) for request in audit.our_writes()] == []
    assert cluster.proofs() == before


def test_every_node_computes_and_is_proven(cluster: Cluster) -> None:
    run, result = cluster.validate()
    assert run.rc == 0, run.stdout[-6000:]
    assert result["nodes"] == {"passed": 3, "unproven": 0, "failed": 0}
    proofs = cluster.proofs()
    assert sorted(proofs) == NODES
    assert {proof["gpu"] for proof in proofs.values()} == {"NVIDIA H100 80GB HBM3"}
    assert cluster.jobs() == []
    assert "one: validation: 3 of 3 passed" in run.stdout
    (line,) = [line for line in run.stdout.splitlines() if "training" in line and "simulated" in line]
    assert line.split()[:2] == ["training", "3"] and "validation" in line and "3 proven" in line


def test_valid_proofs_need_no_pod(cluster: Cluster) -> None:
    audit, before = AuditLog(cluster.sandbox.audit_log), cluster.proofs()
    run, result = cluster.validate(gpu_validation_always=False)
    assert run.rc == 0 and run.changed() == 0, run.stdout[-4000:]
    assert result["validated"] == []
    assert [str(request) for request in audit.our_writes()] == []
    assert cluster.proofs() == before


def test_a_node_whose_gpus_are_taken_keeps_its_proof(cluster: Cluster) -> None:
    before = cluster.proofs()
    with cluster.busy(TAKEN):
        run, result = cluster.validate(gpu_validation_schedule_timeout=20)
    assert run.rc == 0, run.stdout[-6000:]
    assert result["nodes"] == {"passed": 2, "unproven": 1, "failed": 0}
    (row,) = result["faults"]
    assert row["node"] == TAKEN and row["reason"].startswith(f"busy, last proof of {before[TAKEN]['at']}")
    assert "Insufficient nvidia.com/gpu" in row["reason"]
    assert cluster.proofs()[TAKEN] == before[TAKEN]
    assert cluster.jobs() == []


def test_answers_of_a_survey_arrive_as_texts_and_empty(cluster: Cluster) -> None:
    answers = json.dumps(
        {"gpu_validation_max_failed": "", "gpu_validation_always": "false", "hwaccel_excluded_nodes": "gpu-0\ngpu-2"}
    )
    run = cluster.run("validate", "-e", answers)
    (result,) = run.results("node_validate")
    assert run.rc == 0, run.stdout[-4000:]
    assert result["nodes"] == {"passed": 1, "unproven": 0, "failed": 0}


def test_another_gpu_than_declared_fails_the_run_and_takes_the_proof(cluster: Cluster) -> None:
    wrong = [POOLS[0] | {"gpu": GPU | {"product": "NVIDIA-A100-SXM4-80GB", "ecc": False}}]
    hosts = {"one": site.cluster(cluster.sandbox.kubeconfig, hwaccel_pools=wrong)}
    run = site.playbook("validate", hosts)
    assert run.rc == 2
    assert "the pod sees a NVIDIA H100 80GB HBM3, NVIDIA-A100-SXM4-80GB is expected" in run.failures[0]
    assert "ECC mode is Enabled, Disabled is expected" in run.failures[0] and "nvidia-smi -e 0" in run.failures[0]
    assert "validation 0/3" in run.stdout, "the table is shown all the same"
    assert cluster.proofs() == {} and cluster.jobs() == []


def test_what_a_killed_run_has_proven_is_kept(cluster: Cluster) -> None:
    """It waits for a free GPU of the second node when it is killed."""
    hosts = {"one": site.cluster(cluster.sandbox.kubeconfig, hwaccel_pools=POOLS, gpu_validation_parallel=1)}
    validation.forget(cluster.client)
    with cluster.busy(TAKEN):
        assert site.killed("validate", hosts, lambda: bool(cluster.proofs()))
    kept = cluster.proofs()
    assert sorted(kept) == NODES[:1]
    run, result = cluster.validate(gpu_validation_always=False)
    assert run.rc == 0, run.stdout[-6000:]
    assert result["validated"] == NODES[1:]
    assert cluster.proofs() | kept == cluster.proofs() and sorted(cluster.proofs()) == NODES
    jobs = cluster.client.resource("batch/v1", "Job")
    for job in cluster.client.list(jobs, AGENTS, label_selector=RUN_LABEL, metadata_only=True).items:
        cluster.client.delete(jobs, job["metadata"]["name"], AGENTS)
    until(lambda: cluster.jobs() == [], "the Jobs of the killed run to leave")


def test_a_node_whose_driver_is_broken_is_told_with_that_link(cluster: Cluster) -> None:
    cluster.sandbox.add_fault("driver_load_failure", node=BROKEN)
    cluster.sandbox.reboot(BROKEN)
    until(lambda: cluster.gpus(BROKEN) == 0 and cluster.crashes(BROKEN) > 0, "the driver to crash on the node")
    run, result = cluster.validate()
    assert run.rc == 2
    assert (result["failed_nodes"], result["validated"]) == ([BROKEN], [name for name in NODES if name != BROKEN])
    (row,) = result["faults"]
    assert (row["pool"], row["link"]) == ("training", "driver"), row
    assert (
        "nvidia-driver-ctr" in row["reason"]
        and "RmInitAdapter failed" in row["log_tail"]
        and row["next_step"].startswith("the GPU does not respond")
    ), row
    assert f"{BROKEN} (pool training) failed at gate validation, driver: " in run.stdout
    cluster.sandbox.clear_faults()
    cluster.sandbox.reboot(BROKEN)
    until(lambda: cluster.gpus(BROKEN) == 8, "the node to offer its GPUs again")


def test_what_a_killed_run_has_made_the_cluster_takes_away(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    """All its processes, as a machine that loses power would end them."""
    container = {"name": "main", "image": "busybox:1.37", "command": ["sh", "-c", "sleep 3000"]}
    template = {
        "metadata": {"labels": {"app": "killed"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec = {"activeDeadlineSeconds": 20, "ttlSecondsAfterFinished": 1, "template": template}
    workload = {
        "name": "endless",
        "definition": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "endless", "namespace": AGENTS},
            "spec": spec,
        },
    }
    given = json.dumps({"kubeconfig": cluster.sandbox.kubeconfig, "workloads": [workload]})
    mark = {"HWACCEL_RECORD": str(tmp_path)}
    environment = (
        os.environ
        | mark
        | {"ANSIBLE_COLLECTIONS_PATH": str(site.COLLECTIONS), "ANSIBLE_PYTHON_INTERPRETER": sys.executable}
    )
    command = [
        sys.executable,
        "-m",
        "ansible",
        "adhoc",
        "localhost",
        "-i",
        "localhost,",
        "-c",
        "local",
        "-m",
        "hwaccel.gpu.workload_run",
        "-a",
        given,
    ]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: len(cluster.jobs("app=killed")) > 0, "the pod of the workload")
    finally:
        site.end(tmp_path)
        process.wait()
    assert cluster.jobs()
    until(lambda: cluster.jobs() == [], "the cluster to take away what the killed run has made")


#: By this kind a cluster is known for OpenShift.
CLUSTER_VERSION: dict[str, t.Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterversions.config.openshift.io"},
    "spec": {
        "group": "config.openshift.io",
        "scope": "Cluster",
        "names": {"plural": "clusterversions", "singular": "clusterversion", "kind": "ClusterVersion"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
#: As its admission does: no pod with a user of its own choice under an account that is bound to nothing.
_OWN_USER = "object.spec.?securityContext.?runAsUser.orValue(0) == 65534"
_MAY_USE = """authorizer.serviceAccount(object.metadata.namespace, object.spec.?serviceAccountName.orValue("default")).group("security.openshift.io")
.resource("securitycontextconstraints").namespace(object.metadata.namespace).name(name).check("use").allowed()"""
_BOUND = f'{_OWN_USER} ? ["nonroot-v2", "privileged"].exists(name, {_MAY_USE}) : true'
ADMISSION: list[dict[str, t.Any]] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "constraints"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [
                {"expression": _BOUND, "message": "unable to validate against any security context constraint"}
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "constraints"},
        "spec": {
            "policyName": "constraints",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": AGENTS}}},
        },
    },
]


def refused(client: Client) -> bool:
    spec = {
        "securityContext": {"runAsUser": 65534},
        "containers": [{"name": "main", "image": "busybox:1.37"}],
        "nodeName": "none",
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own-user", "namespace": AGENTS}, "spec": spec}
    try:
        client.create(pod, client.resource("v1", "Pod"))
    except ApiError as error:
        return "security context constraint" in str(error)
    client.delete(client.resource("v1", "Pod"), "own-user", AGENTS)
    return False


def accounts(cluster: Cluster) -> set[str]:
    found = cluster.client.list(cluster.client.resource("v1", "ServiceAccount"), AGENTS, metadata_only=True).items
    return {item["metadata"]["name"] for item in found}


def test_on_openshift_pods_run_under_an_account_that_is_bound(cluster: Cluster) -> None:
    assert "gpu-validation" not in accounts(cluster), "elsewhere nobody needs it"
    for manifest in (CLUSTER_VERSION, *ADMISSION):
        cluster.client.create(manifest, cluster.client.resource(manifest["apiVersion"], manifest["kind"]))
    until(lambda: refused(cluster.client), "pods to be refused as OpenShift refuses them")
    until(
        lambda: fleet.platform(connect({"kubeconfig": cluster.sandbox.kubeconfig}))["distribution"] == "openshift",
        "the kind to be served",
    )
    run, result = cluster.validate()
    assert run.rc == 0, run.stdout[-6000:]
    assert result["nodes"] == {"passed": 3, "unproven": 0, "failed": 0}
    run, result = cluster.validate(gpu_validation_always=False)
    assert run.rc == 0 and run.changed() == 0, run.stdout[-4000:]
    assert "gpu-validation" in accounts(cluster)


def test_teardown_takes_the_proofs_and_the_account(cluster: Cluster) -> None:
    assert cluster.proofs()
    run = cluster.run("teardown")
    assert run.rc == 0, run.stdout[-4000:]
    assert cluster.proofs() == {}
    assert "gpu-validation" not in accounts(cluster)
