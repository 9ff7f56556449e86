# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data of the stand-in for K3s: SQLite, etcd, snapshots, tokens, keys and certificates of one server. The tests build on one another, in their order."""

from __future__ import annotations

import collections.abc as c
import contextlib
import json
import re
import ssl
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT, VERSION
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_by_hand import DATA, Installed, install
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow
_CONFIG: dict[str, t.Any] = {"token": "servers", "disable-network-policy": True}
_DB = f"{DATA}/server/db"


@pytest.fixture(scope="module")
def server() -> c.Iterator[Installed]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    try:
        rig = K3sRig(say, NEXT)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        server = install(rig.machine("d1"), rig.k3s, "server", _CONFIG)
        server.start()
        yield server


def k3s(server: Installed, arguments: str, *, check: bool = True) -> str:
    """What a command prints, with its log. Each has one minute, and the rotation of keys two."""
    return server.machine.sh(f"k3s {arguments} 2>&1", check=check, seconds=180)


def kubectl(server: Installed, arguments: str) -> str:
    return k3s(server, f"kubectl {arguments}")


def versions(server: Installed) -> list[str]:
    return kubectl(server, "get nodes --output jsonpath={.items[*].status.nodeInfo.kubeletVersion}").split()


def restarted(server: Installed, **config: t.Any) -> None:
    server.stop()
    server.configure({**_CONFIG, **config})
    server.start()


def snapshots(server: Installed) -> list[str]:
    listed = server.machine.sh("k3s etcd-snapshot ls --output json 2>/dev/null")
    return [one["name"] for one in json.loads(listed)["items"] or []]


def test_one_server_has_sqlite(server: Installed) -> None:
    assert server.machine.sh(f"ls {_DB}").split()[0] == "state.db"
    server.machine.wait("the node is there", lambda: "d1" in kubectl(server, "get nodes"))
    assert "node-role.kubernetes.io/etcd" not in kubectl(server, "get nodes --show-labels")


def test_sqlite_has_no_snapshots(server: Installed) -> None:
    assert "400 Bad Request" in k3s(server, "etcd-snapshot save", check=False)


def test_servers_cannot_join_sqlite(server: Installed) -> None:
    ask = "import base64, ssl, urllib.request as r; q = r.Request('https://127.0.0.1:6443/v1-k3s/server-bootstrap'); "
    ask += "q.add_header('Authorization', 'Basic ' + base64.b64encode(b'server:servers').decode()); "
    ask += "r.urlopen(q, context=ssl._create_unverified_context())"
    done = server.machine.execute("python3", "-c", ask, check=False)
    assert "HTTP Error 400" in done.stderr
    assert "embedded etcd is not enabled" in server.said()


def test_cluster_init_moves_objects_from_sqlite_to_etcd(server: Installed) -> None:
    kubectl(server, "create configmap before")
    restarted(server, **{"cluster-init": True, "secrets-encryption": True})
    assert "before" in kubectl(server, "get configmaps")
    assert "state.db.migrated" in server.machine.sh(f"ls {_DB}").split()
    server.machine.wait(
        "it is labelled", lambda: "node-role.kubernetes.io/etcd" in kubectl(server, "get nodes --show-labels")
    )


def test_etcd_stays_without_the_flag(server: Installed) -> None:
    restarted(server, **{"secrets-encryption": True})
    assert "before" in kubectl(server, "get configmaps")
    assert server.machine.sh(f"ls -d {_DB}/etcd/member/wal").strip()


def test_a_later_start_moves_nothing_from_sqlite(server: Installed) -> None:
    server.machine.sh(f"cp {_DB}/state.db.migrated {_DB}/state.db; systemctl restart k3s", seconds=120)
    assert "state.db" in server.machine.sh(f"ls {_DB}").split()
    server.machine.sh(f"rm {_DB}/state.db")


