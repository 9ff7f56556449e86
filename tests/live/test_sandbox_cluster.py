# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of the control plane of a sandbox: private, on loopback, with the real authorizers, audited, with renewed leases."""

from __future__ import annotations

import json
import pathlib
import socket
import struct
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Forbidden, HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import COMPONENTS
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import SMALL_FLEET, Sandbox


@pytest.fixture(scope="module")
def changing(make_sandbox: t.Any) -> t.Any:
    """A sandbox whose fleet each test sets."""
    sandbox = make_sandbox(SMALL_FLEET)
    yield sandbox
    sandbox.close()


def as_user(sandbox: Sandbox, user: str, *groups: str) -> Client:
    return connect(
        {
            "kubeconfig": sandbox.kubeconfig,
            "impersonate_user": user,
            "impersonate_groups": [*groups, "system:authenticated"],
        }
    )


def nodes_of(client: Client) -> dict[str, dict[str, t.Any]]:
    return {node["metadata"]["name"]: node for node in client.list(client.resource("v1", "Node")).items}


def test_other_users_cannot_read_the_sandbox(sandbox: Sandbox) -> None:
    assert sandbox.state_dir.stat().st_mode & 0o777 == 0o700
    private = [
        pathlib.Path(sandbox.kubeconfig),
        *sandbox.state_dir.rglob("*.key"),
        *sandbox.state_dir.rglob("*.kubeconfig"),
        sandbox.audit_log,
    ]
    assert len(private) > 15
    assert {path: oct(path.stat().st_mode & 0o777) for path in private} == dict.fromkeys(private, "0o600")


def listening(pid: int) -> set[str]:
    """Addresses on which a process listens."""
    inodes = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(link.readlink()).removeprefix("socket:[").rstrip("]"))
        except FileNotFoundError:
            continue
    addresses = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text(encoding="utf-8").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                words = bytes.fromhex(fields[1].partition(":")[0])
                packed = b"".join(
                    struct.pack(">I", *struct.unpack("<I", words[index : index + 4]))
                    for index in range(0, len(words), 4)
                )
                addresses.add(socket.inet_ntop(family, packed))
    return addresses


def test_every_process_listens_on_loopback_only(sandbox: Sandbox) -> None:
    known = {name: process.known(sandbox.layout.pid_file(name)) for name in COMPONENTS}
    addresses = {name: listening(one.pid) for name, one in known.items() if one}
    assert addresses == {name: set() if name == "kwok" else {"127.0.0.1"} for name in COMPONENTS}


def test_etcd_refuses_connections_without_a_certificate(sandbox: Sandbox) -> None:
    ports = json.loads(sandbox.layout.record.read_text(encoding="utf-8"))["ports"]
    with socket.create_connection(("127.0.0.1", ports["etcd"]), timeout=240) as plain:
        plain.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        assert b"200" not in plain.recv(100)


def test_requests_without_credentials_are_refused(sandbox: Sandbox) -> None:
    ports = json.loads(sandbox.layout.record.read_text(encoding="utf-8"))["ports"]
    anonymous = connect(
        {
            "host": f"https://127.0.0.1:{ports['kube-apiserver']}",
            "ca_cert": str(sandbox.layout.pki / "ca.crt"),
            "api_key": "wrong",
        }
    )
    with pytest.raises(HwaccelError, match=r"(?i)unauthori"):
        anonymous.list(anonymous.resource("v1", "Node"))


def test_a_node_may_change_only_itself(sandbox: Sandbox, client: Client) -> None:
    node = as_user(sandbox, "system:node:gpu-0", "system:nodes")
    kind = client.resource("v1", "Node")
    node.patch(kind, "gpu-0", "", {"metadata": {"annotations": {"sandbox-test": "1"}}})
    with pytest.raises(Forbidden):
        node.patch(kind, "gpu-1", "", {"metadata": {"annotations": {"sandbox-test": "1"}}})
    with pytest.raises(Forbidden):
        node.patch(kind, "gpu-0", "", {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "1"}}})
    with pytest.raises(Forbidden):
        node.list(client.resource("v1", "Secret"), namespace="kube-system")


