# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines become a highly available cluster by kubeadm, for real: three servers behind a load balancer of the collection, and an agent."""

from __future__ import annotations

import base64
import dataclasses
import json
import pathlib
import subprocess
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.places import STATIC_PODS
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.expiry import expire, last_day
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import secrets_shown
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import PKI, REINSTALL, SECRETS, Site, nft, voters
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE, POD
from ansible_collections.hwaccel.gpu.tests.node.rig.images import PAUSE
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
#: kubeadm runs on the agent, the last one of four machines to become a node.
_AGENT_JOINS = Kill("hwaccel.gpu.cluster_kubeadm : kubeadm | Wait until it has ended", 4, 0.5)


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, servers=("cp1", "cp2", "cp3"), agents=("w1",), balancer="lb")
    site.labels = {"w1": {"example.com/pool": "a100"}}
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    return site


@pytest.fixture(scope="module")
def bare(site: Site) -> dict[str, dict[str, set[str]]]:
    """What machines are before they become nodes, with rules and an interface of others."""
    return {name: occupied(site.machines[name]) for name in ("cp2", "w1")}


@pytest.fixture(scope="module")
def predicted(site: Site, bare: dict[str, dict[str, set[str]]]) -> list[str]:
    """What check mode says on bare machines."""
    run = site.done("--check")
    assert site.machines["cp1"].sh("ls /etc/kubernetes /usr/bin/kubeadm 2>/dev/null || :") == ""
    assert run.changed() > 0
    return list(run.summary["one"]["changes"])


@dataclasses.dataclass(frozen=True)
class Interrupted:
    """log: what the run has printed. secrets: of it. shown: machines on which processes had one of them while the agent was joining."""

    log: str
    secrets: tuple[str, str]
    shown: list[tuple[str, str]]