def test_a_restart_leaves_certificates_alone(server: Installed) -> None:
    digest = f"cd {DATA}/server/tls; sha256sum *.crt *.key etcd/*.crt"
    before = server.machine.sh(digest)
    server.machine.sh("systemctl restart k3s", seconds=120)
    assert server.machine.sh(digest) == before


def test_tokens_of_limited_time(server: Installed) -> None:
    token = k3s(server, "token create --ttl 1h --description test").strip()
    assert re.fullmatch(r"K10[0-9a-f]{64}::[a-z0-9]{6}\.[a-z0-9]{16}", token)
    name = token.partition("::")[2].partition(".")[0]
    assert name in k3s(server, "token list")
    assert k3s(server, f"token delete {name}").strip() == f'bootstrap token "{name}" deleted'
    assert name not in k3s(server, "token list")


def test_status_of_encryption(server: Installed) -> None:
    wanted = (
        "Encryption Status: Enabled",
        "Current Rotation Stage: start",
        "Server Encryption Hashes: All hashes match",
    )
    server.machine.wait(
        "it is told", lambda: all(line in k3s(server, "secrets-encrypt status") for line in wanted), seconds=30
    )


def test_rotation_of_keys(server: Installed) -> None:
    kubectl(server, "create secret generic kept --from-literal=a=b")
    assert k3s(server, "secrets-encrypt rotate-keys").strip() == "keys rotated, reencryption finished"
    status = k3s(server, "secrets-encrypt status")
    assert "Current Rotation Stage: reencrypt_finished" in status
    assert re.search(r"\*\s+AES-CBC\s+aescbckey-20", status)
    assert kubectl(server, "get secret kept --output jsonpath={.data.a}").strip() == "Yg=="


def test_snapshots_on_demand(server: Installed) -> None:
    assert "saved." in k3s(server, "etcd-snapshot save --name mine")
    (name,) = snapshots(server)
    assert re.fullmatch(r"mine-d1-\d+", name)
    assert f"Snapshot {name} deleted." in k3s(server, f"etcd-snapshot delete {name}")
    assert snapshots(server) == []


def test_compressed_snapshots(server: Installed) -> None:
    k3s(server, "etcd-snapshot save --name small --snapshot-compress")
    (name,) = snapshots(server)
    assert name.endswith(".zip")
    k3s(server, f"etcd-snapshot delete {name}")


def test_a_reset_is_refused_while_the_server_runs(server: Installed) -> None:
    said = k3s(server, "server --cluster-reset", check=False)
    assert "failed to start supervisor listener: listen tcp :6443: bind: address already in use" in said


def test_a_snapshot_of_another_token_is_refused(server: Installed) -> None:
    k3s(server, "etcd-snapshot save --name kept")
    kubectl(server, "create configmap after")
    server.stop()
    server.configure({**_CONFIG, "token": "other", "secrets-encryption": True})
    said = k3s(server, f"server --cluster-reset --cluster-reset-restore-path=$(ls {_DB}/snapshots/kept-*)", check=False)
    assert "bootstrap data already found and encrypted with different token" in said


def test_a_restored_server_has_the_objects_of_the_snapshot(server: Installed) -> None:
    server.configure({**_CONFIG, "secrets-encryption": True})
    said = k3s(server, f"server --cluster-reset --cluster-reset-restore-path=$(ls {_DB}/snapshots/kept-*)")
    assert "Managed etcd cluster membership has been reset, restart without --cluster-reset flag now" in said
    assert server.machine.sh(f"ls {_DB}/reset-flag; ls -d {_DB}/etcd-old-*").strip()
    second = k3s(server, "server --cluster-reset", check=False)
    assert "if you need to perform another cluster reset, you must first manually delete the" in second
    server.start()
    names = kubectl(server, "get configmaps")
    assert "before" in names
    assert "after" not in names
    assert not server.machine.sh(f"ls {_DB}/reset-flag 2>/dev/null || :")


