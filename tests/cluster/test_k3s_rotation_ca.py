# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate authorities of three servers and an agent are replaced while clients that know only the old one use them, on the stand-in for K3s.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import dataclasses
import pathlib
import ssl
import time

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities, places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import DATA, K3sSite
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import secrets_shown
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE

pytestmark = pytest.mark.slow
SERVERS = ("s1", "s2", "s3")
ENTRY = ("-e", "cluster_k3s_entry=rotate_ca")
TLS = f"{DATA}/server/tls"
_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)


@pytest.fixture(scope="module")
def site(k3s_rig: K3sRig) -> K3sSite:
    site = K3sSite(k3s_rig, SERVERS, agents=("a1",), balancer="lb")
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    site.done()
    site.start_pod("a1")
    return site


@dataclasses.dataclass(frozen=True)
class Before:
    """What clients have of the time before: the authority, the kubeconfig of an administrator, the token of a service account, the container of a pod."""

    authority: str
    kubeconfig: str
    token: str
    container: str
    hash: str

    @property
    def fingerprint(self) -> str:
        return authority.fingerprint(self.authority)


@pytest.fixture(scope="module")
def before(site: K3sSite) -> Before:
    server = site.machines["s1"]
    token = server.sh("k3s kubectl create token default --duration 24h").strip()
    return Before(
        server.read(places.SERVER_AUTHORITY),
        server.read(places.ADMIN),
        token,
        site.container("a1"),
        server.read(f"{DATA}/server/token")[3:67],
    )


def changes(run: Run) -> list[str]:
    return list(run.summary["one"]["changes"])


def keys(site: K3sSite) -> list[str]:
    """A line of each new key, where they are while they are replaced."""
    found = site.machines["s1"].sh(f"cat {places.ROTATION}/new/tls/*.key {places.ROTATION}/new/tls/etcd/*.key")
    blocks = found.split("-----BEGIN")[1:]
    return [block.splitlines()[1] for block in blocks]


def as_before(site: K3sSite, before: Before, server: str) -> Client:
    config = yaml.safe_load(before.kubeconfig)
    config["clusters"][0]["cluster"]["server"] = f"https://{site.machines[server].address}:6443"
    return connect({"kubeconfig": config})


def test_nothing_is_done_before_it_is_confirmed(site: K3sSite, before: Before) -> None:
    told = site.done(*ENTRY)
    assert told.changed() == 0 and f"-e hwaccel_confirm={before.fingerprint}" in told.stdout
    other = site.play("", *ENTRY, "-e", "hwaccel_confirm=another")
    assert other.rc != 0 and "hwaccel_confirm names another certificate authority" in other.stdout
    for name in (*SERVERS, "a1"):
        assert site.machines[name].sh(f"ls -d {places.ROTATION} 2>/dev/null || :") == ""


def test_they_are_replaced_also_by_a_run_that_was_killed(site: K3sSite, before: Before, tmp_path: pathlib.Path) -> None:
    arguments = (*ENTRY, "-e", f"hwaccel_confirm={before.fingerprint}")
    predicted = changes(site.done(*arguments, "--check"))
    assert predicted == [
        "make new certificate authorities on s1",
        "save them in the datastore by s1",
        *(f"restart K3s on {name} with the new certificate authorities" for name in ("s1", "s2", "s3", "a1")),
    ]
    # While the second server is restarted.
    kill, path, log = (
        Kill("hwaccel.gpu.cluster_k3s : start | Start K3s", 2, 0.5),
        tmp_path / "started",
        tmp_path / "log",
    )
    kept = {"HWACCEL_STARTED": str(path), "ANSIBLE_LOG_PATH": str(log)}
    began = time.monotonic()
    with Probe(site.machines["lb"].address, before.authority, "/cacerts") as probe:
        assert site.killed(kill.reached(path), *arguments, "-vvv", timeout=1200, environment=kept)
        new = keys(site)
        # Five authorities with their roots, and two keys of service accounts.
        assert len(new) == 12
        stopped = site.play()
        assert stopped.rc != 0
        (reason,) = stopped.summary["one"]["reasons"]
        assert "is being replaced" in reason and "the entry rotate_ca" in reason
        again = time.monotonic()
        run = site.done(*arguments, "-vvv", environment=kept)
    print(
        f"replaced in {time.monotonic() - began:.0f} s, the second run {time.monotonic() - again:.0f} s; "
        f"without an answer for {probe.gap:.1f} s at most, {probe.share_lost:.1%} lost; {changes(run)}"
    )
    assert changes(run) == predicted[-len(changes(run)) :] and 2 <= len(changes(run)) <= 3
    assert probe.gap < 5 and probe.share_lost <= 0.02, probe.lost[-5:]
    secret = site.machines["s1"].read(f"{DATA}/server/token").strip().rpartition(":")[2]
    text = log.read_text(encoding="utf-8") + run.stdout
    assert "make_ca | Write the new ones" in text and not [one for one in (*new, secret) if one in text]
    assert secrets_shown(site.machines.values(), [*new, secret]) == []


