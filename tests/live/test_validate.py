# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation pods with a real scheduler, Job controller and garbage collector: proofs, busy and failed nodes, wrong declarations, killed runs.

Runtime: one run of site, ten of validate.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import names
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import DRIVER, reduce_pod
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet, validation
from ansible_collections.hwaccel.gpu.tests.live.support import adhoc, site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import AGENTS, GPU, Cluster, until

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
BUSY = "gpu-1"
FAULTY = "gpu-2"


class Validated(Cluster):
    """A cluster whose nodes keep proofs of their validation."""

    def validate(self, *arguments: str, **variables: t.Any) -> tuple[site.Run, dict[str, t.Any]]:
        run = self.run("validate", *arguments, **{"gpu_validation_schedule_timeout": 240} | variables)
        (result,) = run.results("node_validate")
        return run, result

    def proofs(self) -> dict[str, dict[str, t.Any]]:
        """By node."""
        texts = {
            name: (node["metadata"].get("annotations") or {}).get(names.PROOF) for name, node in self.nodes().items()
        }
        return {name: json.loads(text) for name, text in texts.items() if text}

    def crashes(self, node: str) -> int:
        """Restarts of the containers that load the driver of a node."""
        pods = map(reduce_pod, self.pods().items)
        return sum(one.restarts for pod in pods if (pod.node, pod.role) == (node, DRIVER) for one in pod.containers)

    def accounts(self) -> set[str]:
        items = self.client.list(self.client.resource("v1", "ServiceAccount"), AGENTS, metadata_only=True).items
        return {item["metadata"]["name"] for item in items}


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Validated:
    cluster = Validated(make_sandbox(FLEET), hwaccel_pools=POOLS)
    cluster.deploy(hwaccel_wait_timeout=240)
    return cluster


def test_check_mode_reports_the_nodes_and_creates_nothing(cluster: Validated) -> None:
    audit, before = AuditLog(cluster.sandbox.audit_log), cluster.proofs()
    run, result = cluster.validate("--check")
    assert run.rc == 0, run.stdout[-4000:]
    assert result["validated"] == NODES
    assert [str(request) for request in audit.our_writes()] == []
    assert cluster.proofs() == before


def test_every_node_computes_and_gets_a_proof(cluster: Validated) -> None:
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


def test_valid_proofs_need_no_pod(cluster: Validated) -> None:
    audit, before = AuditLog(cluster.sandbox.audit_log), cluster.proofs()
    run, result = cluster.validate(gpu_validation_always=False)
    assert run.rc == 0 and run.changed() == 0, run.stdout[-4000:]
    assert result["validated"] == []
    assert [str(request) for request in audit.our_writes()] == []
    assert cluster.proofs() == before


def test_a_node_whose_gpus_are_in_use_keeps_its_proof(cluster: Validated) -> None:
    before = cluster.proofs()
    with cluster.user_pod(BUSY, gpus=8):
        run, result = cluster.validate(gpu_validation_schedule_timeout=20)
    assert run.rc == 0, run.stdout[-6000:]
    assert result["nodes"] == {"passed": 2, "unproven": 1, "failed": 0}
    (row,) = result["faults"]
    assert row["node"] == BUSY and row["reason"].startswith(f"busy, last proof of {before[BUSY]['at']}")
    assert "Insufficient nvidia.com/gpu" in row["reason"]
    assert cluster.proofs()[BUSY] == before[BUSY]
    assert cluster.jobs() == []


def test_answers_of_a_survey_may_be_texts_and_empty(cluster: Validated) -> None:
    answers = json.dumps(
        {"gpu_validation_max_failed": "", "gpu_validation_always": "false", "hwaccel_excluded_nodes": "gpu-0\ngpu-2"}
    )
    run = cluster.run("validate", "-e", answers)
    (result,) = run.results("node_validate")
    assert run.rc == 0, run.stdout[-4000:]
    assert result["nodes"] == {"passed": 1, "unproven": 0, "failed": 0}


def test_another_gpu_than_declared_fails_the_run_and_deletes_the_proof(cluster: Validated) -> None:
    wrong = [POOLS[0] | {"gpu": GPU | {"product": "NVIDIA-A100-SXM4-80GB", "ecc": False}}]
    run = cluster.run("validate", hwaccel_pools=wrong)
    assert run.rc == 2
    assert "the pod sees a NVIDIA H100 80GB HBM3, NVIDIA-A100-SXM4-80GB is expected" in run.failures[0]
    assert "ECC mode is Enabled, Disabled is expected" in run.failures[0] and "nvidia-smi -e 0" in run.failures[0]
    assert "validation 0/3" in run.stdout, "the table is shown nevertheless"
    assert cluster.proofs() == {} and cluster.jobs() == []


