# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate authorities of a cluster with three servers are replaced while clients that know only the old one use it, for real.

Tests use the same machines, in their order.
"""

from __future__ import annotations

import base64
import pathlib
import time
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unauthorized
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import places
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.kills import Kill
from ansible_collections.hwaccel.gpu.tests.cluster.rig.probe import Probe
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import SECRETS, Site, voters
from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import NODE
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

pytestmark = pytest.mark.slow
ENTRY = ("-e", "cluster_kubeadm_entry=rotate_ca")
_MAP = Resource("", "v1", "ConfigMap", "configmaps", True)


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = Site(rig, servers=("cp1", "cp2", "cp3"), agents=("w1",), balancer="lb")
    balanced = site.play("load_balancer")
    assert balanced.rc == 0, balanced.stdout[-4000:]
    site.done()
    return site


@pytest.fixture(scope="module")
def before(site: Site) -> dict[str, str]:
    """What clients know before: the authority, and the kubeconfig of an administrator."""
    server = site.machines["cp1"]
    return {"authority": server.read(places.AUTHORITY), "kubeconfig": server.read(places.ADMIN)}


def authorities(machine: Machine) -> dict[str, str]:
    """Fingerprints of what is trusted, of which there is one each."""
    names = ("ca", "front-proxy-ca", "etcd/ca") if machine.sh(f"ls {places.API_SERVER} 2>/dev/null || :") else ("ca",)
    texts = {name: machine.read(f"/etc/kubernetes/pki/{name}.crt") for name in names}
    assert all(len(authority.certificates(text)) == 1 for text in texts.values())
    return {name: authority.fingerprint(text) for name, text in texts.items()}


def keys(server: Machine) -> list[str]:
    """A line of each key of the new authorities."""
    paths = [f"{places.ROTATION}/new/{name}.key" for name in ("ca", "front-proxy-ca", "etcd/ca")]
    return [server.read(path).splitlines()[1] for path in paths]


def embedded(machine: Machine, path: str, key: str) -> str:
    """What a kubeconfig has in itself."""
    found = next(line for line in machine.read(path).splitlines() if f"{key}:" in line)
    return base64.b64decode(found.split()[-1]).decode("ascii")


def test_nothing_is_done_before_it_is_confirmed(site: Site, before: dict[str, str]) -> None:
    mine = authority.fingerprint(before["authority"])
    told = site.done(*ENTRY)
    assert told.changed() == 0 and f"-e hwaccel_confirm={mine}" in told.stdout
    other = site.play("cluster_kubeadm", *ENTRY, "-e", "hwaccel_confirm=another")
    assert other.rc != 0 and "hwaccel_confirm names another certificate authority" in other.stdout
    checked = site.done(*ENTRY, "-e", f"hwaccel_confirm={mine}", "--check")
    assert len(checked.summary["one"]["changes"]) == 16
    assert site.machines["cp1"].sh(f"ls -d {places.ROTATION} 2>/dev/null || :") == ""


def test_they_are_replaced_also_by_a_run_that_was_killed(
    site: Site, before: dict[str, str], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = authority.fingerprint(before["authority"])
    arguments = (*ENTRY, "-e", f"hwaccel_confirm={mine}")
    # While the first server issues its certificates again, after all machines have been changed once.
    kill, path = Kill("hwaccel.gpu.cluster_kubeadm : rotate_step | Change the machine", 5, 2), tmp_path / "started"
    began = time.monotonic()
    with Probe(site.machines["lb"].address, before["authority"]) as probe:
        kept = {"HWACCEL_STARTED": str(path), "ANSIBLE_LOG_PATH": str(tmp_path / "log")}
        assert site.killed(kill.reached(path), *arguments, "-vvv", timeout=1800, environment=kept)
        log = (tmp_path / "log").read_text(encoding="utf-8")
        assert "rotate_begin | Read them" in log and not [key for key in keys(site.machines["cp1"]) if key in log]
        # No other run takes machines with one authority and with two for two clusters.
        stopped = site.play()
        assert stopped.rc != 0
        (reason,) = stopped.summary["one"]["reasons"]
        assert "is being replaced" in reason and "the entry rotate_ca" in reason
        run = site.done(*arguments)
    with capsys.disabled():
        print(
            f"\nreplaced in {time.monotonic() - began:.0f} s; without an answer for {probe.gap:.1f} s at most, {probe.share_lost:.1%} lost"
        )
        print("\n".join(run.summary["one"]["changes"]))
    assert probe.gap < 3 and probe.share_lost <= 0.01, probe.lost[-5:]
    assert "let cp1 trust the new certificate authority, too" not in run.summary["one"]["changes"]


@pytest.mark.usefixtures("before")
def test_nothing_is_left_of_the_old_ones(site: Site, before: dict[str, str]) -> None:
    old = authority.fingerprint(before["authority"])
    found = [authorities(site.machines[name]) for name in site.servers]
    assert found[0] == found[1] == found[2] and old not in found[0].values()
    assert authorities(site.machines["w1"]) == {"ca": found[0]["ca"]}
    new = site.machines["cp1"].read(places.AUTHORITY)
    for name in (*site.servers, *site.agents):
        machine = site.machines[name]
        assert authority.issued(machine.read(places.KUBELET_CERTIFICATE), new), name
        assert authority.issued(machine.read("/var/lib/kubelet/pki/kubelet-server-current.pem"), new), name
        assert embedded(machine, places.KUBELET_CONF, "certificate-authority-data") == new, name
        left = machine.sh(f"ls -d {places.ROTATION} {places.SIGNING} {places.BOOTSTRAP} {SECRETS} 2>/dev/null || :")
        assert left == ""
    for name in site.servers:
        machine = site.machines[name]
        for path in places.STATIC_PODS["kube-apiserver"][:2]:
            assert authority.issued(machine.read(path), new), (name, path)
        for pod in ("admin", "controller-manager", "scheduler"):
            path = f"/etc/kubernetes/{pod}.conf"
            assert authority.issued(embedded(machine, path, "client-certificate-data"), new), (name, path)
            assert embedded(machine, path, "certificate-authority-data") == new, (name, path)
        for path in places.STATIC_PODS["etcd"]:
            assert authority.issued(machine.read(path), machine.read("/etc/kubernetes/pki/etcd/ca.crt")), (name, path)
        assert f"--cluster-signing-cert-file={places.AUTHORITY}\n" in machine.read(
            places.manifest("kube-controller-manager")
        )
        assert voters(machine) == {"cp1", "cp2", "cp3"}


def test_clients_have_what_they_need(site: Site, before: dict[str, str]) -> None:
    new = site.machines["cp1"].read(places.AUTHORITY)
    client = site.client()
    assert client.get(_MAP, "kube-root-ca.crt", "default")["data"]["ca.crt"] == new
    published = client.get(_MAP, "extension-apiserver-authentication", "kube-system")["data"]
    assert published["client-ca-file"] == new
    info: dict[str, t.Any] = yaml.safe_load(client.get(_MAP, "cluster-info", "kube-public")["data"]["kubeconfig"])
    assert base64.b64decode(info["clusters"][0]["cluster"]["certificate-authority-data"]).decode("ascii") == new
    # A kubeconfig of before finds the API server, which does not know its certificate any more.
    with pytest.raises(Unauthorized):
        connect({"kubeconfig": yaml.safe_load(before["kubeconfig"])}).list(NODE)


def test_the_cluster_is_as_the_inventory_says_and_machines_join(site: Site, before: dict[str, str]) -> None:
    again = site.done(*ENTRY, "-e", f"hwaccel_confirm={authority.fingerprint(before['authority'])}")
    assert again.changed() == 0 and "was replaced already" in again.stdout
    assert site.done().changed() == 0
    site.agents = ("w1", "w2")
    site.machines["w2"] = site.boot("w2")
    run = site.done()
    assert [text.partition(":")[0] for text in run.summary["one"]["changes"]] == ["join w2"]
    assert {one["metadata"]["name"] for one in site.client().list(NODE).items} == {"cp1", "cp2", "cp3", "w1", "w2"}
