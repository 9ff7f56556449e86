# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From bare machines to a GPU on which a pod has computed, by site, and from one version to the next, for real.

Three servers behind a load balancer and two agents, one of them with GPUs of tests/node. Tests use the same cluster, in their order.
"""

from __future__ import annotations

import concurrent.futures
import json
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.cluster.rig import gpus, programs
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig, ensure_parts
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import gpus_of
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import simulate_gpus
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
_FOLDER = "/var/lib/hwaccel-gpu/cluster_kubeadm"


def _next(version: str) -> str:
    """The next patch version."""
    minor, _dot, patch = version.rpartition(".")
    return f"{minor}.{int(patch) + 1}"


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    try:
        parts = gpus.ensure_gpus(say)
    except Unavailable as missing:
        pytest.skip(str(missing))
    site = Site(rig, ("cp1", "cp2", "cp3"), ("w1", "w2"), "lb", gpus={"w1": 2}, gpu_parts=parts)
    site.labels = {"w1": {"pool": "a"}}
    site.variables |= gpus.variables([gpus.pool("a", "pool=a", 2)])
    # Pods of the system with an emptyDir lose nothing.
    site.variables["cluster_kubeadm_drain_delete_emptydir_data"] = True
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    return site


def client(site: Site) -> Client:
    return connect({"kubeconfig": yaml.safe_load(site.machines["cp2"].read("/etc/kubernetes/admin.conf"))})


def versions(site: Site) -> dict[str, str]:
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in client(site).list(NODE).items
    }


def begun(machine: Machine) -> bool:
    """Whether its turn has begun, and has not ended."""
    return machine.sh(f"ls {_FOLDER}/turn.json 2>/dev/null || :") != ""


def cordoned(site: Site) -> set[str]:
    return {node["metadata"]["name"] for node in client(site).list(NODE).items if node["spec"].get("unschedulable")}


def test_site_makes_the_cluster_and_a_pod_computes_on_its_gpus(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    checked = site.play("site", "--check")
    assert checked.rc == 0, checked.stdout[-6000:]
    assert site.machines["cp1"].sh("ls /etc/kubernetes /usr/bin/kubeadm 2>/dev/null || :") == ""
    began = time.monotonic()
    made = site.play("site")
    middle = time.monotonic()
    assert made.rc == 0, made.stdout[-8000:]
    assert gpus_of(client(site).get(NODE, "w1")) == 2
    second = site.play("site")
    with capsys.disabled():
        print(f"\nsite: {middle - began:.0f} s; the second run: {time.monotonic() - middle:.0f} s")
    assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]


def test_an_upgrade_that_was_killed_goes_on_and_clients_do_not_notice(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.parts = ensure_parts(say, _next(programs.VERSION))
    planned = site.done("--check").summary["one"]["changes"]
    assert [text.partition(":")[0] for text in planned] == [
        "upgrade the server cp1",
        "upgrade the server cp2",
        "upgrade the server cp3",
        "upgrade w1, w2",
    ]
    assert set(versions(site).values()) == {programs.VERSION}
    second = site.machines["cp2"]
    with Probe(site.machines["lb"].address) as probe:
        # In the turn of the second server, the first one is done.
        killed = site.rig.killed(
            "cluster_kubeadm",
            site.groups(),
            lambda: begun(second),
            {"one": site.cluster()},
        )
        assert killed
        assert not begun(site.machines["cp1"])
        assert versions(site)["cp1"] == site.parts.programs.version
        run = site.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == planned_after(planned)
    assert set(versions(site).values()) == {site.parts.programs.version}
    assert cordoned(site) == set()
    with capsys.disabled():
        print(
            f"\n{len(probe.answered)} requests answered, {len(probe.lost)} lost; longest time without an answer: {probe.gap:.1f} s"
        )
    assert probe.share_lost <= 0.01, probe.lost
    assert probe.gap <= 3, probe.lost
    assert site.done().changed() == 0


def planned_after(planned: list[str]) -> list[str]:
    """Steps that are left once the first server is done."""
    return [text.partition(":")[0] for text in planned[1:]]


def test_a_snapshot_was_taken_before_that_can_be_read(site: Site) -> None:
    names = site.machines["cp1"].sh(f"ls {_FOLDER}/snapshots").split()
    assert names
    check = "import hashlib,sys; data=open(sys.argv[1],'rb').read(); print(hashlib.sha256(data[:-32]).digest()==data[-32:], len(data))"
    for name in names:
        good, size = site.machines["cp1"].execute("python3", "-c", check, f"{_FOLDER}/snapshots/{name}").stdout.split()
        assert good == "True" and int(size) > 100_000


def test_a_node_whose_gpus_do_not_come_back_stops_the_upgrade_and_stays_cordoned(site: Site) -> None:
    site.parts = ensure_parts(say, _next(site.parts.programs.version)) if site.parts else None
    site.variables |= {"hwaccel_machines_at_a_time": 1, "cluster_kubeadm_timeout": 240}
    broken = site.machines["w1"]

    def break_it() -> None:
        broken.wait("its turn has begun", lambda: begun(broken), seconds=1800)
        simulate_gpus(broken, 2, {"xid": {"1": 79}})

    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        breaking = beside.submit(break_it)
        run = site.play("cluster_kubeadm", timeout=2400)
        breaking.result()
    assert run.rc != 0
    (reason,) = run.summary["one"]["reasons"]
    assert "w1 had GPUs before the upgrade" in reason
    runs = versions(site)
    assert runs["w1"] == site.parts.programs.version != runs["w2"]
    assert cordoned(site) == {"w1"}
    assert json.loads(broken.read(f"{_FOLDER}/turn.json")) == {"gated": True}
    simulate_gpus(broken, 2)
    again = site.done()
    assert [text.partition(":")[0] for text in again.summary["one"]["changes"]] == ["upgrade w1", "upgrade w2"]
    assert cordoned(site) == set()
    assert set(versions(site).values()) == {site.parts.programs.version}


def test_no_server_is_taken_away_while_another_one_is_not_healthy(site: Site) -> None:
    site.parts = ensure_parts(say, _next(site.parts.programs.version)) if site.parts else None
    before: dict[str, t.Any] = versions(site)
    site.machines["cp3"].sh("systemctl stop kubelet")
    try:
        run = site.play("cluster_kubeadm")
        assert run.rc != 0
        (reason,) = run.summary["one"]["reasons"]
        assert "cp1 was not upgraded, because cp3 is not healthy: the kubelet: " in reason
        assert versions(site) == before
        assert cordoned(site) == set()
        assert not begun(site.machines["cp1"])
    finally:
        site.machines["cp3"].sh("systemctl start kubelet")