def test_proofs_of_a_killed_run_are_kept(cluster: Validated) -> None:
    """The run is killed while it waits for a free GPU of the second node."""
    validation.forget(cluster.client)
    with cluster.user_pod(BUSY, gpus=8):
        assert site.killed("validate", cluster.hosts(gpu_validation_parallel=1), lambda: bool(cluster.proofs()))
    kept = cluster.proofs()
    assert sorted(kept) == NODES[:1]
    run, result = cluster.validate(gpu_validation_always=False)
    assert run.rc == 0, run.stdout[-6000:]
    assert result["validated"] == NODES[1:]
    assert cluster.proofs() | kept == cluster.proofs() and sorted(cluster.proofs()) == NODES
    jobs = cluster.client.resource("batch/v1", "Job")
    for job in cluster.client.list(jobs, AGENTS, label_selector=RUN_LABEL, metadata_only=True).items:
        cluster.client.delete(jobs, job["metadata"]["name"], AGENTS)
    until(lambda: cluster.jobs() == [], "the Jobs of the killed run to be deleted")


def test_a_node_whose_driver_failed_is_reported_with_that_link(cluster: Validated) -> None:
    cluster.sandbox.add_fault("driver_load_failure", node=FAULTY)
    cluster.sandbox.reboot(FAULTY)
    until(lambda: cluster.gpus(FAULTY) == 0 and cluster.crashes(FAULTY) > 0, "the driver to crash on the node")
    run, result = cluster.validate()
    assert run.rc == 2
    assert (result["failed_nodes"], result["validated"]) == ([FAULTY], [name for name in NODES if name != FAULTY])
    (row,) = result["faults"]
    assert (row["pool"], row["link"]) == ("training", "driver"), row
    assert (
        "nvidia-driver-ctr" in row["reason"]
        and "RmInitAdapter failed" in row["log_tail"]
        and row["next_step"].startswith("the GPU does not respond")
    ), row
    assert f"{FAULTY} (pool training) failed at gate validation, driver: " in run.stdout
    cluster.sandbox.clear_faults()
    cluster.sandbox.reboot(FAULTY)
    until(lambda: cluster.gpus(FAULTY) == 8, "the node to offer its GPUs again")


def test_the_cluster_deletes_the_workload_of_a_killed_run(cluster: Validated, tmp_path: pathlib.Path) -> None:
    """All processes of the run are killed at once, as if its machine had lost power."""
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
    environment = (
        os.environ
        | {"HWACCEL_RECORD": str(tmp_path)}
        | {"ANSIBLE_COLLECTIONS_PATH": str(site.COLLECTIONS), "ANSIBLE_PYTHON_INTERPRETER": sys.executable}
    )
    command = adhoc.command("workload_run", {"kubeconfig": cluster.sandbox.kubeconfig, "workloads": [workload]})
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: len(cluster.jobs("app=killed")) > 0, "the pod of the workload")
    finally:
        site.end(tmp_path)
        process.wait()
    assert cluster.jobs()
    until(lambda: cluster.jobs() == [], "the cluster to delete the workload of the killed run")


#: This kind identifies a cluster as OpenShift.
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
#: As OpenShift's admission, this policy refuses pods that choose their user if no security context constraint is bound to their ServiceAccount.
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


def test_on_openshift_pods_use_a_bound_service_account(cluster: Validated) -> None:
    assert "gpu-validation" not in cluster.accounts(), "only OpenShift needs it"
    for manifest in (CLUSTER_VERSION, *ADMISSION):
        cluster.client.create(manifest, cluster.client.resource(manifest["apiVersion"], manifest["kind"]))
    until(lambda: refused(cluster.client), "the admission policy to be effective")
    until(
        lambda: fleet.platform(connect({"kubeconfig": cluster.sandbox.kubeconfig}))["distribution"] == "openshift",
        "the kind to be served",
    )
    run, result = cluster.validate()
    assert run.rc == 0, run.stdout[-6000:]
    assert result["nodes"] == {"passed": 3, "unproven": 0, "failed": 0}
    run, result = cluster.validate(gpu_validation_always=False)
    assert run.rc == 0 and run.changed() == 0, run.stdout[-4000:]
    assert "gpu-validation" in cluster.accounts()


def test_teardown_deletes_the_proofs_and_the_service_account(cluster: Validated) -> None:
    assert cluster.proofs()
    run = cluster.run("teardown")
    assert run.rc == 0, run.stdout[-4000:]
    assert cluster.proofs() == {}
    assert "gpu-validation" not in cluster.accounts()
