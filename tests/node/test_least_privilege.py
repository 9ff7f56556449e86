# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights on a real node: of pods by the PodSecurity admission of the API server, of ServiceAccounts by the requests of real programs.

Node Feature Discovery and NVIDIA's container toolkit are real. Stand-ins of NVIDIA's other programs send the requests that the sources show, so for
their accounts these tests prove no more than those on simulated nodes.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden
from ansible_collections.hwaccel.gpu.tests.live.support import rights
from ansible_collections.hwaccel.gpu.tests.live.support.life import AGENTS, CONTROLLERS, NAMESPACES
from ansible_collections.hwaccel.gpu.tests.node.conftest import REAL, Enabled
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import POD, Cluster
from ansible_collections.hwaccel.gpu.tests.node.rig.teardown import Teardown
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

ENFORCE = "pod-security.kubernetes.io/enforce"
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
#: Pod Security levels that docs/rights.md documents.
LEVEL_OF = {AGENTS: PRIVILEGED, CONTROLLERS: RESTRICTED}
#: Rights of a workload's containers on the host, by the name of the workload.
WORKLOADS: dict[str, list[dict[str, t.Any]]] = {}
for _role in stack.ROLES:
    for _row in stack.load(stack.TOP / "roles" / _role / "vars" / "rights.yml")[f"__{_role}_rights"]:
        WORKLOADS.setdefault(_row["workload"], []).append(_row)
#: This workload exists only during a teardown.
PRUNE = "nfd-prune"
#: Violations in messages of the level `baseline`, and whether a row of rights causes them.
REFUSED: dict[str, c.Callable[[dict[str, t.Any]], bool]] = {
    "hostPath volumes": lambda row: bool(row["host_paths"]),
    "privileged (": lambda row: row["privileged"],
    "hostPID=true": lambda row: row["host_pid"],
    "seLinuxOptions (": lambda row: "type" in row["selinux"],
}
#: Accounts whose program is a stand-in.
STAND_INS = {f"{AGENTS}/{name}" for name in ("nvidia-driver", "nvidia-validator", "gpu-feature-discovery")}
#: The pod with this account runs the real toolkit, which sends no requests to the API server. Only its init container does, which is a stand-in.
STAND_INS |= {f"{AGENTS}/nvidia-container-toolkit"}
_BY_WATCH = (
    "client-go requests a list by a watch if the server supports it (feature WatchListClient), otherwise by a list"
)
_WHEN_A_NODE_IS_REMOVED = (
    "node-feature-discovery v0.19.0, pkg/nfd-gc/nfd-gc.go: it deletes the features of removed nodes"
)
_LABELS_LEFT = "node-feature-discovery v0.19.0, pkg/nfd-master/nfd-master.go: prune patches the labels away that nfd-master left when it ended"
#: Rights that real programs need not use in a session, and why.
NOT_ALWAYS = {
    f"{CONTROLLERS}/nfd-gc: delete nodefeatures.nfd.k8s-sigs.io": _WHEN_A_NODE_IS_REMOVED,
    f"{CONTROLLERS}/nfd-gc: delete noderesourcetopologies.topology.node.k8s.io": _WHEN_A_NODE_IS_REMOVED,
    f"{CONTROLLERS}/nfd-gc: list nodes": _BY_WATCH,
    f"{CONTROLLERS}/nfd-master: list namespaces": _BY_WATCH,
    f"{CONTROLLERS}/nfd-master: list nodefeaturerules.nfd.k8s-sigs.io": _BY_WATCH,
    f"{CONTROLLERS}/nfd-master: list nodefeatures.nfd.k8s-sigs.io": _BY_WATCH,
    f"{CONTROLLERS}/nfd-prune: patch nodes": _LABELS_LEFT,
}


@pytest.fixture(scope="module")
def spaces(cluster: Cluster) -> c.Iterator[dict[str, str]]:
    """A namespace for each level, by level."""
    client = cluster.client
    namespace, account = client.resource("v1", "Namespace"), client.resource("v1", "ServiceAccount")
    names = {level: f"level-{level}" for level in LEVELS}
    for level, name in names.items():
        client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {ENFORCE: level}}}, namespace
        )
    for name in names.values():
        cluster.wait("its ServiceAccount exists", lambda name=name: client.list(account, name).items)
    yield names
    for name in names.values():
        client.delete(namespace, name)
    for name in names.values():
        cluster.wait(
            "the namespace is deleted",
            lambda name=name: name not in [item["metadata"]["name"] for item in client.list(namespace).items],
        )