@pytest.fixture(scope="module")
def interrupted(site: Site, predicted: list[str], tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    """The run that makes the cluster is killed while the agent joins."""
    folder = tmp_path_factory.mktemp("interrupted")
    kept = {"HWACCEL_STARTED": str(folder / "started"), "ANSIBLE_LOG_PATH": str(folder / "log")}
    assert site.killed(_AGENT_JOINS.reached(folder / "started"), "-vvv", "--diff", environment=kept, timeout=2400)
    (found,) = (
        one
        for one in yaml.safe_load_all(site.machines["cp1"].read(f"{SECRETS}/init.yaml"))
        if one["kind"] == "InitConfiguration"
    )
    # The first part of a token is no secret.
    secrets = (found["bootstrapTokens"][0]["token"].partition(".")[2], found["certificateKey"])
    shown = secrets_shown(site.machines.values(), secrets, ["processes"])
    return Interrupted((folder / "log").read_text(encoding="utf-8"), secrets, shown)


@pytest.fixture(scope="module")
def made(site: Site, predicted: list[str], interrupted: Interrupted) -> Site:
    assert [text.partition(":")[0] for text in predicted] == [
        "initialize the cluster on cp1",
        "join the server cp2",
        "join the server cp3",
        "join w1",
    ]
    # What check mode has said is what the run has begun to do.
    assert not [text for text in predicted if text not in interrupted.log]
    run = site.done()
    print("\n".join(run.summary["one"]["changes"]))
    slowest = sorted(((task.get("seconds", 0.0), task["name"], task["host"]) for task in run.tasks), reverse=True)[:8]
    print("\n".join(f"{seconds:6.1f} s  {name} ({host})" for seconds, name, host in slowest))
    return site


def client(site: Site) -> Client:
    """As an administrator, at the endpoint."""
    config = yaml.safe_load(site.machines["cp2"].read("/etc/kubernetes/admin.conf"))
    assert config["clusters"][0]["cluster"]["server"] == f"https://{site.machines['lb'].address}:6443"
    return connect({"kubeconfig": config})


def manifests(machine: Machine) -> dict[str, str]:
    """Of static pods, by their names. Containers that lose the API server for a while end as well."""
    return {name: machine.read(f"/etc/kubernetes/manifests/{name}.yaml") for name in STATIC_PODS}


def started(machine: Machine) -> list[int]:
    """When containerd and the kubelet have started, by the clock of the kernel, which all machines share."""
    show = "systemctl show --property=ActiveEnterTimestampMonotonic --value"
    return [int(machine.sh(f"{show} {unit}")) for unit in ("containerd", "kubelet")]


def served_names(machine: Machine) -> set[str]:
    """Of the certificate that the API server serves."""
    script = f"import ssl; print(ssl.get_server_certificate(('{machine.address}', 6443)))"
    return authority.names(machine.execute("python3", "-c", script).stdout)


def nodes(site: Site) -> dict[str, dict[str, t.Any]]:
    return {one["metadata"]["name"]: one for one in client(site).list(NODE).items}


def is_ready(node: dict[str, t.Any]) -> bool:
    return {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"] == "True"


@pytest.mark.slow
@pytest.mark.usefixtures("predicted")
def test_a_program_of_which_a_byte_was_changed_is_refused(site: Site, tmp_path: pathlib.Path) -> None:
    """All comes from files of the controller: machines reach nothing but one another, as the rig's namespace has no route."""
    assert subprocess.run(["ip", "route", "show", "default"], check=True, capture_output=True).stdout == b""
    before = dict(site.variables)
    programs = site.cluster()["cluster_kubeadm_programs"]
    changed = bytearray(pathlib.Path(programs[1]["source"]).read_bytes())
    changed[-1] ^= 1
    (tmp_path / "kubelet").write_bytes(changed)
    site.variables["cluster_kubeadm_programs"] = [programs[0], {**programs[1], "source": str(tmp_path / "kubelet")}]
    run = site.play("cluster_kubeadm")
    site.variables = before
    assert run.rc != 0 and run.changed() == 0
    assert f"{tmp_path / 'kubelet'} is another file than the one that is set" in run.summary["one"]["reasons"][0]
    for name in (*site.servers, *site.agents):
        assert site.machines[name].sh("ls /usr/bin/kubeadm /usr/bin/kubelet /etc/kubernetes 2>/dev/null || :") == ""


def test_all_machines_are_ready_nodes_of_one_cluster(made: Site) -> None:
    found = nodes(made)
    assert found.keys() == {"cp1", "cp2", "cp3", "w1"}
    for name, node in found.items():
        assert is_ready(node), name
        assert node["status"]["addresses"][0]["address"] == made.machines[name].address
    assert found["w1"]["metadata"]["labels"]["example.com/pool"] == "a100"
    authorities = {made.machines[name].sh("sha256sum </etc/kubernetes/pki/ca.crt") for name in found}
    assert len(authorities) == 1
    assert [voters(made.machines[name]) for name in made.servers] == [{"cp1", "cp2", "cp3"}] * 3


def test_secrets_of_the_run_are_gone_and_have_shown_nowhere(made: Site, interrupted: Interrupted) -> None:
    """Those of the run that was killed, which the next one has to remove, too."""
    assert made.secrets_left() == []
    assert "kubeadm | Start it" in interrupted.log
    assert not [secret for secret in interrupted.secrets if secret in interrupted.log]
    assert interrupted.shown == []
    machines = [made.machines[name] for name in (*made.servers, *made.agents)]
    assert secrets_shown(machines, interrupted.secrets) == []
    looks = ("grep", "-rlFf", "-", "/etc", "/var/lib/hwaccel-gpu", "/var/lib/kubelet")
    assert [one.execute(*looks, check=False, stdin="\n".join(interrupted.secrets)).stdout for one in machines] == [
        ""
    ] * 4


def test_a_second_run_changes_nothing(made: Site) -> None:
    run = made.done()
    assert run.changed() == 0, run.stdout[-6000:]
    assert all(one["changes"] == [] for one in run.summary.values())


@pytest.mark.slow
def test_a_node_whose_machine_has_left_the_inventory_is_told_and_left_alone(made: Site) -> None:
    made.agents = ()
    try:
        run = made.done()
    finally:
        made.agents = ("w1",)
    assert "Nodes without a machine in the inventory, which are left alone: w1." in run.stdout
    assert run.changed() == 0
    assert is_ready(nodes(made)["w1"]) and made.cordoned() == set()


@pytest.mark.slow
def test_a_changed_configuration_is_taken_over_in_turns(made: Site) -> None:
    """By what it concerns: the API server's certificate and arguments, kubelets, kube-proxy; and what is not set any more is gone again."""
    before, usual = dict(made.variables), made.cluster()["cluster_kubeadm_configuration"]
    pods = {name: manifests(made.machines[name]) for name in made.servers}
    changed = {
        **usual,
        "ClusterConfiguration": {"apiServer": {"extraArgs": [{"name": "event-ttl", "value": "2h0m0s"}]}},
        "KubeletConfiguration": {**usual["KubeletConfiguration"], "maxPods": 77},
        "KubeProxyConfiguration": {**usual["KubeProxyConfiguration"], "nodePortAddresses": ["127.0.0.0/8"]},
    }
    made.variables |= {"cluster_kubeadm_configuration": changed, "cluster_kubeadm_names": ["api.example.com"]}
    # All machines have the file before the first turn, and none loads it before its own.
    pause = made.variables["cluster_kubeadm_pause_image"] = "registry.k8s.io/pause:3.10.9"
    for name in (*made.servers, "w1"):
        made.machines[name].sh(f"ctr --namespace k8s.io images tag {PAUSE} {pause}")
    try:
        predicted = made.done("--check").summary["one"]["changes"]
        run = made.done()
        assert run.summary["one"]["changes"] == predicted
        assert [text.partition(":")[0] for text in predicted] == [
            "change the configuration of the cluster on cp1",
            *(f"update the server {name}" for name in made.servers),
            "update w1",
        ]
        for name in made.servers:
            machine = made.machines[name]
            assert "--event-ttl=2h0m0s" in machine.read("/etc/kubernetes/manifests/kube-apiserver.yaml")
            assert "api.example.com" in served_names(machine)
            # The others go on. kubeadm writes etcd's without the members that were there at its beginning.
            assert {pod for pod, text in manifests(machine).items() if pods[name][pod] != text} <= {
                "kube-apiserver",
                "etcd",
            }
        assert {node["status"]["capacity"]["pods"] for node in nodes(made).values()} == {"77"}
        assert made.cordoned() == set()
        starts = [moment for name in (*made.servers, "w1") for moment in started(made.machines[name])]
        assert starts == sorted(starts), "containerd and kubelet of one machine after the other"
        second = made.done()
        assert second.changed() == 0, second.stdout[-6000:]
    finally:
        made.variables = before
    back = made.done()
    assert back.summary["one"]["changes"][0].startswith("change the configuration of the cluster on cp1: Cluster")
    assert "event-ttl" not in made.machines["cp3"].read("/etc/kubernetes/manifests/kube-apiserver.yaml")
    assert {node["status"]["capacity"]["pods"] for node in nodes(made).values()} == {"110"}
    assert made.done().changed() == 0


def test_what_a_cluster_is_made_with_is_not_changed(made: Site) -> None:
    before = dict(made.variables)
    made.variables |= {"cluster_kubeadm_service_network": "10.112.0.0/12", "cluster_kubeadm_proxy_mode": "none"}
    try:
        run = made.play("cluster_kubeadm")
    finally:
        made.variables = before
    assert run.rc != 0
    reasons = run.summary["one"]["reasons"]
    assert [one.partition(" (")[0] for one in reasons] == [
        "the network of Services of a cluster cannot be changed",
        "the cluster has a kube-proxy",
    ]
    assert run.changed() == 0


def test_the_gpu_stages_reach_the_cluster_without_credentials_in_the_inventory(made: Site) -> None:
    run = made.play("preflight")
    assert run.rc == 0, run.stdout[-6000:]
    (found,) = run.results("cluster_preflight")
    assert found["fleet"]["cluster_uid"]
    assert not found["assumed"]
    key = yaml.safe_load(made.machines["cp1"].read("/etc/kubernetes/admin.conf"))["users"][0]["user"]["client-key-data"]
    assert key not in run.stdout and base64.b64decode(key).decode("ascii") not in run.stdout


@pytest.mark.slow
def test_a_first_server_that_was_installed_anew_joins_and_makes_no_second_cluster(made: Site) -> None:
    before = made.machines["cp2"].sh("sha256sum </etc/kubernetes/pki/ca.crt")
    made.machines["cp1"].sh(REINSTALL)
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["join the server cp1"]
    assert made.machines["cp1"].sh("sha256sum </etc/kubernetes/pki/ca.crt") == before
    assert nodes(made).keys() == {"cp1", "cp2", "cp3", "w1"}
    assert [voters(made.machines[name]) for name in made.servers] == [{"cp1", "cp2", "cp3"}] * 3
    assert made.done().changed() == 0


@pytest.mark.slow
def test_a_learner_that_never_catches_up_stops_the_run_and_the_next_one_joins_it(made: Site) -> None:
    """Its etcd does not reach those of the others, of which kubeadm asks that it votes."""
    first = made.machines["cp1"]
    first.sh(REINSTALL)
    nft(first, "add table inet nobody; add chain inet nobody out { type filter hook output priority 0; }")
    nft(first, f"add rule inet nobody out ip daddr != {first.address} tcp dport 2380 drop")
    run = made.play("cluster_kubeadm")
    assert run.rc != 0
    (reason,) = run.summary["one"]["reasons"]
    assert "cp1" in reason and "does not catch up with the leader" in reason
    assert [voters(made.machines[name]) for name in ("cp2", "cp3")] == [{"cp2", "cp3"}] * 2
    nft(first, "delete table inet nobody")
    again = made.done()
    assert [text.partition(":")[0] for text in again.summary["one"]["changes"]] == [
        "reset cp1",
        "join the server cp1",
    ]
    assert [voters(made.machines[name]) for name in made.servers] == [{"cp1", "cp2", "cp3"}] * 3
    assert made.done().changed() == 0


def loaded(machine: Machine) -> dict[str, str]:
    """When the processes of its static pods were started, by name."""
    script = "for p in /proc/[0-9]*; do echo \"$(cat $p/comm) $(cut -d ' ' -f 22 $p/stat)\"; done 2>/dev/null || :"
    found = dict(line.rsplit(" ", 1) for line in machine.sh(script).splitlines() if " " in line)
    return {name: found.get(name, "") for name in ("etcd", "kube-apiserver", "kube-controller", "kube-scheduler")}


@pytest.mark.slow
def test_certificates_that_expire_soon_are_renewed_and_loaded_on_that_server_only(made: Site) -> None:
    second, third = made.machines["cp2"], made.machines["cp3"]
    expire(second, 12.5)
    before = {name: loaded(made.machines[name]) for name in made.servers}
    run = made.done()
    assert run.summary["one"]["changes"] == [
        "update the server cp2: a certificate of its control plane expires in 12 days"
    ]
    after = {name: loaded(made.machines[name]) for name in made.servers}
    assert all(after["cp2"][name] not in ("", before["cp2"][name]) for name in before["cp2"])
    assert (after["cp1"], after["cp3"]) == (before["cp1"], before["cp3"])
    assert last_day(second, f"{PKI}/peer.crt") > last_day(third, f"{PKI}/peer.crt")
    assert made.done().changed() == 0


@pytest.mark.slow
def test_a_cluster_whose_certificates_have_all_expired_is_brought_back(made: Site) -> None:
    for name in made.servers:
        expire(made.machines[name], -2)
    for name in made.servers:
        made.machines[name].sh("pkill kube-apiserver; pkill etcd; pkill kube-scheduler; pkill kube-controller; true")
    run = made.done()
    assert run.summary["one"]["changes"] == ["renew the certificates of cp1, cp2, cp3: they have expired"]
    assert [voters(made.machines[name]) for name in made.servers] == [{"cp1", "cp2", "cp3"}] * 3
    assert nodes(made).keys() == {"cp1", "cp2", "cp3", "w1"}
    assert made.done().changed() == 0


@pytest.mark.slow
def test_an_agent_whose_pods_have_no_network_stays_cordoned_until_they_have_it_again(made: Site) -> None:
    agent = made.machines["w1"]
    # Those of DNS leave the node in its turn, wherever they are now.
    others = [str(machine.port.pods) for name, machine in made.machines.items() if name in made.servers]
    # A turn, and packets of its pods that do not reach those on other nodes.
    agent.sh("touch /var/lib/kubelet/config.yaml")
    for network in others:
        agent.sh(f"ip route add prohibit {network}")
    made.variables["cluster_kubeadm_timeout"] = 60
    run = made.play("cluster_kubeadm", timeout=2400)
    assert run.rc != 0
    (reason,) = run.summary["one"]["reasons"]
    assert "Pods of w1 do not reach what every pod needs" in reason
    assert "the cluster's DNS at 10.96.0.10:53" in reason and "the API server's Service" not in reason
    assert "pods of DNS on other nodes: " in reason
    assert made.cordoned() == {"w1"}
    for network in others:
        agent.sh(f"ip route del prohibit {network}")
    again = made.done()
    assert again.summary["one"]["changes"] == ["update w1: an earlier run was interrupted there"]
    assert made.cordoned() == set()
    assert not [one for one in client(made).list(POD).items if "network-check" in one["metadata"]["name"]]
    assert made.done().changed() == 0


def rules(machine: Machine) -> list[str]:
    """Rules of nftables, and chains that are no hooks. iptables leaves empty hooks."""
    listed = json.loads(nft(machine, "--json", "list", "ruleset"))["nftables"]
    made = [one for one in listed if "rule" in one or ("chain" in one and "hook" not in one["chain"])]
    return [json.dumps(one, sort_keys=True) for one in made]


def walk(machine: Machine) -> dict[str, set[str]]:
    """What a machine is, without what its container runtime and the plugins of the rig's network keep, which were there before."""
    paths = (
        "/etc /usr/bin /usr/local/bin /var/lib/kubelet /var/lib/etcd /var/lib/hwaccel-gpu /run/systemd/system"
        " /var/log/pods /var/log/containers"
    )
    ignored = "! -name '*.dpkg-*' ! -path '/etc/.pwd.lock' ! -path '/etc/resolv.conf'"
    told = r"\( -type d -printf '%p %y %m\n' -o -printf '%p %y %m %s\n' \)"
    script = f"find {paths} -xdev {ignored} {told} 2>/dev/null || :"
    own = " ".join(f"! -name {name}" for name in ("containerd", "motd.dynamic", "netns", "xtables.lock"))
    # Counters, and what the kernel chooses by itself.
    settings = "sysctl -a 2>/dev/null | grep -E '^(net|fs[.]inotify)[.]' | grep -vE 'nf_conntrack_count|fastopen_key|stable_secret' || :"
    return {
        "files": set(machine.sh(script).splitlines()),
        # Programs of the machine make some by themselves.
        "runtime": set(machine.sh(f"find /run -maxdepth 1 {own} -printf '%p %y\n'").splitlines()),
        "mounts": {line.split()[1] for line in machine.read("/proc/mounts").splitlines()},
        "interfaces": {line.split(":")[0].strip() for line in machine.read("/proc/net/dev").splitlines()[2:]},
        "rules": set(rules(machine)),
        "units": set(
            machine.sh("systemctl list-unit-files --no-legend kubelet.service containerd.service || :").split()
        ),
        "control groups": set(machine.sh("find /sys/fs/cgroup -type d -name 'kube*'").splitlines()),
        "sysctls": set(machine.sh(settings).splitlines()),
    }


def occupied(machine: Machine) -> dict[str, set[str]]:
    """What a machine is that has rules and an interface of others, which are to stay."""
    nft(machine, "add table inet others; add chain inet others in { type filter hook input priority 0; }")
    nft(machine, "add rule inet others in tcp dport 9 drop")
    machine.sh("ip link add others type bridge")
    return walk(machine)


def differences(
    before: dict[str, set[str]], machine: Machine, stays: str = "nothing"
) -> dict[str, tuple[list[str], list[str]]]:
    """What a machine has now, and what it has not any more. stays: a folder that is meant to."""
    after = walk(machine)
    found = {
        name: (
            sorted(one for one in after[name] - value if not one.startswith(stays)),
            sorted(value - after[name]),
        )
        for name, value in before.items()
    }
    found = {name: both for name, both in found.items() if both != ([], [])}
    print(machine.name, found)
    return found


@pytest.mark.slow
def test_a_retired_agent_is_as_before_it_became_one(made: Site) -> None:
    made.machines["w2"] = made.boot("w2")
    before = occupied(made.machines["w2"])
    made.agents = (*made.agents, "w2")
    assert [text.partition(":")[0] for text in made.done().summary["one"]["changes"]] == ["join w2"]
    made.retired = {"w2"}
    run = made.done()
    assert run.summary["one"]["changes"] == ["take out w2: it is retired"]
    assert nodes(made).keys() == {"cp1", "cp2", "cp3", "w1"}
    assert differences(before, made.machines["w2"]) == {}
    assert made.done().changed() == 0


@pytest.mark.slow
def test_what_is_left_of_a_lost_server_is_removed_and_another_one_joins_in_its_place(
    made: Site, bare: dict[str, dict[str, set[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    made.lost = {"cp3"}
    made.servers = (*made.servers, "cp4")
    made.machines["cp4"] = made.boot("cp4")
    bare["cp4"] = occupied(made.machines["cp4"])
    refused = made.play("cluster_kubeadm")
    assert refused.rc != 0
    assert "cp3 is lost, and its node is Ready" in refused.summary["one"]["reasons"][0]
    with Probe(made.machines["lb"].address) as probe:
        made.machines["cp3"].stop()
        made.machines["cp1"].wait("cp3 to be NotReady", lambda: not is_ready(nodes(made)["cp3"]))
    with capsys.disabled():
        print(
            f"\na server was killed: {len(probe.answered)} requests answered, {len(probe.lost)} lost; longest time without an answer: {probe.gap:.1f} s"
        )
    assert probe.gap <= 3, probe.lost
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "remove what is left of cp3",
        "join the server cp4",
    ]
    assert nodes(made).keys() == {"cp1", "cp2", "cp4", "w1"}
    assert [voters(made.machines[name]) for name in ("cp1", "cp2", "cp4")] == [{"cp1", "cp2", "cp4"}] * 3
    assert made.done().changed() == 0


@pytest.mark.slow
def test_a_retired_server_leaves_etcd_while_the_others_go_on(made: Site) -> None:
    # Two servers are left, which is known here.
    made.variables["hwaccel_even_servers"] = True
    made.retired = {"w2", "cp1"}
    run = made.done()
    assert run.summary["one"]["changes"] == ["take out cp1: it is retired"]
    assert nodes(made).keys() == {"cp2", "cp4", "w1"}
    assert [voters(made.machines[name]) for name in ("cp2", "cp4")] == [{"cp2", "cp4"}] * 2
    assert made.done().changed() == 0


@pytest.mark.slow
def test_a_cluster_is_removed_only_where_its_uid_was_confirmed(
    made: Site, bare: dict[str, dict[str, set[str]]]
) -> None:
    uid = client(made).get(_NAMESPACE, "kube-system")["metadata"]["uid"]
    entry = ("-e", "cluster_kubeadm_entry=teardown")
    listed = made.done(*entry)
    assert f"-e hwaccel_confirm={uid}" in listed.stdout and "cp2, cp4, w1" in listed.stdout
    assert listed.changed() == 0
    refused = made.play("cluster_kubeadm", *entry, "-e", "hwaccel_confirm=another")
    assert refused.rc != 0 and "hwaccel_confirm names another cluster" in refused.stdout
    assert nodes(made).keys() == {"cp2", "cp4", "w1"}
    made.done(*entry, "-e", f"hwaccel_confirm={uid}")
    for name in ("cp2", "cp4", "w1"):
        machine = made.machines[name]
        assert machine.sh("ls /etc/kubernetes /var/lib/etcd /usr/bin/kubeadm /usr/bin/kubelet 2>/dev/null || :") == ""
        # Snapshots of etcd stay.
        assert differences(bare[name], machine, "/var/lib/hwaccel-gpu" if name in made.servers else "nothing") == {}
    again = made.done(*entry)
    assert again.changed() == 0
