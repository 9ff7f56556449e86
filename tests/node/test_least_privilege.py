# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights on a real node: of pods by the API server's own PodSecurity, of ServiceAccounts by what real programs have asked for.

Real are Node Feature Discovery and NVIDIA's container toolkit. Who stands in for a program of NVIDIA's asks for what its sources show, so of these
accounts no more is proven here than on simulated nodes.
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
from ansible_collections.hwaccel.gpu.tests.node.rig.departure import Departure
from ansible_collections.hwaccel.gpu.tests.unit.roles import stack

ENFORCE = "pod-security.kubernetes.io/enforce"
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
#: As docs/rights.md states them.
LEVEL_OF = {AGENTS: PRIVILEGED, CONTROLLERS: RESTRICTED}
#: What a workload's containers need on the host, by its name.
WORKLOADS: dict[str, list[dict[str, t.Any]]] = {}
for _role in stack.ROLES:
    for _row in stack.load(stack.TOP / "roles" / _role / "vars" / "rights.yml")[f"__{_role}_rights"]:
        WORKLOADS.setdefault(_row["workload"], []).append(_row)
#: It is there for the time of a teardown.
PRUNE = "nfd-prune"
#: Words of the level `baseline` against a pod, and the needs that they are against.
REFUSED: dict[str, c.Callable[[dict[str, t.Any]], bool]] = {
    "hostPath volumes": lambda row: bool(row["host_paths"]),
    "privileged (": lambda row: row["privileged"],
    "hostPID=true": lambda row: row["host_pid"],
    "seLinuxOptions (": lambda row: "type" in row["selinux"],
}
#: Accounts whose program is a stand-in.
STAND_INS = {f"{AGENTS}/{name}" for name in ("nvidia-driver", "nvidia-validator", "gpu-feature-discovery")}
#: The pod of this one runs the real toolkit, which asks the API server for nothing. What asks is its init container, a stand-in.
STAND_INS |= {f"{AGENTS}/nvidia-container-toolkit"}
_BY_WATCH = (
    "client-go asks for a list by a watch where the server can (feature WatchListClient), and by a list elsewhere"
)
_WHERE_A_NODE_LEAVES = (
    "node-feature-discovery v0.19.0, pkg/nfd-gc/nfd-gc.go: deleted is what was found of nodes that have left"
)
#: Rights that real programs need not use in a session, and why.
NOT_ALWAYS = {
    f"{CONTROLLERS}/nfd-gc: delete nodefeatures.nfd.k8s-sigs.io": _WHERE_A_NODE_LEAVES,
    f"{CONTROLLERS}/nfd-gc: delete noderesourcetopologies.topology.node.k8s.io": _WHERE_A_NODE_LEAVES,
    f"{CONTROLLERS}/nfd-gc: list nodes": _BY_WATCH,
    f"{CONTROLLERS}/nfd-master: list namespaces": _BY_WATCH,
    f"{CONTROLLERS}/nfd-master: list nodefeaturerules.nfd.k8s-sigs.io": _BY_WATCH,
    f"{CONTROLLERS}/nfd-master: list nodefeatures.nfd.k8s-sigs.io": _BY_WATCH,
}


@pytest.fixture(scope="module")
def spaces(cluster: Cluster) -> c.Iterator[dict[str, str]]:
    """A namespace for each level, by level."""
    client = cluster.client
    namespace, account = client.resource("v1", "Namespace"), client.resource("v1", "ServiceAccount")
    made = {level: f"level-{level}" for level in LEVELS}
    for level, name in made.items():
        client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {ENFORCE: level}}}, namespace
        )
    for name in made.values():
        cluster.wait("its account is there", lambda name=name: client.list(account, name).items)
    yield made
    for name in made.values():
        client.delete(namespace, name)
    for name in made.values():
        cluster.wait(
            "it is gone",
            lambda name=name: name not in [item["metadata"]["name"] for item in client.list(namespace).items],
        )


def refusal(cluster: Cluster, namespace: str, pod: dict[str, t.Any]) -> str:
    """What the API server says against such a pod there, "" where it would take it. Its account is another, which is no matter of Pod Security."""
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
    found = {}
    for pod in cluster.client.list(POD, namespace, field_selector=f"spec.nodeName={REAL}").items:
        owner = pod["metadata"]["ownerReferences"][0]["name"]
        found[max((name for name in WORKLOADS if owner.startswith(name)), key=len)] = pod
    return found


def refused_for(rows: list[dict[str, t.Any]]) -> set[str]:
    """By which words the level `baseline` must refuse a pod with what its containers are said to need on the host."""
    return {word for word, needed in REFUSED.items() if any(needed(row) for row in rows)}


def test_the_namespaces_enforce_what_the_documentation_states(cluster: Cluster, enabled: Enabled) -> None:
    namespace = cluster.client.resource("v1", "Namespace")
    labels = {name: cluster.client.get(namespace, name)["metadata"]["labels"] for name in NAMESPACES}
    assert {name: found.get(ENFORCE) for name, found in labels.items()} == LEVEL_OF
    text = (stack.TOP / "docs" / "rights.md").read_text(encoding="utf-8")
    assert (
        "`hwaccel_namespace`, at the Pod Security level `privileged`" in text
        and "in another namespace, at the level `restricted`" in text
    )


def test_every_pod_complies_and_an_agent_with_nothing_stricter(
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
    assert {name: {word for word in REFUSED if word in why} for name, why in refused.items()} == {
        name: refused_for(WORKLOADS[name]) for name in agents
    }
    assert all('violates PodSecurity "baseline:' in why for why in refused.values()), refused


def test_the_pod_that_validates_has_no_more_rights_than_a_user(cluster: Cluster, spaces: dict[str, str]) -> None:
    assert refusal(cluster, spaces[RESTRICTED], stack.validation_pod()) == ""


@pytest.mark.slow
def test_nothing_is_refused_from_site_to_teardown(departed: Departure) -> None:
    requests = departed.requests()
    assert {request.node for request in requests} > {REAL}
    assert sorted({str(request) for request in requests if request.status == 403}) == []


@pytest.mark.slow
def test_every_right_of_a_real_program_is_used(departed: Departure) -> None:
    real = [request for request in departed.requests() if request.node.startswith("real-")]
    left = rights.unused(departed.granted, real)
    assert NOT_ALWAYS.keys() <= {str(right) for right in departed.granted}
    for account in sorted({right.account for right in departed.granted}):
        mine = [right for right in departed.granted if right.account == account]
        unused = [str(right) for right in left if right.account == account]
        print(
            f"{account}{' (stand-in)' if account in STAND_INS else ''}: {len(mine)} rights, not used on real nodes: {unused or 'none'}"
        )
    assert sorted(str(right) for right in left if right.account not in STAND_INS and str(right) not in NOT_ALWAYS) == []
