# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for K3s on machines, set up by hand: a server, an agent, and a second server. The tests build on one another, in their order."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import functools
import json
import ssl
import time
import typing as t
import urllib.error
import urllib.request

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig import pods
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_by_hand import DATA, Installed, install
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.images import BUSYBOX
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
_TOKENS = "/etc/rancher/k3s"
_SHARED = {"secrets-encryption": True, "disable": ["traefik"], "token-file": f"{_TOKENS}/token"}
_SECRET = Resource("", "v1", "Secret", "secrets", True)
_SERVICE = Resource("", "v1", "Service", "services", True)
_CLASS = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)


@dataclasses.dataclass
class Made:
    """The cluster, and what each step took in seconds."""

    rig: K3sRig
    first: Installed
    worker: Installed
    second: Installed
    seconds: dict[str, float]

    @property
    def client(self) -> Client:
        return self.first.client()

    def node(self, name: str) -> dict[str, t.Any]:
        return self.client.get(NODE, name)

    def ready(self, name: str) -> bool:
        nodes = {node["metadata"]["name"]: node for node in self.client.list(NODE).items}
        return condition(nodes.get(name, {}), "Ready").get("status") == "True"


def condition(node: dict[str, t.Any], kind: str) -> dict[str, str]:
    return next((one for one in node.get("status", {}).get("conditions", ()) if one["type"] == kind), {})


def ask(installed: Installed, path: str, authorization: str = "") -> tuple[int, str]:
    """What the port of servers answers."""
    request = urllib.request.Request(f"https://{installed.machine.address}:6443{path}")
    if authorization:
        request.add_header("Authorization", authorization)
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def timed(seconds: dict[str, float], step: str, does: c.Callable[[], t.Any]) -> t.Any:
    began = time.monotonic()
    result = does()
    seconds[step] = round(time.monotonic() - began, 1)
    return result


@pytest.fixture(scope="module")
def made() -> c.Iterator[Made]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    try:
        rig = K3sRig(say)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        seconds: dict[str, float] = {}
        s1, w1, s2 = (
            timed(seconds, f"boot {name}", functools.partial(rig.machine, name)) for name in ("s1", "w1", "s2")
        )
        own = {
            "cluster-init": True,
            "agent-token": "agents",
            "tls-san": ["lb.example.com"],
            "write-kubeconfig-mode": "0640",
        }
        schedule = {"etcd-snapshot-schedule-cron": "* * * * *", "etcd-snapshot-retention": 1}
        first = install(s1, rig.k3s, "server", {**_SHARED, **own, **schedule})
        s1.write(f"{_TOKENS}/token", "servers\n", "0600")
        timed(seconds, "first server", first.start)
        agent = {"server": f"https://{s1.address}:6443", "token-file": f"{_TOKENS}/token", "node-label": ["pool=a"]}
        worker = install(w1, rig.k3s, "agent", {**agent, "node-taint": ["dedicated=gpu:PreferNoSchedule"]})
        w1.write(f"{_TOKENS}/token", first.token("agent-token"), "0600")
        timed(seconds, "agent", worker.start)
        second = install(
            s2, rig.k3s, "server", {**_SHARED, "server": f"https://{s1.address}:6443", "agent-token": "agents"}
        )
        made = Made(rig, first, worker, second, seconds)
        timed(
            seconds,
            "nodes Ready",
            lambda: w1.wait("both nodes are Ready", lambda: made.ready("s1") and made.ready("w1")),
        )
        yield made
        say(f"seconds: {json.dumps(seconds)}")


def test_files_with_tokens(made: Made) -> None:
    machine, digest = made.first.machine, made.first.machine.sh(f"sha256sum {DATA}/server/tls/server-ca.crt").split()[0]
    assert made.first.token() == f"K10{digest}::server:servers"
    assert made.first.token("agent-token") == f"K10{digest}::node:agents"
    assert machine.sh(f"readlink {DATA}/server/node-token").strip() == f"{DATA}/server/token"
    assert machine.sh(f"stat -c %a {DATA}/server/token {DATA}/server/agent-token").split() == ["600", "600"]


