# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others have put into a cluster is found, left as it is, and judged; nothing of ours runs beside it.

Runtime: seven runs of site on two sandboxes, and two short ones.
"""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import resources, schedulable
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.names import QUARANTINE
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.nodes import reduce_node
from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu.pods import reduce_pod
from ansible_collections.hwaccel.gpu.tests.live.support import gpu_stack, site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU, until

NFD = "node-feature-discovery"
WAIT = {"hwaccel_wait_timeout": 240}
KINDS = (
    "DaemonSet",
    "Deployment",
    "ConfigMap",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
)
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CLUSTER_POLICY = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterpolicies.nvidia.com"},
    "spec": {
        "group": "nvidia.com",
        "scope": "Cluster",
        "names": {
            "kind": "ClusterPolicy",
            "listKind": "ClusterPolicyList",
            "plural": "clusterpolicies",
            "singular": "clusterpolicy",
        },
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _ANYTHING}}],
    },
}


def foreign_nfd(folder: pathlib.Path) -> list[dict[str, t.Any]]:
    """NFD as somebody else deployed it: other names, another namespace, not a label of ours."""
    rendered = site.playbook(
        "render", {"x": site.cluster("/nonexistent", driver_provider="none", hwaccel_render_to=str(folder))}
    )
    assert rendered.rc == 0, rendered.stdout[-4000:]
    text = (folder / "x" / "feature-discovery.yaml").read_text(encoding="utf-8")
    names = (
        ("hwaccel-gpu-system", NFD),
        ("hwaccel-gpu-nfd", "nfd"),
        ("hwaccel-gpu", NFD),
        ("hwaccel.gpu/", "example.com/"),
        ("hwaccel.gpu", "Helm"),
    )
    for ours, theirs in names:
        text = text.replace(ours, theirs)
    found = [obj for obj in yaml.safe_load_all(text) if obj and obj["kind"] not in ("Namespace", "NodeFeatureRule")]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NFD}}, *found]


def put(client: Client, objects: t.Iterable[dict[str, t.Any]]) -> None:
    for obj in objects:
        client.forget_discovery()
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="helm")


def asked(client: Client) -> dict[str, t.Any]:
    """Every object of the kinds above as it was asked for, down to who owns which field; what its controller reports is left out."""
    found = {}
    for resource in client.all_resources():
        if resource.kind in (*KINDS, "RuntimeClass", "ClusterPolicy"):
            for item in client.list(resource).items:
                metadata = item["metadata"]
                if (
                    metadata.get("namespace", "").startswith(("kube-", "hwaccel-gpu"))
                    or metadata["name"] == "kube-root-ca.crt"
                ):
                    continue
                owners = [entry for entry in metadata.pop("managedFields", []) if entry.get("subresource") != "status"]
                found[f"{resource.kind} {metadata.get('namespace', '')}/{metadata['name']}"] = {
                    **{key: value for key, value in item.items() if key != "status"},
                    "metadata": {key: value for key, value in metadata.items() if key != "resourceVersion"},
                    "owners": owners,
                }
    return found


def pods(client: Client, namespace: str) -> list[str]:
    return [item["metadata"]["name"] for item in client.list(client.resource("v1", "Pod"), namespace).items]


def operator_pods(client: Client) -> list[dict[str, t.Any]]:
    return list(client.list(client.resource("v1", "Pod"), gpu_stack.NAMESPACE).items)


def completed(client: Client) -> list[str]:
    """Nodes whose validator has let a pod of its own compute. It is nobody's DaemonSet's, and stays."""
    ended = [
        pod
        for pod in operator_pods(client)
        if pod["metadata"]["name"].startswith("nvidia-cuda-validator-") and pod["status"]["phase"] == "Succeeded"
    ]
    assert all(owner["kind"] == "ClusterPolicy" for pod in ended for owner in pod["metadata"]["ownerReferences"])
    return sorted(pod["spec"]["nodeName"] for pod in ended)


def validators(client: Client) -> dict[str, bool]:
    """By node whether its validator is ready."""
    found = [pod for pod in operator_pods(client) if pod["metadata"]["name"].startswith("nvidia-operator-validator-")]
    return {pod["spec"].get("nodeName", ""): reduce_pod(pod).ready for pod in found}


def plugin_on(client: Client, node: str) -> str:
    """ "" where it has none that stays."""
    found = [
        pod["metadata"]
        for pod in operator_pods(client)
        if pod["spec"].get("nodeName") == node and "device-plugin" in pod["metadata"]["name"]
    ]
    return next((metadata["name"] for metadata in found if not metadata.get("deletionTimestamp")), "")


def gpus(client: Client, name: str) -> int:
    return resources.total(schedulable.observed(reduce_node(client.get(client.resource("v1", "Node"), name), [])))


def operated(client: Client) -> None:
    """What the operator makes once its ClusterPolicy is there, and when all of it is ready."""
    until(
        lambda: bool(
            [one for one in client.all_resources() if one.kind == "ClusterPolicy"] or client.forget_discovery()
        ),
        "the kind ClusterPolicy",
    )
    put(
        client,
        [
            {
                "apiVersion": "nvidia.com/v1",
                "kind": "ClusterPolicy",
                "metadata": {"name": "cluster-policy"},
                "spec": {"driver": {"enabled": True}},
            }
        ],
    )
    (policy,) = client.list(client.resource("nvidia.com/v1", "ClusterPolicy")).items
    gpu_stack.deploy_operator(client, policy)
    until(lambda: gpus(client, "gpu-0") == gpus(client, "gpu-1") == 8, "the other stack to offer its GPUs")
    until(
        lambda: len(completed(client)) == 2 and all(validators(client).values()),
        "its validators to have passed",
        seen=lambda: pods(client, "gpu-operator"),
    )


def mended(made: t.Any, client: Client, pools: list[dict[str, t.Any]]) -> None:
    """The mark keeps nobody off who has to mend the node: the plugin's pod comes back, and the next run takes the node back."""
    made.clear_faults()
    stale = plugin_on(client, "gpu-1")
    client.delete(client.resource("v1", "Pod"), stale, "gpu-operator")
    until(
        lambda: plugin_on(client, "gpu-1") not in ("", stale),
        "the plugin's pod to be made anew in spite of the mark",
        60,
    )
    until(lambda: gpus(client, "gpu-1") == 8 and all(validators(client).values()), "gpu-1 to have all its GPUs")
    released = site.playbook(
        "site", {"one": site.cluster(made.kubeconfig, **WAIT, hwaccel_max_failed="1", hwaccel_pools=pools)}
    )
    assert released.rc == 0, released.stdout[-6000:]
    assert QUARANTINE not in gpu_stack.taints(client, "gpu-1")


