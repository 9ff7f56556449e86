# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data of a lone server are moved from SQLite to etcd, when that is asked for by name. The stand-in for K3s has an etcd that nobody else sees in place of
SQLite, and moves its data as K3s does (tests/cluster/k3s/datastore.go).

Tests use the same machines, in their order.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, FOLDER, K3sSite

pytestmark = pytest.mark.slow
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)
MAP = Resource("", "v1", "ConfigMap", "configmaps", True)
KEPT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kept", "namespace": "default"},
    "data": {"a": "b"},
}
ENTRY = ("-e", "cluster_k3s_entry=migrate_datastore")
DB = f"{DATA}/server/db"
ONCE = "/run/systemd/system/k3s.service.d/90-hwaccel-gpu-datastore.conf"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    return K3sSite(k3s_rig, servers=("s1",), agents=("a1",))


@pytest.fixture(scope="module")
def made(site: K3sSite) -> K3sSite:
    """A cluster with SQLite, and an object of its user."""
    site.done()
    site.client().create(KEPT, MAP)
    for name in site.machines:
        site.start_pod(name)
    assert site.machines["s1"].sh(f"ls {DB}/etcd/member 2>/dev/null || :") == ""
    return site


def uid(site: K3sSite) -> str:
    return str(site.client().get(NAMESPACE, "kube-system")["metadata"]["uid"])


def test_etcd_is_refused_where_it_is_not_asked_for_by_name(made: K3sSite) -> None:
    made.variables["cluster_k3s_datastore"] = "etcd"
    run = made.play()
    assert run.rc != 0 and run.changed() == 0
    assert "cluster_k3s_entry=migrate_datastore" in json.dumps(run.summary)


def test_check_mode_says_what_would_be_moved(made: K3sSite) -> None:
    run = made.done("--check", *ENTRY)
    assert run.summary["one"]["changes"] == ["move the data of s1 from SQLite to etcd"]
    assert made.machines["s1"].sh(f"ls -d {DB}/etcd/member {FOLDER}/datastore 2>/dev/null || :") == ""


def test_a_move_that_cannot_be_completed_goes_back_to_sqlite(made: K3sSite) -> None:
    """A start of etcd that fails: another process has its port."""
    server, before = made.machines["s1"], uid(made)
    server.sh(
        "systemd-run --quiet --unit blocker python3 -c \"import socket, time; s = socket.create_server(('127.0.0.1', 2379)); time.sleep(3600)\""
    )
    try:
        run = made.play("", *ENTRY)
    finally:
        server.sh("systemctl stop blocker")
    assert run.rc != 0
    assert "goes on with SQLite" in json.dumps(run.summary), run.stdout[-4000:]
    assert uid(made) == before and made.client().get(MAP, "kept", "default")["data"] == {"a": "b"}
    assert server.sh(f"ls -d {DB}/etcd/member {ONCE} {FOLDER}/migration.json 2>/dev/null || :") == ""


def test_a_run_that_was_killed_is_completed(made: K3sSite) -> None:
    server, before = made.machines["s1"], uid(made)
    ran = [made.container(name) for name in made.machines]

    def begun() -> bool:
        return server.sh(f"ls -d {DB}/etcd/member/wal 2>/dev/null || :") != ""

    assert made.killed(begun, *ENTRY)
    # The worst case: K3s has ended when etcd had some of the data, and pods run on. Nothing starts it again.
    server.sh("systemctl kill --kill-whom=main --signal=KILL k3s || :")
    time.sleep(8)
    assert server.sh("systemctl is-active k3s || :").strip() in ("failed", "inactive")
    run = made.play()
    assert run.rc != 0 and "are being moved from SQLite to etcd" in json.dumps(run.summary)
    # As before K3s has ended to move it.
    server.sh(
        f"cd {DB}; [ -e state.db ] || for one in state.db state.db.d; do mv $one.migrated $one; done; rm -rf etcd/member/snap/*"
    )
    made.done(*ENTRY)
    assert uid(made) == before and made.client().get(MAP, "kept", "default")["data"] == {"a": "b"}
    assert [made.container(name) for name in made.machines] == ran
    assert made.voters(server) == {"s1"}
    modes = server.sh(f"find {FOLDER}/datastore -maxdepth 1 -printf '%y %m %f\\n'").splitlines()
    assert sorted(modes) == ["d 700 datastore", "d 700 state.db.d", "f 600 state.db"]
    assert server.sh(f"ls {ONCE} {FOLDER}/migration.json {DB}/state.db 2>/dev/null || :") == ""


def test_it_is_moved_once(made: K3sSite) -> None:
    assert made.done(*ENTRY).changed() == 0
    # The schedule of snapshots comes with etcd, by a restart in its turn. Pods of the test have no controller.
    made.variables["cluster_k3s_drain_force"] = True
    run = made.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["update the server s1"]
    assert made.done().changed() == 0
