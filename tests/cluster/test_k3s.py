# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines become a cluster by the role cluster_k3s: a server and an agent, on a stand-in for K3s of real parts (tests/cluster/k3s)."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT, VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, FOLDER, K3sSite
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

#: Planted.
PASSWORD = "of-the-registry"
REGISTRIES = {
    "mirrors": {"registry.example.com": {"endpoint": ["https://mirror.example.com:5000"]}},
    "configs": {
        "mirror.example.com:5000": {
            "auth": {"username": "puller", "password": PASSWORD},
            "tls": {"ca_file": "/etc/ssl/mirror.crt"},
        }
    },
}


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, servers=("s1",), agents=("a1",))
    site.labels = {"a1": {"example.com/pool": "orin"}}
    site.variables["cluster_k3s_registries"] = REGISTRIES
    return site


@pytest.fixture(scope="module")
def predicted(site: K3sSite) -> list[str]:
    """What check mode says on bare machines."""
    run = site.done("--check")
    assert site.machines["s1"].sh(f"ls /usr/local/bin/k3s /etc/rancher {FOLDER} 2>/dev/null || :") == ""
    assert run.changed() > 0
    return list(run.summary["one"]["changes"])


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """By the run that makes the cluster."""
    return []


@pytest.fixture(scope="module")
def made(site: K3sSite, predicted: list[str], printed: list[str]) -> K3sSite:
    run = site.done("--diff", "-vvv")
    printed.append(run.stdout)
    assert run.summary["one"]["changes"] == predicted
    assert [text.partition(":")[0] for text in predicted] == ["initialize the cluster on s1", "join a1"]
    assert "without which no snapshot can be restored" in run.stdout
    slowest = sorted(((task.get("seconds", 0.0), task["name"], task["host"]) for task in run.tasks), reverse=True)[:8]
    print("\n".join(f"{seconds:6.1f} s  {name} ({host})" for seconds, name, host in slowest))
    return site


def nodes(site: K3sSite) -> dict[str, dict[str, t.Any]]:
    return {one["metadata"]["name"]: one for one in site.client().list(NODE).items}