def refusal(cluster: Cluster, namespace: str, pod: dict[str, t.Any]) -> str:
    """Why the API server refuses such a pod in the namespace, "" if it accepts it. The ServiceAccount differs, which is not relevant to Pod Security."""
    spec = {
        key: value
        for key, value in pod["spec"].items()
        if key not in ("nodeName", "serviceAccount", "serviceAccountName")
    }
    metadata = {"name": "tried", "namespace": namespace}
    try:
        cluster.client.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, POD, dry_run=True
        )
    except Forbidden as refused:
        return str(refused)
    return ""


def running(cluster: Cluster, namespace: str) -> dict[str, dict[str, t.Any]]:
    """The pod of each workload of ours on the real node, by the workload's name in roles/*/vars/rights.yml."""
    pods = {}
    for pod in cluster.client.list(POD, namespace, field_selector=f"spec.nodeName={REAL}").items:
        owner = pod["metadata"]["ownerReferences"][0]["name"]
        pods[max((name for name in WORKLOADS if owner.startswith(name)), key=len)] = pod
    return pods


def refused_for(rows: list[dict[str, t.Any]]) -> set[str]:
    """Violations with which the level `baseline` must refuse a pod whose containers have these rights."""
    return {text for text, causes in REFUSED.items() if any(causes(row) for row in rows)}


def test_the_namespaces_enforce_the_documented_levels(cluster: Cluster, enabled: Enabled) -> None:
    namespace = cluster.client.resource("v1", "Namespace")
    labels = {name: cluster.client.get(namespace, name)["metadata"]["labels"] for name in NAMESPACES}
    assert {name: present.get(ENFORCE) for name, present in labels.items()} == LEVEL_OF
    text = (stack.TOP / "docs" / "rights.md").read_text(encoding="utf-8")
    assert (
        "`hwaccel_namespace`, at the Pod Security level `privileged`" in text
        and "in another namespace, at the level `restricted`" in text
    )


def test_every_pod_complies_and_agents_comply_with_no_stricter_level(
    cluster: Cluster, enabled: Enabled, spaces: dict[str, str]
) -> None:
    agents, controllers = running(cluster, AGENTS), running(cluster, CONTROLLERS)
    assert agents.keys() | controllers.keys() == WORKLOADS.keys() - {PRUNE}
    assert {name: refusal(cluster, spaces[PRIVILEGED], pod) for name, pod in agents.items()} == dict.fromkeys(
        agents, ""
    )
    assert {name: refusal(cluster, spaces[RESTRICTED], pod) for name, pod in controllers.items()} == dict.fromkeys(
        controllers, ""
    )
    refused = {name: refusal(cluster, spaces[BASELINE], pod) for name, pod in agents.items()}
    assert {name: {text for text in REFUSED if text in message} for name, message in refused.items()} == {
        name: refused_for(WORKLOADS[name]) for name in agents
    }
    assert all('violates PodSecurity "baseline:' in message for message in refused.values()), refused


def test_the_validation_pod_has_no_more_rights_than_pods_of_users(cluster: Cluster, spaces: dict[str, str]) -> None:
    assert refusal(cluster, spaces[RESTRICTED], stack.validation_pod()) == ""


@pytest.mark.slow
def test_no_request_is_refused_from_site_to_teardown(torn_down: Teardown) -> None:
    requests = torn_down.requests()
    assert {request.node for request in requests} > {REAL}
    assert sorted({str(request) for request in requests if request.status == 403}) == []


@pytest.mark.slow
def test_every_right_of_a_real_program_is_used(torn_down: Teardown) -> None:
    real = [request for request in torn_down.requests() if request.node.startswith("real-")]
    left = rights.unused(torn_down.granted, real)
    assert NOT_ALWAYS.keys() <= {str(right) for right in torn_down.granted}
    for account in sorted({right.account for right in torn_down.granted}):
        mine = [right for right in torn_down.granted if right.account == account]
        unused = [str(right) for right in left if right.account == account]
        print(
            f"{account}{' (stand-in)' if account in STAND_INS else ''}: {len(mine)} rights, not used on real nodes: {unused or 'none'}"
        )
    assert sorted(str(right) for right in left if right.account not in STAND_INS and str(right) not in NOT_ALWAYS) == []
