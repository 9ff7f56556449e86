# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only server of a cluster loses the data of etcd, and a snapshot brings them back, for real."""

from __future__ import annotations

import base64
import pathlib
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import CONFIG_MAP, ENTRY, config_map, take, uids
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site, voters
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

_DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets", True)


def fetched(machine: Machine, path: str, folder: pathlib.Path) -> str:
    """Moves a file to the controller. Returns its path there."""
    copy = folder / "snapshot.db"
    copy.write_bytes(base64.b64decode(machine.execute("base64", path).stdout))
    machine.sh(f"rm {path}")
    return str(copy)


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    """Whose network plugin is one ConfigMap, and replaces kube-proxy."""
    site = Site(rig, servers=("only",))
    site.variables |= {"cluster_kubeadm_network": [config_map("network-plugin")], "cluster_kubeadm_proxy_mode": "none"}
    # Nothing serves Services.
    site.variables["cluster_kubeadm_skipped_checks"] = [*site.cluster()["cluster_kubeadm_skipped_checks"], "pods"]
    site.done()
    return site


@pytest.mark.slow
def test_the_manifests_of_the_network_plugin_are_applied_and_there_is_no_kube_proxy(site: Site) -> None:
    assert site.client().get(CONFIG_MAP, "network-plugin", "default")
    assert site.client().list(_DAEMON_SET, namespace="kube-system").items == []
    assert site.done().changed() == 0


@pytest.mark.slow
def test_the_data_of_a_lone_server_come_back(
    site: Site, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a snapshot that was kept elsewhere."""
    server = site.machines["only"]
    site.client().create(config_map("before"), CONFIG_MAP)
    kept = uids(site.client())
    snapshot = fetched(server, take(server), tmp_path)
    site.client().create(config_map("after"), CONFIG_MAP)
    mine = authority.fingerprint(server.read("/etc/kubernetes/pki/ca.crt"))
    server.sh("systemctl stop kubelet; pkill -9 etcd; rm -rf /var/lib/etcd/member")
    arguments = (*ENTRY, "-e", f"cluster_kubeadm_snapshot={snapshot}", "-e", f"hwaccel_confirm={mine}")
    began = time.monotonic()
    run = site.done(*arguments)
    with capsys.disabled():
        print(f"\nrestored in {time.monotonic() - began:.0f} s: {run.summary['one']['changes']}")
    assert run.summary["one"]["changes"][0].startswith(f"restore etcd on only from {snapshot}")
    assert uids(site.client()) == kept
    with pytest.raises(NotFound):
        site.client().get(CONFIG_MAP, "after", "default")
    assert voters(server) == {"only"}
    again = site.done(*arguments)
    assert again.changed() == 0 and "restored from this snapshot already" in again.stdout