def test_kwok_has_rights_on_leases_only(sandbox: Sandbox, client: Client) -> None:
    kwok = as_user(sandbox, "hwaccel-kwok")
    lease, node, pod = (
        client.resource(version, kind)
        for version, kind in (("coordination.k8s.io/v1", "Lease"), ("v1", "Node"), ("v1", "Pod"))
    )
    assert kwok.allowed("update", lease, "kube-node-lease")
    assert [kwok.allowed(verb, node) for verb in ("update", "patch", "delete")] == [False] * 3
    assert [kwok.allowed(verb, pod, "default") for verb in ("create", "update", "patch", "delete")] == [False] * 4
    assert not kwok.allowed("patch", pod, "default", subresource="status")


def audit_lines(sandbox: Sandbox) -> list[dict[str, t.Any]]:
    log = AuditLog(sandbox.audit_log)
    log.offset = 0
    return list(log.events())


def test_the_audit_log_has_one_line_per_request_and_no_bodies(sandbox: Sandbox, client: Client) -> None:
    maps = client.resource("v1", "ConfigMap")
    client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "audited", "namespace": "default"},
            "data": {"a": "sesame"},
        },
        maps,
    )
    client.delete(maps, "audited", "default")
    lines = audit_lines(sandbox)
    assert {line["level"] for line in lines} == {"Metadata"}
    assert {line["stage"] for line in lines} <= {"ResponseComplete", "Panic"}
    about = [
        (line["verb"], line["user"]["username"]) for line in lines if line.get("objectRef", {}).get("name") == "audited"
    ]
    assert ("delete", "hwaccel-sandbox-admin") in about
    assert not any("requestObject" in line or "responseObject" in line for line in lines)
    assert "sesame" not in sandbox.audit_log.read_text(encoding="utf-8")


def test_kwok_renews_the_lease_of_every_node_and_writes_nothing_else(sandbox: Sandbox, client: Client) -> None:
    leases = client.resource("coordination.k8s.io/v1", "Lease")
    nodes = set(nodes_of(client))

    def renewed() -> dict[str, str]:
        items = client.list(leases, namespace="kube-node-lease").items
        return {
            item["metadata"]["name"]: item["spec"]["renewTime"]
            for item in items
            if item["metadata"].get("ownerReferences")
        }

    until(lambda: set(renewed()) == nodes, "a lease of every node", seen=renewed)
    first = renewed()
    until(lambda: all(renewed()[name] > first[name] for name in nodes), "all to be renewed", seen=renewed)
    written = {
        line["objectRef"]["resource"]
        for line in audit_lines(sandbox)
        if line["user"]["username"] == "hwaccel-kwok" and line["verb"] in _WRITES
    }
    assert written == {"leases"}


_WRITES = ("create", "update", "patch", "delete", "deletecollection")


def test_kwok_leaves_a_node_and_its_pods_alone(changing: Sandbox) -> None:
    """Without a fleet agent, only kwok could change a node, and it must not."""
    client = connect({"kubeconfig": changing.kubeconfig})
    node, pod, lease = (
        client.resource(version, kind)
        for version, kind in (("v1", "Node"), ("v1", "Pod"), ("coordination.k8s.io/v1", "Lease"))
    )
    changing.kill("fleet-agent")
    metadata = {"name": "lone", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "as it was posted"}],
        "capacity": {"cpu": "4", "pods": "10"},
    }
    client.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}, node)
    containers, tolerations = [{"name": "c", "image": "example.org/c:1"}], [{"operator": "Exists"}]
    # Without a kubelet that ends the pod, its grace period has to be zero.
    spec = {
        "nodeName": "lone",
        "containers": containers,
        "tolerations": tolerations,
        "terminationGracePeriodSeconds": 0,
    }
    client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}, pod
    )
    until(
        lambda: any(one["metadata"]["name"] == "lone" for one in client.list(lease, namespace="kube-node-lease").items),
        "the lease of the node",
    )
    assert client.get(lease, "lone", "kube-node-lease")["spec"]["leaseDurationSeconds"] == 40
    # Within this time, kwok would change the node and the pod, if it did.
    time.sleep(2)
    assert (
        "conditions" not in client.get(pod, "p", "default")["status"]
        or "podIP" not in client.get(pod, "p", "default")["status"]
    )
    assert client.get(pod, "p", "default")["status"]["phase"] == "Pending"
    ready = [one for one in client.get(node, "lone")["status"]["conditions"] if one["type"] == "Ready"]
    assert [(one["status"], one["message"]) for one in ready] == [("True", "as it was posted")]
    client.delete(pod, "p", "default")
    client.delete(node, "lone")
    changing.start()


