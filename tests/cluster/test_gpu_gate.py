# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that does not come back stops an upgrade, for real: one server and two agents, one of them with GPUs of tests/node."""

from __future__ import annotations

import concurrent.futures
import json

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig import programs
from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig, ensure_parts
from ansible_collections.hwaccel.gpu.tests.cluster.rig.site import FOLDER, Site, begun, gpu_site
from ansible_collections.hwaccel.gpu.tests.node.rig.kubernetes_node import simulate_gpus
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(rig: ClusterRig) -> Site:
    site = gpu_site(rig, ("alone",), ("g1", "g2"))
    site.variables |= {"hwaccel_machines_at_a_time": 1, "cluster_kubeadm_timeout": 240}
    made = site.play("site")
    assert made.rc == 0, made.stdout[-8000:]
    return site


def test_a_node_whose_gpus_do_not_come_back_stops_the_upgrade_and_stays_cordoned(site: Site) -> None:
    new = site.parts = ensure_parts(say, programs.next_patch(programs.VERSION))
    broken = site.machines["g1"]

    def break_it() -> None:
        broken.wait("its turn has begun", lambda: begun(broken), seconds=1800)
        simulate_gpus(broken, 2, {"xid": {"1": 79}})

    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        breaking = beside.submit(break_it)
        run = site.play("cluster_kubeadm", timeout=2400)
        breaking.result()
    assert run.rc != 0, run.stdout[-6000:]
    (reason,) = run.summary["one"]["reasons"]
    assert "g1 had GPUs before the upgrade, and has not passed the gate for devices again" in reason
    assert site.versions() == {"alone": new.programs.version, "g1": new.programs.version, "g2": programs.VERSION}
    assert site.cordoned() == {"g1"}
    assert json.loads(broken.read(f"{FOLDER}/turn.json")) == {"gated": True, "upgrade": True}
    assert not begun(site.machines["g2"])


def test_the_next_run_goes_on_once_the_gpus_are_there_again(site: Site) -> None:
    assert site.parts, "the test before has upgraded the server"
    broken, new = site.machines["g1"], site.parts
    simulate_gpus(broken, 2)
    # Its pods are in back-off, for up to five minutes.
    site.variables["cluster_kubeadm_timeout"] = 900
    again = site.done()
    assert [text.partition(":")[0] for text in again.summary["one"]["changes"]] == ["update g1", "upgrade g2"]
    assert site.cordoned() == set()
    assert set(site.versions().values()) == {new.programs.version}
    assert site.done().changed() == 0