@pytest.fixture(scope="module")
def nfd(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, t.Any]]:
    return foreign_nfd(tmp_path_factory.mktemp("render"))


def test_a_whole_stack_of_somebody_else(make_sandbox: t.Any, nfd: list[dict[str, t.Any]]) -> None:
    made = make_sandbox(
        {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 2, "kernel": gpu_stack.KERNEL, "gpu": GPU}]}
    )
    client = connect({"kubeconfig": made.kubeconfig})
    put(client, [*nfd, CLUSTER_POLICY])
    operated(client)
    before, audit = asked(client), AuditLog(made.audit_log)

    # Not so long that a gate could wait for pods which have completed.
    run = site.playbook("site", {"one": site.cluster(made.kubeconfig, hwaccel_wait_timeout=30)})
    assert (run.rc, run.changed("one")) == (0, 0), run.stdout[-6000:]
    assert [str(request) for request in audit.our_writes()] == []
    told = run.stdout
    for sentence in (
        "feature discovery by existing (detected",
        "driver by existing (detected ClusterPolicy cluster-policy",
        "device plugin by existing (detected",
    ):
        assert sentence in told, told[-6000:]
    assert sum(pool["seen"] for pool in run.summary["one"]["pools"]) == 16
    assert asked(client) == before
    namespaces = [item["metadata"]["name"] for item in client.list(client.resource("v1", "Namespace")).items]
    assert not [name for name in namespaces if name.startswith("hwaccel-gpu")]

    # The gates judge what is there.
    made.add_fault("plugin_fewer_gpus", node="gpu-1")
    made.reboot("gpu-1")
    until(lambda: gpus(client, "gpu-1") == 7, "gpu-1 to lose a GPU")
    pools = [{"name": "all", "nodes": ["gpu-0", "gpu-1"], "gpu": {"count": 8}}]
    judged = site.playbook(
        "site", {"one": site.cluster(made.kubeconfig, **WAIT, hwaccel_max_failed="1", hwaccel_pools=pools)}
    )
    assert judged.rc != 0
    assert judged.summary["one"]["failed_nodes"] == ["gpu-1"], judged.stdout[-6000:]
    assert "7 nvidia.com/gpu allocatable" in judged.failures[-1]
    assert {(request.resource, request.name) for request in audit.our_writes()} == {("nodes", "gpu-1")}

    mended(made, client, pools)

    # To be told to bring one's own beside it is refused before anything is written.
    roles = ("feature_discovery", "driver", "device_plugin")
    refused = site.playbook(
        "preflight", {"one": site.cluster(made.kubeconfig, **{f"{role}_provider": "hwaccel" for role in roles})}
    )
    assert refused.rc != 0
    for what in ("another Node Feature Discovery", "another driver deployment", "another device plugin"):
        assert any(f"{what} " in told for told in refused.failures), refused.failures
    assert asked(client) == before
    made.close()


