# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two of three servers lose their disks, and a snapshot of etcd brings the cluster back, for real. Tests use the same machines, in their order."""

from __future__ import annotations

import time

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import CONFIG_MAP, ENTRY, config_map, take, uids
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import REINSTALL, Site, voters
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, servers=("cp1", "cp2", "cp3"), agents=("w1",), balancer="lb")
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    site.done()
    return site


@pytest.fixture(scope="module")
def kept(site: Site) -> dict[str, str]:
    """What there is when the snapshot is taken."""
    site.client().create(config_map("before"), CONFIG_MAP)
    return uids(site.client())


@pytest.fixture(scope="module")
def snapshot(site: Site, kept: dict[str, str]) -> str:
    """HOST:PATH of a snapshot, after which two servers lose their disks."""
    client, second = site.client(), site.machines["cp2"]
    path = take(second)
    client.create(config_map("after"), CONFIG_MAP)
    for name in ("cp1", "cp3"):
        site.machines[name].sh(REINSTALL)
    return f"cp2:{path}"


def client(site: Site) -> Client:
    return connect({"kubeconfig": yaml.safe_load(site.machines["cp2"].read("/etc/kubernetes/admin.conf"))})


def test_a_run_without_a_quorum_stops_and_names_the_entry(site: Site, snapshot: str) -> None:
    run = site.play()
    assert run.rc != 0
    (reason,) = run.summary["one"]["reasons"]
    assert "restore a snapshot (-e cluster_kubeadm_entry=restore)" in reason
    assert site.machines["cp1"].sh("ls /etc/kubernetes/pki 2>/dev/null || :") == ""


def test_nothing_is_done_before_it_is_confirmed(site: Site, snapshot: str) -> None:
    mine = authority.fingerprint(site.machines["cp2"].read("/etc/kubernetes/pki/ca.crt"))
    listed = site.done(*ENTRY)
    assert snapshot in listed.stdout
    told = site.done(*ENTRY, "-e", f"cluster_kubeadm_snapshot={snapshot}")
    assert f"-e hwaccel_confirm={mine}" in told.stdout
    assert (listed.changed(), told.changed()) == (0, 0)
    refused = site.play(
        "cluster_kubeadm", *ENTRY, "-e", f"cluster_kubeadm_snapshot={snapshot}", "-e", "hwaccel_confirm=another"
    )
    assert refused.rc != 0 and "hwaccel_confirm names another cluster" in refused.stdout
    assert site.machines["cp2"].sh("ls -d /var/lib/etcd-before-* 2>/dev/null || :") == ""


def test_the_snapshot_brings_the_cluster_back_also_by_a_run_that_was_killed(
    site: Site, snapshot: str, kept: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    second = site.machines["cp2"]
    mine = authority.fingerprint(second.read("/etc/kubernetes/pki/ca.crt"))
    arguments = (*ENTRY, "-e", f"cluster_kubeadm_snapshot={snapshot}", "-e", f"hwaccel_confirm={mine}")
    assert site.killed(lambda: second.sh("ls /var/lib/etcd-before-*/member 2>/dev/null || :") != "", *arguments)
    # No other run makes a second cluster of what is left.
    stopped = site.play()
    assert stopped.rc != 0
    (reason,) = stopped.summary["one"]["reasons"]
    assert (
        "cp2, w1 belongs to a cluster, and no server is a member of it" in reason
        and "restore a snapshot of its datastore" in reason
    )
    began = time.monotonic()
    run = site.done(*arguments)
    with capsys.disabled():
        print(f"\nrestored and joined in {time.monotonic() - began:.0f} s")
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]][1:] == [
        "join the server cp1",
        "join the server cp3",
    ]
    found = client(site)
    assert uids(found) == kept
    with pytest.raises(NotFound):
        found.get(CONFIG_MAP, "after", "default")
    assert {one["metadata"]["name"] for one in found.list(NODE).items} == {"cp1", "cp2", "cp3", "w1"}
    assert [voters(site.machines[name]) for name in site.servers] == [{"cp1", "cp2", "cp3"}] * 3
    assert second.sh("ls -d /var/lib/etcd-before-*/member") != ""
    assert site.done().changed() == 0
    again = site.done(*arguments)
    assert again.changed() == 0 and "restored from this snapshot already" in again.stdout
