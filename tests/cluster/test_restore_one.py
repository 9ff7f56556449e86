# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only server of a cluster loses the data of etcd, and a snapshot brings them back, for real."""

from __future__ import annotations

import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.restoring import CONFIG_MAP, ENTRY, config_map, take
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import Site, voters


@pytest.mark.slow
def test_the_data_of_a_lone_server_come_back(rig: ClusterRig, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(rig, servers=("only",))
    site.done()
    server = site.machines["only"]
    site.client().create(config_map("before"), CONFIG_MAP)
    snapshot = f"only:{take(server)}"
    site.client().create(config_map("after"), CONFIG_MAP)
    mine = authority.fingerprint(server.read("/etc/kubernetes/pki/ca.crt"))
    server.sh("systemctl stop kubelet; pkill -9 etcd; rm -rf /var/lib/etcd/member")
    arguments = (*ENTRY, "-e", f"cluster_kubeadm_snapshot={snapshot}", "-e", f"hwaccel_confirm={mine}")
    began = time.monotonic()
    run = site.done(*arguments)
    with capsys.disabled():
        print(f"\nrestored in {time.monotonic() - began:.0f} s: {run.summary['one']['changes']}")
    assert run.summary["one"]["changes"][0].startswith(f"restore etcd on only from {snapshot}")
    assert site.client().get(CONFIG_MAP, "before", "default")
    with pytest.raises(NotFound):
        site.client().get(CONFIG_MAP, "after", "default")
    assert voters(server) == {"only"}
    again = site.done(*arguments)
    assert again.changed() == 0 and "restored from this snapshot already" in again.stdout
