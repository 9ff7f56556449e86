# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lone server with SQLite, which has made its token itself, gets another one, and other certificate authorities, on the stand-in for K3s."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities, places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import secrets_shown

pytestmark = pytest.mark.slow
TOKEN, AUTHORITIES = "cluster_k3s_entry=rotate_token", "cluster_k3s_entry=rotate_ca"


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, servers=("s1",))
    site.done()
    return site


def test_a_lone_server_gets_another_token(site: K3sSite, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "token"
    server = site.machines["s1"]
    before = server.read(f"{DATA}/server/token").strip()
    arguments = ("-e", TOKEN, "-e", f"cluster_k3s_token_file={path}")
    predicted = site.done(*arguments, "--check").summary["one"]["changes"]
    run = site.done(*arguments, "-vvv")
    assert run.summary["one"]["changes"] == predicted
    assert predicted == [
        "replace the token of servers on s1",
        "give s1 the new token",
        "restart K3s on s1 with the new token",
    ]
    new, old = path.read_text(encoding="utf-8").strip(), before.rpartition(":")[2]
    for place in (f"{DATA}/server/token", "/etc/rancher/k3s/token"):
        assert server.read(place).strip() == before.replace(old, new)
    assert new not in run.stdout and old not in run.stdout
    assert secrets_shown([server], [new, old]) == []
    again = site.done(*arguments)
    assert again.changed() == 0 and "have this token already" in again.stdout
    assert site.done().changed() == 0


def test_a_lone_server_with_sqlite_gets_other_authorities(site: K3sSite, tmp_path: pathlib.Path) -> None:
    server, path = site.machines["s1"], tmp_path / "started"
    before, new = server.read(places.SERVER_AUTHORITY), f"{places.ROTATION}/new/tls"
    arguments = ("-e", AUTHORITIES, "-e", f"hwaccel_confirm={authority.fingerprint(before)}")
    kill = Kill("hwaccel.gpu.cluster_k3s : replace_ca_step | Give the new ones to K3s", 1, 0)
    assert site.killed(kill.reached(path), *arguments, environment={"HWACCEL_STARTED": str(path)}, timeout=900)
    # K3s refuses what is not connected with the old one.
    server.sh(f"cd {new}; cp client-ca.crt kept; cp server-ca.crt client-ca.crt; rm -f ../../saved")
    refused = site.play("", *arguments)
    assert refused.rc != 0 and "K3s on s1 has not saved the new certificate authorities" in refused.stdout
    assert "ClientCA: new CA cert cannot be verified using old CA chain" in server.sh("journalctl --unit k3s")
    assert server.read(places.SERVER_AUTHORITY) == before
    server.sh(f"cd {new}; mv kept client-ca.crt")
    run = site.done(*arguments)
    assert run.summary["one"]["changes"] == [
        "save them in the datastore by s1",
        "restart K3s on s1 with the new certificate authorities",
    ]
    after = server.read(places.SERVER_AUTHORITY)
    assert before not in after[: len(before)] and after.endswith(before)
    for place in (f"{DATA}/server/token", "/etc/rancher/k3s/token"):
        assert server.read(place)[3:67] == authorities.hash_of(after)
    assert server.sh(f"ls {places.SQLITE}").strip() and server.sh(f"ls {places.ROTATION} 2>/dev/null || :") == ""
    assert site.done(*arguments).changed() == 0
    assert site.done().changed() == 0