def test_a_driver_of_the_host_and_a_plugin_of_somebody_else(make_sandbox: t.Any) -> None:
    made = make_sandbox(
        {"time_scale": 0.01, "pools": [{"name": "dgx", "count": 1, "gpu": GPU, "host_driver": "580.95.05"}]}
    )
    client = connect({"kubeconfig": made.kubeconfig})
    plugin = gpu_stack.plugin()
    plugin["metadata"]["namespace"] = "kube-system"
    put(client, [plugin])
    resource = client.resource("apps/v1", "DaemonSet")
    before = client.get(resource, plugin["metadata"]["name"], "kube-system")["spec"]

    run = site.playbook("site", {"one": site.cluster(made.kubeconfig, **WAIT)})
    assert run.rc == 0, run.stdout[-6000:]
    assert "device plugin by existing (detected DaemonSet kube-system/nvidia-device-plugin-daemonset)" in run.stdout
    assert gpus(client, "dgx-0") == 8
    assert client.get(resource, plugin["metadata"]["name"], "kube-system")["spec"] == before
    ours = pods(client, "hwaccel-gpu")
    assert not [
        name for name in ours if name.startswith(("nvidia-driver", "nvidia-device-plugin", "gpu-feature-discovery"))
    ], ours
    assert [name for name in ours if name.startswith("nvidia-validator")], "the host's driver is proven all the same"
    again = site.playbook("site", {"one": site.cluster(made.kubeconfig, **WAIT)})
    assert again.rc == 0, again.stdout[-6000:]
    # Nothing in the API tells of such a driver before the driver manager has met it; it marks the node, and loads nothing.
    assert re.search(r"driver by host \(detected driver \S+ on the host\)", again.stdout), again.stdout[-6000:]

    # Declared, it needs nothing of ours but the proof. So many objects at once go only by a word of their own.
    declared = {
        **WAIT,
        "hwaccel_pools": [{"name": "dgx", "nodes": ["dgx-0"], "gpu": {"count": 8}, "driver": {"provider": "host"}}],
    }
    many = site.playbook("site", {"one": site.cluster(made.kubeconfig, **declared)})
    assert many.rc != 0
    assert "would be deleted" in many.failures[0], many.failures
    meant = site.playbook("site", {"one": site.cluster(made.kubeconfig, **declared, driver_max_prune="99%")})
    assert meant.rc == 0, meant.stdout[-6000:]
    assert "pool dgx: driver by host (declared)" in meant.stdout
    left = [item["metadata"]["name"] for item in client.list(resource, "hwaccel-gpu").items]
    assert "nvidia-validator" in left
    assert not [name for name in left if name.startswith("nvidia-driver")], left
    assert gpus(client, "dgx-0") == 8
    made.close()