def test_kubeconfig(made: Made) -> None:
    machine = made.first.machine
    assert "server: https://127.0.0.1:6443" in machine.read("/etc/rancher/k3s/k3s.yaml")
    assert machine.sh("stat -c %a /etc/rancher/k3s/k3s.yaml").strip() == "640"


def test_files_with_keys(made: Made) -> None:
    found = set(made.first.machine.sh(f"cd {DATA}/server; find tls cred -type f").split())
    names = (
        "server-ca",
        "client-ca",
        "request-header-ca",
        "etcd/server-ca",
        "etcd/peer-ca",
        "client-admin",
        "serving-kube-apiserver",
    )
    assert {f"tls/{name}.{suffix}" for name in names for suffix in ("crt", "key")} <= found
    assert {
        "tls/service.key",
        "cred/passwd",
        "cred/ipsec.psk",
        "cred/encryption-config.json",
        "cred/admin.kubeconfig",
    } <= found


def test_etcd_serves_http_apart_from_grpc(made: Made) -> None:
    pki = f"{DATA}/server/tls/etcd"
    script = f"""import ssl, sys, urllib.request
tls = ssl.create_default_context(cafile="{pki}/server-ca.crt")
tls.load_cert_chain("{pki}/client.crt", "{pki}/client.key")
asked = urllib.request.Request("https://127.0.0.1:" + sys.argv[1] + "/v3/cluster/member/list", data=b"{{}}", method="POST")
try:
    print(urllib.request.urlopen(asked, context=tls, timeout=5).status)
except OSError:
    print("no HTTP")"""
    machine = made.first.machine
    assert [machine.execute("python3", "-c", script, port).stdout.strip() for port in ("2382", "2379")] == [
        "200",
        "no HTTP",
    ]


def test_folder_of_data(made: Made) -> None:
    folder = made.first.machine.sh(f"readlink {DATA}/data/current").strip()
    assert folder.startswith(f"{DATA}/data/")
    assert "kubectl" in made.first.machine.sh(f"ls {folder}/bin").split()


def test_ping_and_authority_are_for_everybody(made: Made) -> None:
    assert ask(made.first, "/ping") == (200, "pong")
    assert ask(made.first, "/cacerts") == (200, made.first.machine.read(f"{DATA}/server/tls/server-ca.crt"))


def test_the_api_server_knows_nobody_without_credentials(made: Made) -> None:
    status, body = ask(made.first, "/readyz")
    assert (status, json.loads(body)["reason"]) == (401, "Unauthorized")


def test_the_supervisor_tells_wrong_from_missing_credentials(made: Made) -> None:
    assert ask(made.first, "/v1-k3s/config")[0] == 403
    assert ask(made.first, "/v1-k3s/config", "Basic bm9kZTp3cm9uZw==")[0] == 401


def test_agents_cannot_read_what_servers_share(made: Made) -> None:
    assert ask(made.first, "/v1-k3s/config", "Basic bm9kZTphZ2VudHM=")[0] == 200
    assert ask(made.first, "/v1-k3s/server-bootstrap", "Basic bm9kZTphZ2VudHM=")[0] == 403


def test_runtime_classes(made: Made) -> None:
    names = {one["metadata"]["name"] for one in made.client.list(_CLASS).items}
    assert {"nvidia", "nvidia-experimental", "nvidia-cdi", "crun"} <= names


def test_labels_of_servers(made: Made) -> None:
    labels = made.node("s1")["metadata"]["labels"]
    assert labels["node-role.kubernetes.io/control-plane"] == labels["node-role.kubernetes.io/etcd"] == "true"


def test_the_node_says_which_member_it_has(made: Made) -> None:
    annotations = made.node("s1")["metadata"]["annotations"]
    assert annotations["etcd.k3s.cattle.io/node-name"].startswith("s1-")
    assert annotations["etcd.k3s.cattle.io/node-address"] == made.first.machine.address


def test_the_node_says_whether_its_member_votes(made: Made) -> None:
    found = condition(made.node("s1"), "EtcdIsVoter")
    assert (found["status"], found["reason"]) == ("True", "MemberNotLearner")
    assert condition(made.node("w1"), "EtcdIsVoter") == {}