def test_all_machines_have_the_new_ones(site: K3sSite, before: Before) -> None:
    for kind in authorities.KINDS:
        texts = {site.machines[name].read(f"{TLS}/{kind}-ca.crt") for name in SERVERS}
        assert len(texts) == 1 and len(authority.certificates(*texts)) == 4, kind
    new = site.machines["s1"].read(places.SERVER_AUTHORITY)
    root = authorities.hash_of(new)
    assert root != before.hash and before.fingerprint not in (root, authority.fingerprint(new))
    for name in (*SERVERS, "a1"):
        machine = site.machines[name]
        assert machine.read(places.AUTHORITY) == new
        assert machine.sh(f"ls -d {places.ROTATION} /tmp/*rotat* 2>/dev/null || :") == ""
        for leaf in ("serving-kubelet", "client-kubelet"):
            kind = "server" if leaf.startswith("serving") else "client"
            issuer = site.machines["s1"].read(f"{TLS}/{kind}-ca.crt")
            assert authority.issued(machine.read(f"{DATA}/agent/{leaf}.crt"), issuer), (name, leaf)
    for name in SERVERS:
        port = ssl.get_server_certificate((site.machines[name].address, 6443))
        assert authority.issued(port, new), name
    for path in (f"{DATA}/server/token", "/etc/rancher/k3s/token"):
        names = [name for name in (*SERVERS, "a1") if site.machines[name].sh(f"ls {path} 2>/dev/null || :")]
        assert names and {site.machines[name].read(path)[3:67] for name in names} == {root}, path
    assert [site.voters(site.machines[name]) for name in SERVERS] == [set(SERVERS)] * 3


def test_clients_of_before_go_on(site: K3sSite, before: Before) -> None:
    new = site.machines["s1"].read(places.SERVER_AUTHORITY)
    for name in SERVERS:
        # It trusts the old authority only, and its certificate is of the old one.
        assert len(as_before(site, before, name).list(NODE).items) == 4
        config = yaml.safe_load(before.kubeconfig)
        config["users"][0]["user"] = {"token": before.token}
        config["clusters"][0]["cluster"]["server"] = f"https://{site.machines[name].address}:6443"
        machine = site.machines[name]
        machine.write("/run/before.yaml", yaml.safe_dump(config), "0600")
        whoami = machine.sh("k3s kubectl --kubeconfig /run/before.yaml auth whoami; rm /run/before.yaml")
        assert "system:serviceaccount:default:default" in whoami
    assert site.container("a1") == before.container
    assert site.client().get(_MAP, "kube-root-ca.crt", "default")["data"]["ca.crt"] == new
    assert "stays-a1" in site.machines["s3"].sh("k3s kubectl get pods --output name")


def test_it_is_done_once_and_machines_join(site: K3sSite, before: Before) -> None:
    again = site.done(*ENTRY, "-e", f"hwaccel_confirm={before.fingerprint}")
    assert again.changed() == 0 and "was replaced already" in again.stdout
    assert site.done().changed() == 0
    site.agents = ("a1", "a2")
    site.machines["a2"] = site.boot("a2")
    assert [text.partition(":")[0] for text in changes(site.done())] == ["join a2"]
    assert site.done().changed() == 0


def test_they_are_replaced_once_more(site: K3sSite) -> None:
    """The root of before is not the first certificate any more."""
    present = authority.fingerprint(site.machines["s1"].read(places.SERVER_AUTHORITY))
    config = yaml.safe_load(site.machines["s1"].read(places.ADMIN))
    config["clusters"][0]["cluster"]["server"] = f"https://{site.machines['s2'].address}:6443"
    site.done(*ENTRY, "-e", f"hwaccel_confirm={present}")
    assert len(connect({"kubeconfig": config}).list(NODE).items) == 5
    assert site.done().changed() == 0