def test_all_machines_are_ready_nodes_of_one_cluster(made: K3sSite) -> None:
    found = nodes(made)
    assert found.keys() == {"s1", "a1"}
    for node in found.values():
        assert {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"] == "True"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == VERSION
    assert found["a1"]["metadata"]["labels"]["example.com/pool"] == "orin"


def test_tokens_are_where_only_root_can_read_them(made: K3sSite, printed: list[str]) -> None:
    server, agent = made.machines["s1"], made.machines["a1"]
    whole = server.read(f"{DATA}/server/token").strip()
    of_agents = server.read("/etc/rancher/k3s/agent-token").strip()
    secrets = [whole.rpartition(":")[2], of_agents, PASSWORD]
    assert [secret for secret in secrets if secret in printed[0]] == []
    # Agents have one of their own, which has the fingerprint of the authority.
    assert agent.read("/etc/rancher/k3s/token").strip() == server.read(f"{DATA}/server/agent-token").strip()
    assert agent.read("/etc/rancher/k3s/token").startswith("K10") and of_agents in agent.read("/etc/rancher/k3s/token")
    for machine in (server, agent):
        shown = machine.sh(
            "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ /etc/systemd/system/k3s* 2>/dev/null | tr '\\0' '\\n'; journalctl --no-pager"
        )
        assert [secret for secret in secrets if secret in shown] == []
        modes = machine.sh("find /etc/rancher /var/lib/hwaccel-gpu -type f -printf '%m %p\\n'").splitlines()
        assert [line for line in modes if not line.startswith("600 ")] == []
        readable = machine.sh(f"grep -rlE '{'|'.join(secrets)}' /etc /opt /run /tmp /root 2>/dev/null || :").split()
        files = ("token", "agent-token", "registries.yaml")
        assert set(readable) <= {f"/etc/rancher/k3s/{name}" for name in files}
        hosts = machine.read(f"{DATA}/agent/etc/containerd/certs.d/registry.example.com/hosts.toml")
        assert "https://mirror.example.com:5000" in hosts and "/etc/ssl/mirror.crt" in hosts and PASSWORD not in hosts


def test_a_second_run_changes_nothing(made: K3sSite) -> None:
    before = {
        name: machine.sh("systemctl show --property=InvocationID k3s k3s-agent")
        for name, machine in made.machines.items()
    }
    run = made.done()
    assert run.changed() == 0, run.stdout[-4000:]
    assert "no snapshot can be restored" not in run.stdout
    for machine in made.machines.values():
        # K3s warns of options that it does not know, and goes on.
        assert "nknown flag" not in machine.sh("journalctl --no-pager --unit k3s --unit k3s-agent")
    assert {
        name: machine.sh("systemctl show --property=InvocationID k3s k3s-agent")
        for name, machine in made.machines.items()
    } == before


@pytest.mark.slow
def test_the_token_of_servers_is_written_to_a_file_for_its_owner(made: K3sSite, tmp_path: t.Any) -> None:
    path = tmp_path / "token"
    run = made.done("-e", "cluster_k3s_entry=export_token", "-e", f"cluster_k3s_token_file={path}")
    assert path.read_text(encoding="utf-8") == made.machines["s1"].read(f"{DATA}/server/token")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text(encoding="utf-8").strip() not in run.stdout


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"cluster_k3s_pod_network": "10.99.0.0/16"}, "the network of pods of the cluster is 10.42.0.0/16"),
        ({"cluster_k3s_configuration": {"token": "x"}}, "token cannot be set there"),
        ({"cluster_k3s_version": "v1.34.1+k3s1"}, "is installed, and 1.34.1+k3s1 is set"),
    ],
)
def test_what_cannot_be_stops_before_anything_is_changed(made: K3sSite, variables: dict[str, t.Any], told: str) -> None:
    before = dict(made.variables)
    made.variables |= variables
    try:
        run = made.play()
    finally:
        made.variables = before
    assert run.rc != 0 and run.changed() == 0
    assert told in json.dumps(run.summary)


@pytest.mark.slow
def test_a_changed_setting_is_taken_over_in_turns(made: K3sSite) -> None:
    made.variables["cluster_k3s_configuration"] = {"kubelet-arg": ["max-pods=77"]}
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["update the server s1", "update a1"]
    assert {node["status"]["capacity"]["pods"] for node in nodes(made).values()} == {"77"}
    assert made.done().changed() == 0


def test_another_version_is_an_upgrade(made: K3sSite, k3s_rig: K3sRig) -> None:
    made.k3s = k3s_rig.versions[NEXT]
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["upgrade the server s1", "upgrade a1"]
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes(made).values()} == {NEXT}
    assert made.cordoned() == set()
    assert made.done().changed() == 0


@pytest.mark.slow
def test_a_removed_cluster_leaves_nothing(made: K3sSite) -> None:
    uid = made.machines["s1"].sh("k3s kubectl get namespace kube-system -o jsonpath={.metadata.uid}").strip()
    told = made.play("", "-e", "cluster_k3s_entry=teardown")
    assert f"hwaccel_confirm={uid}" in told.stdout and nodes(made).keys() == {"s1", "a1"}
    made.done("-e", "cluster_k3s_entry=teardown", "-e", f"hwaccel_confirm={uid}")
    for machine in made.machines.values():
        left = machine.sh(
            "ls -d /etc/rancher /usr/local/bin/k3s /etc/systemd/system/k3s*.service /var/lib/hwaccel-gpu /run/k3s 2>/dev/null || :; "
            "ls -A /var/lib/rancher /var/lib/kubelet; ip -o link show | grep -E 'cni0|flannel' || :; pgrep -af 'k3s|containerd-shim' || :"
        )
        assert [line for line in left.splitlines() if line and not line.endswith(":")] == []