def test_the_cloud_controller_initializes_nodes(made: Made) -> None:
    node = made.node("w1")
    assert node["spec"]["providerID"] == "k3s://w1"
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "k3s"
    assert {"type": "InternalIP", "address": made.worker.machine.address} in node["status"]["addresses"]


def test_version_of_nodes(made: Made) -> None:
    assert made.node("w1")["status"]["nodeInfo"]["kubeletVersion"] == VERSION


def test_labels_and_taints_of_the_configuration(made: Made) -> None:
    node = made.node("w1")
    assert node["metadata"]["labels"]["pool"] == "a"
    assert {"key": "dedicated", "value": "gpu", "effect": "PreferNoSchedule"} in node["spec"]["taints"]


def test_each_node_has_a_password(made: Made) -> None:
    names = {one["metadata"]["name"] for one in made.client.list(_SECRET, namespace="kube-system").items}
    assert {"s1.node-password.k3s", "w1.node-password.k3s"} <= names


def test_images_are_imported_before_pods_start(made: Made) -> None:
    images = made.worker.machine.sh("k3s ctr images list --quiet").split()
    assert "docker.io/rancher/mirrored-pause:3.6" in images
    assert "Importing images from" in made.worker.said()


def test_pods_reach_services_of_other_nodes(made: Made) -> None:
    web = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sh", "-c", "mkdir /w; echo hello >/w/index.html; httpd -f -p 8080 -h /w"],
    }
    metadata = {"name": "web", "namespace": "default", "labels": {"app": "web"}}
    made.client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "w1", "containers": [web]}}, POD
    )
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}], "clusterIP": "10.43.0.80"}
    named = {"name": "web", "namespace": "default"}
    made.client.create({"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": service}, _SERVICE)
    script = "until printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 10.43.0.80 80 | grep hello; do sleep 1; done; nc -w 3 10.43.0.1 443 </dev/null && echo API"
    said = pods.output(made.client, made.worker.machine, "asks", script, nodeName="s1")
    assert said.split() == ["hello", "API"]


def test_pods_outlive_a_restart(made: Made) -> None:
    def container() -> str:
        return made.client.get(POD, "web", "default")["status"]["containerStatuses"][0]["containerID"]

    before = container()
    made.worker.machine.sh("systemctl restart k3s-agent", seconds=120)
    made.worker.machine.wait("the node is Ready", lambda: made.ready("w1"))
    assert container() == before


def test_another_node_of_the_same_name_is_refused(made: Made) -> None:
    machine = made.worker.machine
    made.worker.stop()
    machine.sh(
        "cp /etc/rancher/node/password /tmp/password; echo other >/etc/rancher/node/password; rm /var/lib/rancher/k3s/agent/client-kubelet.*"
    )
    machine.sh("systemctl start --no-block k3s-agent")
    machine.wait("it is refused", lambda: "Node password rejected, duplicate hostname" in made.worker.said())
    made.worker.stop()
    machine.sh("cp /tmp/password /etc/rancher/node/password")
    made.worker.start()


def test_an_agent_compares_the_authority_with_the_token(made: Made) -> None:
    machine = made.worker.machine
    made.worker.stop()
    token = made.first.token("agent-token")
    machine.write(f"{_TOKENS}/token", f"K10{'0' * 64}::{token.partition('::')[2]}", "0600")
    machine.sh("systemctl start --no-block k3s-agent")
    wanted = "token CA hash does not match the Cluster CA certificate hash"
    machine.wait("it is refused", lambda: wanted in made.worker.said())
    made.worker.stop()
    machine.write(f"{_TOKENS}/token", token, "0600")
    made.worker.start()


def test_a_server_with_another_token_is_refused(made: Made) -> None:
    made.second.machine.write(f"{_TOKENS}/token", "other\n", "0600")
    assert made.second.refused().endswith("/v1-k3s/server-bootstrap: 401 Unauthorized")