def test_the_version_is_set_at_build_time(client: Client) -> None:
    version = client.server_version()
    assert version["gitVersion"].startswith("v1.36.")
    assert "Format" not in version["gitCommit"] + version["buildDate"]


def test_device_claims_and_certificate_requests_are_served(client: Client) -> None:
    assert client.resource("resource.k8s.io/v1", "ResourceSlice")
    assert client.resource("certificates.k8s.io/v1", "CertificateSigningRequest")


def test_a_changed_fleet_adds_changes_and_removes_nodes(changing: Sandbox) -> None:
    changing.set_fleet(SMALL_FLEET)
    client = connect({"kubeconfig": changing.kubeconfig})
    gpu, cpu = SMALL_FLEET["pools"]
    larger = {
        **SMALL_FLEET,
        "pools": [{**gpu, "count": 3, "labels": {"rack": "a1"}}, {"name": "edge", "architecture": "arm64"}],
    }
    run = changing.set_fleet(larger)
    assert run.actions == ["nodes added: gpu-2, edge-0", "nodes removed: cpu-0", "nodes changed: gpu-0, gpu-1"]
    assert set(nodes_of(client)) == {"gpu-0", "gpu-1", "gpu-2", "edge-0"}
    assert nodes_of(client)["edge-0"]["status"]["nodeInfo"]["architecture"] == "arm64"
    assert not changing.set_fleet(larger).changed
    assert cpu["name"] == "cpu"


def test_a_restarted_agent_removes_nodes_that_have_left_the_fleet(changing: Sandbox) -> None:
    """As after an update, when a run starts another process of the agent and changes the fleet."""
    gpu, _cpu = SMALL_FLEET["pools"]
    changing.set_fleet(SMALL_FLEET)
    client = connect({"kubeconfig": changing.kubeconfig})
    pod = client.resource("v1", "Pod")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "left", "namespace": "default"}}
    client.create(
        body | {"spec": {"nodeName": "cpu-0", "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]}},
        pod,
    )
    killed = changing.kill("fleet-agent")
    until(lambda: not process.identity(killed), "the agent to end")
    run = changing.set_fleet({**SMALL_FLEET, "pools": [gpu]})
    assert "restarted fleet-agent: it had died" in run.actions
    assert set(nodes_of(client)) == {"gpu-0", "gpu-1"}
    until(lambda: not client.list(pod, namespace="default").items, "the deletion of the pod on the removed node")


def test_a_node_reboots_with_another_kernel(changing: Sandbox) -> None:
    changing.set_fleet(SMALL_FLEET)
    client = connect({"kubeconfig": changing.kubeconfig})
    before = {name: node["status"]["nodeInfo"] for name, node in nodes_of(client).items()}
    changing.reboot("gpu-0", "6.8.0-48-generic")
    changing.reboot("gpu-1")
    after = {name: node["status"]["nodeInfo"] for name, node in nodes_of(client).items()}
    assert after["gpu-0"]["kernelVersion"] == "6.8.0-48-generic"
    assert after["gpu-1"]["kernelVersion"] == before["gpu-1"]["kernelVersion"]
    assert after["gpu-0"]["bootID"] != before["gpu-0"]["bootID"]
    assert after["gpu-1"]["bootID"] != before["gpu-1"]["bootID"]
    assert after["cpu-0"] == before["cpu-0"]
    assert not changing.start(SMALL_FLEET).changed


def test_faults_are_added_and_removed(changing: Sandbox) -> None:
    changing.set_fleet(SMALL_FLEET)
    assert changing.add_fault("driver_load_failure", node="gpu-1").changed
    assert changing.add_fault("image_pull_failure", pool="gpu", image="driver").changed
    fleet = json.loads(changing.layout.fleet.read_text(encoding="utf-8"))["nodes"]
    assert [one["name"] for one in fleet["gpu-1"]["faults"]] == ["driver_load_failure", "image_pull_failure"]
    assert not changing.start().changed
    assert changing.clear_faults().changed
    fleet = json.loads(changing.layout.fleet.read_text(encoding="utf-8"))["nodes"]
    assert [node["faults"] for node in fleet.values()] == [[], [], []]
