# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two of three servers lose their disks, and a snapshot with the token brings the cluster back, on the stand-in for K3s; then all servers lose them.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import base64
import json
import pathlib
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, REINSTALL, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import CONFIG_MAP, config_map, secrets_shown
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow
SERVERS = ("s1", "s2", "s3")
ENTRY = ("-e", "cluster_k3s_entry=restore")
KEPT = "/var/lib/rancher/k3s-before-*"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, SERVERS, agents=("a1",), balancer="lb")
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    site.done()
    return site


@pytest.fixture(scope="module")
def token(site: K3sSite, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("kept") / "token"
    site.done("-e", "cluster_k3s_entry=export_token", "-e", f"cluster_k3s_token_file={path}")
    return path


@pytest.fixture(scope="module")
def snapshot(site: K3sSite, token: pathlib.Path) -> str:
    """HOST:PATH of a snapshot, after which two servers lose their disks."""
    client, second = site.client(), site.machines["s2"]
    client.create(config_map("before"), CONFIG_MAP)
    second.sh("k3s etcd-snapshot save --name kept", seconds=120)
    client.create(config_map("after"), CONFIG_MAP)
    for name in ("s1", "s3"):
        site.machines[name].sh(REINSTALL, seconds=120)
    return f"s2:{second.sh(f'ls {DATA}/server/db/snapshots/kept-*').strip()}"


def mine(site: K3sSite, name: str = "s2") -> str:
    return authority.fingerprint(site.machines[name].read(f"{DATA}/server/tls/server-ca.crt"))


def is_as_before(site: K3sSite) -> None:
    found = site.client()
    assert found.get(CONFIG_MAP, "before", "default")
    with pytest.raises(NotFound):
        found.get(CONFIG_MAP, "after", "default")
    nodes = {
        one["metadata"]["name"]: {each["type"]: each["status"] for each in one["status"]["conditions"]}["Ready"]
        for one in found.list(NODE).items
    }
    assert nodes == dict.fromkeys((*SERVERS, *site.agents), "True")
    assert [site.voters(site.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3


def test_nothing_is_done_before_it_is_confirmed(site: K3sSite, snapshot: str) -> None:
    listed = site.done(*ENTRY)
    assert snapshot in listed.stdout
    told = site.done(*ENTRY, "-e", f"cluster_k3s_snapshot={snapshot}")
    assert f"-e hwaccel_confirm={mine(site)}" in told.stdout
    assert (listed.changed(), told.changed()) == (0, 0)
    refused = site.play(
        "cluster_k3s", *ENTRY, "-e", f"cluster_k3s_snapshot={snapshot}", "-e", "hwaccel_confirm=another"
    )
    assert refused.rc != 0 and refused.changed() == 0 and "hwaccel_confirm names another cluster" in refused.stdout


def test_without_its_token_nothing_is_touched(site: K3sSite, snapshot: str) -> None:
    second, path = site.machines["s2"], f"{DATA}/server/token"
    kept = second.read(path)
    before = second.sh("systemctl show --property=InvocationID k3s")
    arguments = (*ENTRY, "-e", f"cluster_k3s_snapshot={snapshot}", "-e", f"hwaccel_confirm={mine(site)}")
    second.sh(f"mv {path} {path}.away; mv /etc/rancher/k3s/token /etc/rancher/k3s/token.away")
    without = site.play("cluster_k3s", *arguments)
    second.sh(f"mv {path}.away {path}; mv /etc/rancher/k3s/token.away /etc/rancher/k3s/token")
    site.variables["cluster_k3s_token"] = "another-one"
    other = site.play("cluster_k3s", *arguments)
    del site.variables["cluster_k3s_token"]
    for run, told in ((without, "no server has the token of the snapshot"), (other, "is not that of the snapshot")):
        assert run.rc != 0 and run.changed() == 0
        assert told in json.dumps(run.summary) and "K3s has encrypted the keys" in json.dumps(run.summary)
    assert second.sh("systemctl show --property=InvocationID k3s") == before and second.read(path) == kept


def test_the_snapshot_brings_the_cluster_back_also_by_a_run_that_was_killed(
    site: K3sSite, snapshot: str, token: pathlib.Path
) -> None:
    second = site.machines["s2"]
    arguments = (*ENTRY, "-e", f"cluster_k3s_snapshot={snapshot}", "-e", f"hwaccel_confirm={mine(site)}")
    predicted = site.done(*arguments, "--check")
    assert predicted.summary["one"]["changes"][0].startswith("restore etcd on s2 from s2:")
    # While K3s restores it.
    assert site.killed(lambda: second.sh(f"ls -d {DATA}/server/db/etcd-old-* 2>/dev/null || :") != "", *arguments)
    # No other run makes a second cluster of what is left.
    stopped = site.play()
    assert stopped.rc != 0
    assert site.machines["s1"].sh(f"ls {DATA}/server/tls 2>/dev/null || :") == ""
    began = time.monotonic()
    run = site.done(*arguments)
    print(f"restored and joined in {time.monotonic() - began:.0f} s: {run.summary['one']['changes']}")
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]][1:] == [
        "join the server s1",
        "join the server s3",
    ]
    is_as_before(site)
    assert second.sh(f"ls -d {DATA}/server/db/etcd-old-*") != ""
    secret = token.read_text(encoding="utf-8").strip().rpartition(":")[2]
    assert secret not in run.stdout and secrets_shown(site.machines.values(), [secret]) == []
    assert site.done().changed() == 0
    again = site.done(*arguments)
    assert again.changed() == 0 and "restored from this snapshot already" in again.stdout


def test_servers_that_have_all_lost_their_disks_are_restored_with_a_token_and_a_snapshot_of_the_controller(
    site: K3sSite, token: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    before = mine(site)
    second = site.machines["s2"]
    second.sh("k3s etcd-snapshot save --name whole --snapshot-compress", seconds=120)
    (found,) = second.sh(f"ls {DATA}/server/db/snapshots/whole-*").split()
    path = tmp_path / "whole.zip"
    path.write_bytes(base64.b64decode(second.sh(f"base64 {found}")))
    for name in SERVERS:
        site.machines[name].sh(REINSTALL, seconds=120)
    wanted = (*ENTRY, "-e", f"cluster_k3s_snapshot={path}")
    missing = site.play("cluster_k3s", *wanted)
    assert missing.rc != 0 and "no server has the token of the snapshot, and none is set" in json.dumps(missing.summary)
    wanted = (*wanted, "-e", f"cluster_k3s_token_file={token}")
    told = site.done(*wanted)
    confirm = told.stdout.partition("-e hwaccel_confirm=")[2][:64]
    site.done(*wanted, "-e", f"hwaccel_confirm={confirm}")
    assert mine(site) == before
    is_as_before(site)
    assert site.done().changed() == 0
