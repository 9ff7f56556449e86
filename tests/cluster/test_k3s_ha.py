# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three servers behind a load balancer of the collection and an agent become a highly available cluster by K3s, on its stand-in."""

from __future__ import annotations

import ssl
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT, VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, REINSTALL, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow
SERVERS = ("s1", "s2", "s3")


@pytest.fixture(scope="module")
def made(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, SERVERS, agents=("a1",), balancer="lb")
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    predicted = site.done("--check").summary["one"]["changes"]
    began = time.monotonic()
    run = site.done()
    print(f"made in {time.monotonic() - began:.0f} s")
    assert run.summary["one"]["changes"] == predicted
    assert [text.partition(":")[0] for text in predicted] == [
        "initialize the cluster on s1",
        "join the server s2",
        "join the server s3",
        "join a1",
    ]
    return site


def versions_and_readiness(site: K3sSite) -> dict[str, tuple[str, str]]:
    found = {}
    for node in site.client().list(NODE).items:
        conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
        found[node["metadata"]["name"]] = (node["status"]["nodeInfo"]["kubeletVersion"], conditions["Ready"])
    return found


def test_all_servers_vote_and_have_one_authority(made: K3sSite) -> None:
    assert versions_and_readiness(made) == dict.fromkeys((*SERVERS, "a1"), (VERSION, "True"))
    assert [made.voters(made.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3
    authorities = {made.machines[name].sh(f"sha256sum <{DATA}/server/tls/server-ca.crt") for name in SERVERS}
    assert len(authorities) == 1
    # Also the first one: without a server, a member that was removed from etcd would make a second cluster at its next start.
    entries = [
        made.machines[name].read("/etc/rancher/k3s/config.yaml.d/55-hwaccel-gpu-cluster.yaml") for name in SERVERS
    ]
    assert [
        f"server: https://{made.machines['lb'].address}:6443" in text and "cluster-init" not in text for text in entries
    ] == [True] * 3
    digest = made.machines["s1"].sh(f"sha256sum <{DATA}/server/tls/server-ca.crt").split()[0]
    for name in SERVERS[1:]:
        assert made.machines[name].read("/etc/rancher/k3s/token").startswith(f"K10{digest}::server:")
    assert made.done().changed() == 0


def test_an_agent_cannot_become_a_server_with_its_token(made: K3sSite) -> None:
    of_servers = made.machines["s1"].read(f"{DATA}/server/token").strip()
    assert of_servers.rpartition(":")[2] not in made.machines["a1"].sh("cat /etc/rancher/k3s/* 2>/dev/null || :")


def test_a_first_server_that_was_installed_anew_joins_and_makes_no_second_cluster(made: K3sSite) -> None:
    before = made.machines["s2"].sh(f"sha256sum <{DATA}/server/tls/server-ca.crt")
    made.machines["s1"].sh(REINSTALL, seconds=120)
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["join the server s1"]
    assert made.machines["s1"].sh(f"sha256sum <{DATA}/server/tls/server-ca.crt") == before
    assert [made.voters(made.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3
    assert made.done().changed() == 0


def test_a_server_that_has_lost_its_disk_of_data_only_joins_again(made: K3sSite) -> None:
    mounts = "cut -d ' ' -f 2 /proc/mounts | grep -E '^(/run/k3s|/var/lib/kubelet|/var/lib/rancher/k3s)/' | sort -r"
    unmounted = f'for path in $({mounts}); do umount "$path" || umount -l "$path" || :; done'
    lost = f"systemctl stop k3s; pkill -9 containerd || :; {unmounted}; find {DATA} -mindepth 1 -delete"
    made.machines["s2"].sh(lost, seconds=120)
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]][-1] == "join the server s2"
    assert [made.voters(made.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3
    assert made.done().changed() == 0


def test_a_later_name_of_the_endpoint_restarts_servers_one_at_a_time(made: K3sSite) -> None:
    made.variables["cluster_k3s_names"] = ["k3s.example.org"]
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        f"update the server {name}" for name in SERVERS
    ]
    for name in SERVERS:
        served = ssl.get_server_certificate((made.machines[name].address, 6443), timeout=30)
        assert "k3s.example.org" in authority.names(served)
    assert made.done().changed() == 0


def test_servers_of_another_version_are_upgraded_while_the_endpoint_answers(made: K3sSite, k3s_rig: K3sRig) -> None:
    made.k3s = k3s_rig.versions[NEXT]
    with Probe(made.machines["lb"].address, path="/cacerts") as probe:
        run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "upgrade the server s1",
        "upgrade the server s2",
        "upgrade the server s3",
        "upgrade a1",
    ]
    print(f"{len(probe.answered)} answers, {len(probe.lost)} lost, gap {probe.gap:.1f} s")
    assert probe.gap < 3 and probe.share_lost <= 0.01, probe.lost[:5]
    assert versions_and_readiness(made) == dict.fromkeys((*SERVERS, "a1"), (NEXT, "True"))
    folder = f"{DATA}/server/db/snapshots"
    assert made.machines["s1"].sh(f"ls {folder} | grep -c before-").strip() == "1"
    assert made.cordoned() == set()
    assert made.done().changed() == 0


def test_an_even_number_of_servers_is_a_fault(made: K3sSite) -> None:
    made.retired = {"s3"}
    run = made.play()
    made.retired = set()
    assert run.rc != 0 and run.changed() == 0
    assert "the cluster has 2 servers" in str(run.summary["one"]["reasons"])


def test_a_retired_server_leaves_etcd_and_joins_again(made: K3sSite) -> None:
    made.variables["hwaccel_even_servers"] = True
    made.retired = {"s1"}
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["take out s1"]
    assert versions_and_readiness(made).keys() == {"s2", "s3", "a1"}
    assert [made.voters(made.machines[name]) for name in ("s2", "s3")] == [{"s2", "s3"}] * 2
    left = "ls -d /etc/rancher /usr/local/bin/k3s /etc/systemd/system/k3s*.service /run/k3s 2>/dev/null || :"
    assert made.machines["s1"].sh(left) == ""
    assert made.done().changed() == 0
    made.retired = set()
    del made.variables["hwaccel_even_servers"]
    assert [text.partition(":")[0] for text in made.done().summary["one"]["changes"]] == ["join the server s1"]
    assert [made.voters(made.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3


def test_a_retired_agent_is_as_before_it_became_one(made: K3sSite) -> None:
    made.retired = {"a1"}
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["take out a1"]
    assert versions_and_readiness(made).keys() == set(SERVERS)
    left = (
        "ls -d /etc/rancher /usr/local/bin/k3s /etc/systemd/system/k3s*.service /var/lib/hwaccel-gpu 2>/dev/null || :"
    )
    assert made.machines["a1"].sh(left) == ""
    made.retired = set()
    assert [text.partition(":")[0] for text in made.done().summary["one"]["changes"]] == ["join a1"]


def test_another_server_takes_the_place_of_one_that_is_lost(made: K3sSite) -> None:
    made.lost = {"s2"}
    # Whoever is first in the inventory initializes nothing where there is a cluster.
    made.servers = ("s4", *SERVERS)
    made.machines["s4"] = made.boot("s4")
    refused = made.play()
    assert refused.rc != 0 and "s2 is lost, and its node is Ready" in refused.summary["one"]["reasons"][0]
    with Probe(made.machines["lb"].address, path="/cacerts") as probe:
        made.machines["s2"].stop()
        made.machines["s1"].wait(
            "s2 to be NotReady", lambda: versions_and_readiness(made)["s2"][1] != "True", seconds=120
        )
    print(f"a server was killed: {len(probe.answered)} answers, {len(probe.lost)} lost, gap {probe.gap:.1f} s")
    assert probe.gap <= 3, probe.lost[:5]
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == [
        "remove what is left of s2",
        "join the server s4",
    ]
    assert versions_and_readiness(made).keys() == {"s1", "s3", "s4", "a1"}
    assert [made.voters(made.machines[name]) for name in ("s1", "s3", "s4")] == [{"s1", "s3", "s4"}] * 3
    assert made.done().changed() == 0