def test_a_server_with_other_critical_settings_is_refused(made: Made) -> None:
    machine = made.second.machine
    machine.write(f"{_TOKENS}/token", made.first.token(), "0600")
    config = {**_SHARED, "server": f"https://{made.first.machine.address}:6443", "agent-token": "agents"}
    made.second.configure({**config, "cluster-cidr": "10.50.0.0/16"})
    expected = "failed to validate server configuration: critical configuration value mismatch between servers"
    assert made.second.refused() == f"Error: preparing server: failed to bootstrap cluster data: {expected}"
    assert "critical configuration mismatched: cluster-cidr" in made.second.said()
    made.second.configure(config)


def test_a_server_joins_as_a_learner_and_is_promoted(made: Made) -> None:
    timed(made.seconds, "second server", made.second.start)
    made.second.machine.wait("the node is Ready", lambda: made.ready("s2"))
    made.second.machine.wait("it votes", lambda: condition(made.node("s2"), "EtcdIsVoter").get("status") == "True")
    assert "Promoted learner s2-" in made.first.said()


def test_servers_share_their_authorities(made: Made) -> None:
    files = "tls/server-ca.key tls/client-ca.key tls/etcd/peer-ca.key tls/service.key cred/encryption-config.json cred/passwd"
    one, other = (server.machine.sh(f"cd {DATA}/server; sha256sum {files}") for server in (made.first, made.second))
    assert one == other


def test_agents_learn_of_all_servers(made: Made) -> None:
    def known() -> set[str]:
        return set(
            json.loads(made.worker.machine.read(f"{DATA}/agent/etc/k3s-agent-load-balancer.json"))["ServerAddresses"]
        )

    wanted = {f"{server.machine.address}:6443" for server in (made.first, made.second)}
    made.worker.machine.wait("it knows both", lambda: known() == wanted, seconds=60)


def test_an_agent_outlives_the_server_that_it_joined_by(made: Made) -> None:
    third = install(
        made.rig.machine("s3"),
        made.rig.k3s,
        "server",
        {**_SHARED, "server": f"https://{made.second.machine.address}:6443", "agent-token": "agents"},
    )
    third.machine.write(f"{_TOKENS}/token", made.first.token(), "0600")
    timed(made.seconds, "third server", third.start)
    made.first.stop()
    sleeps = {"name": "main", "image": BUSYBOX, "command": ["sleep", "1000"]}
    metadata = {"name": "late", "namespace": "default"}
    client = made.second.client()
    client.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "w1", "containers": [sleeps]}},
        POD,
    )

    def running() -> bool:
        return bool(client.get(POD, "late", "default")["status"].get("phase") == "Running")

    began = time.monotonic()
    made.worker.machine.wait("the pod runs", running, seconds=90)
    made.seconds["pod after the loss"] = round(time.monotonic() - began, 1)
    made.first.start()


def test_a_deleted_node_takes_its_member_along(made: Made) -> None:
    made.client.delete(NODE, "s2")
    made.second.machine.wait("the member has left", lambda: "Removing etcd member s2" in made.first.said())
    names = {one["metadata"]["name"] for one in made.client.list(_SECRET, namespace="kube-system").items}
    assert "s2.node-password.k3s" not in names


def test_a_removed_server_joins_again_as_a_new_member(made: Made) -> None:
    made.second.machine.wait("the node is Ready", lambda: made.ready("s2"))
    assert "tombstone file has been detected" in made.second.said()
    assert made.second.machine.sh(f"ls -d {DATA}/server/db/etcd-old-*").strip()


def test_scheduled_snapshots(made: Made) -> None:
    def taken() -> list[str]:
        return made.first.machine.sh(f"ls {DATA}/server/db/snapshots 2>/dev/null || :").split()

    made.first.machine.wait("one has been taken", lambda: bool(taken()), seconds=90)
    assert len([name for name in taken() if not name.endswith(".part")]) == 1
    assert taken()[0].startswith("etcd-snapshot-s1-")


def test_a_server_with_another_token_than_its_data_is_refused(made: Made) -> None:
    made.first.stop()
    machine = made.first.machine
    machine.write(f"{_TOKENS}/token", "changed\n", "0600")
    assert made.first.refused().endswith("bootstrap data already found and encrypted with different token")
    machine.write(f"{_TOKENS}/token", "servers\n", "0600")
    made.first.start()