def test_rotation_of_the_token(server: Installed) -> None:
    assert "Token rotated, restart k3s nodes with new token" in k3s(
        server, "token rotate --token servers --new-token fresh"
    )
    assert server.token().endswith("::server:fresh")
    server.stop()
    assert server.refused().endswith("bootstrap data already found and encrypted with different token")
    server.configure({**_CONFIG, "token": "fresh", "secrets-encryption": True})
    server.start()
    assert "before" in kubectl(server, "get configmaps")


def test_certificates_are_checked(server: Installed) -> None:
    assert re.search(
        r"client-admin.crt: certificate system:admin \(ClientAuth\) is ok, expires at ",
        k3s(server, "certificate check"),
    )


def test_certificates_are_rotated(server: Installed) -> None:
    serial = f"sha256sum {DATA}/server/tls/client-admin.crt {DATA}/server/tls/server-ca.crt"
    before = server.machine.sh(serial).split()
    assert "service nothing is not recognized" in k3s(server, "certificate rotate --service nothing", check=False)
    assert "Successfully backed up certificates to" in k3s(server, "certificate rotate")
    server.machine.sh("systemctl restart k3s", seconds=120)
    after = server.machine.sh(serial).split()
    assert after[0] != before[0]
    assert after[2] == before[2]
    assert "d1" in kubectl(server, "get nodes")


def test_authorities_are_replaced_at_the_next_start(server: Installed) -> None:
    tls = f"{DATA}/server/tls"
    before = {name: server.machine.read(f"{tls}/{name}") for name in authorities.files()}
    token = server.token()
    after = authorities.successors(before, time.time())
    for name, text in {**after, "client-ca.crt": after["server-ca.crt"]}.items():
        server.machine.write(f"/run/new/tls/{name}", text)
    assert "certificate error ID" in k3s(server, "certificate rotate-ca --path /run/new", check=False)
    assert "ClientCA: new CA cert cannot be verified using old CA chain" in server.machine.sh("journalctl --unit k3s")
    server.machine.write("/run/new/tls/client-ca.crt", after["client-ca.crt"])
    assert "certificates saved to datastore" in k3s(server, "certificate rotate-ca --path /run/new")
    assert {name: server.machine.read(f"{tls}/{name}") for name in before} == before and server.token() == token
    server.machine.sh("systemctl restart k3s; rm -r /run/new", seconds=120)
    assert {name: server.machine.read(f"{tls}/{name}") for name in before} == after
    assert server.token() == f"K10{authorities.hash_of(after['server-ca.crt'])}::server:fresh" != token
    assert "d1" in kubectl(server, "get nodes")


def test_certificates_are_issued_by_the_new_authority_and_followed_by_it(server: Installed) -> None:
    tls = f"{DATA}/server/tls"
    leaves = {"serving-kube-apiserver": "server", "etcd/peer-server-client": "etcd/peer", "client-admin": "client"}
    for leaf, kind in leaves.items():
        chain, issuer = (server.machine.read(f"{tls}/{name}.crt") for name in (leaf, f"{kind}-ca"))
        assert authority.issued(chain, issuer) and chain.endswith(issuer)


def test_the_port_gets_a_certificate_of_the_new_authority_if_that_is_asked_for(server: Installed) -> None:
    issuer = server.machine.read(f"{DATA}/server/tls/server-ca.crt")
    ask = (server.machine.address, 6443)
    assert not authority.issued(ssl.get_server_certificate(ask), issuer)
    server.machine.sh(f"touch {DATA}/server/tls/dynamic-cert-regenerate; systemctl restart k3s", seconds=120)
    assert authority.issued(ssl.get_server_certificate(ask), issuer)


def test_a_newer_binary_brings_newer_parts(server: Installed) -> None:
    assert versions(server) == [VERSION]
    before = server.machine.sh(f"readlink {DATA}/data/current")
    server.machine.sh(f"install /opt/k3s/k3s-{NEXT} /usr/local/bin/k3s; systemctl restart k3s", seconds=120)
    server.machine.wait("the node has the version", lambda: versions(server) == [NEXT])
    assert server.machine.sh(f"readlink {DATA}/data/previous") == before
