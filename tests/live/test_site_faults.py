# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`site` over a bad way to the API server: it ends in the state of a run over a good one, or says clearly what is wrong, and never hangs.

Runtime: a run of site, and for each mixture of faults a teardown and up to four runs.
"""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.fault_server import FAULTS, spoilt
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_alike, ours

FLEET: dict[str, t.Any] = {
    # So slow that gates find something to wait for, and watch.
    "time_scale": 0.05,
    "pools": [{"name": "gpu", "count": 2, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
SEED, TRIES = 7, 3
#: Of the requests that are spoilt. Watches are few, so all of them.
SHARE, OF_WATCHES = 0.3, 1.0
#: Every request can have these.
COMMON = frozenset(name for name in FAULTS if not name.endswith("watch"))
#: Where nothing but watches is spoilt, something must still be awaited when a busy machine takes its first look.
SLOWLY = 0.3


class Cluster:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.kubeconfig = sandbox, sandbox.kubeconfig
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        self.run("site")
        self.undisturbed = ours(self.client)

    def run(self, name: str) -> None:
        run = site.playbook(name, {"one": site.cluster(self.kubeconfig, hwaccel_wait_timeout=240, hwaccel_stages=site.ALL)})
        assert run.rc == 0, run.stdout[-6000:]


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    return Cluster(make_sandbox(FLEET))


@pytest.mark.parametrize(
    "faults", [pytest.param(tuple(FAULTS), id="all"), *(pytest.param((name,), id=name, marks=pytest.mark.slow) for name in FAULTS)]
)
def test_site_over_a_bad_way(cluster: Cluster, tmp_path: pathlib.Path, faults: tuple[str, ...]) -> None:
    cluster.run("teardown")
    cluster.sandbox.set_fleet(FLEET if COMMON & set(faults) else {**FLEET, "time_scale": SLOWLY})
    with spoilt(cluster.kubeconfig, faults, SHARE if COMMON & set(faults) else OF_WATCHES, SEED) as way:
        hosts = {"one": site.cluster(way.kubeconfig(tmp_path / "kubeconfig"), hwaccel_wait_timeout=240, hwaccel_stages=site.ALL)}
        runs: list[site.Run] = []
        while len(runs) < TRIES and (not runs or runs[-1].rc):
            # The way is bad, and what warns of it is right to come; a traceback is not.
            runs.append(site.playbook("site", hosts, warnings=[r"WARNING\]"], timeout=900))
            assert all("Next: " in text for text in runs[-1].failures), runs[-1].stdout[-6000:]
        print(f"{len(runs)} runs; {way.counts.total()} requests were spoilt: {dict(way.counts)}")
        assert runs[-1].rc == 0, runs[-1].stdout[-6000:]
    assert way.counts and COMMON & set(faults) <= set(way.counts), f"faults that never happened prove nothing: {way.counts}"
    await_alike(cluster.undisturbed, lambda: ours(cluster.client))
