# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`site` that is disturbed: its API server dies or stands still, the way to it is bad, or the run itself is killed.

It ends, by itself or by the next run, in the state of an undisturbed one, or says clearly what is wrong; it never hangs.
Runtime: an undisturbed run, and for each disturbance a teardown and one to three runs.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import pathlib
import random
import signal
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.fault_server import FAULTS, spoilt
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_alike, ours

FLEET: dict[str, t.Any] = {
    # So slow that gates find something to wait for, and watch.
    "time_scale": 0.05,
    "pools": [{"name": "gpu", "count": 2, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
#: Where nothing but watches is spoilt, something must still be awaited when a busy machine takes its first look.
SLOWLY = 0.3
SEED, TRIES = 7, 3
#: Of the requests that are spoilt. Watches are few, so all of them.
SHARE, OF_WATCHES = 0.3, 1.0
#: Every request can have these.
COMMON = frozenset(name for name in FAULTS if not name.endswith("watch"))
#: Seconds for which a server stands still: short of the time after which a client gives up an answer, and of the controllers' own.
STILL = 6.0
#: What a run may say of its way to a server that was lost.
WARNINGS = ["gate .* stopped waiting for "]


def killed(sandbox: Sandbox) -> None:
    sandbox.kill("kube-apiserver")
    sandbox.start()


def still(sandbox: Sandbox) -> None:
    """Its connections stay open, and nothing is answered."""
    sandbox.kill("kube-apiserver", signal.SIGSTOP)
    # This is the disturbance, not a way to wait for something.
    time.sleep(STILL)
    sandbox.kill("kube-apiserver", signal.SIGCONT)


class Cluster:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        self.hosts = {"one": site.cluster(sandbox.kubeconfig, hwaccel_wait_timeout=240, hwaccel_stages=site.ALL)}
        audit = AuditLog(sandbox.audit_log)
        self.run("site")
        self.writes, self.undisturbed = len(audit.our_writes()), ours(self.client)
        assert min(self.writes, len(self.undisturbed)) > 20, "there is something to disturb, and to compare"

    def run(self, name: str) -> site.Run:
        run = site.playbook(name, self.hosts)
        assert run.rc == 0, run.stdout[-6000:]
        return run

    def outlived(self) -> site.Run:
        """A run that has more patience than the defaults give it: a server is started anew in seconds, or in minutes where others want the machine."""
        host = {
            **self.hosts["one"],
            "hwaccel_connection": {"kubeconfig": self.sandbox.kubeconfig, "retry_timeout": 240},
        }
        run = site.playbook("site", {"one": host}, warnings=WARNINGS, timeout=900)
        assert run.rc == 0, run.stdout[-6000:]
        return run

    def await_undisturbed(self) -> None:
        await_alike(self.undisturbed, lambda: ours(self.client))


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    return Cluster(make_sandbox(FLEET))


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param({0.3: killed, 0.6: still}, id="both"),
        *(
            pytest.param({part: disturb}, id=f"{disturb.__name__}-{part}", marks=pytest.mark.slow)
            for part in (0.3, 0.6, 0.9)
            for disturb in (killed, still)
        ),
    ],
)
def test_a_run_outlives_the_loss_of_the_api_server(
    cluster: Cluster, losses: dict[float, c.Callable[[Sandbox], None]]
) -> None:
    """losses: after this part of the writes of a run."""
    cluster.run("teardown")
    done = AuditLog(cluster.sandbox.audit_log)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(cluster.outlived)
        for part, disturb in losses.items():
            last = int(part * cluster.writes)
            until(
                lambda last=last: run.done() or len(done.our_writes()) >= last, f"write {last} of {cluster.writes}", 300
            )
            assert not run.done(), "it did not end before the disturbance"
            disturb(cluster.sandbox)
        run.result()
    cluster.await_undisturbed()


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_a_killed_run_is_finished_by_the_next(cluster: Cluster, kills: int) -> None:
    """All its processes at once."""
    moments = random.Random(SEED)
    for kill in range(kills):
        cluster.run("teardown")
        done, last = AuditLog(cluster.sandbox.audit_log), moments.randint(1, cluster.writes - 5)
        assert site.killed("site", cluster.hosts, lambda done=done, last=last: len(done.our_writes()) >= last), (
            f"{cluster.writes} writes are no longer made"
        )
        there = f"{len(ours(cluster.client))} of {len(cluster.undisturbed)} objects were there"
        print(f"kill {kill + 1} of {kills}: after write {last} of {cluster.writes}, {there}")
        cluster.run("site")
        cluster.await_undisturbed()
        assert cluster.run("site").changed() == 0


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(tuple(FAULTS), id="all"),
        *(pytest.param((name,), id=name, marks=pytest.mark.slow) for name in FAULTS),
    ],
)
def test_site_over_a_bad_way(cluster: Cluster, tmp_path: pathlib.Path, faults: tuple[str, ...]) -> None:
    cluster.run("teardown")
    cluster.sandbox.set_fleet(FLEET if COMMON & set(faults) else {**FLEET, "time_scale": SLOWLY})
    with spoilt(cluster.sandbox.kubeconfig, faults, SHARE if COMMON & set(faults) else OF_WATCHES, SEED) as way:
        hosts = {
            "one": site.cluster(
                way.kubeconfig(tmp_path / "kubeconfig"), hwaccel_wait_timeout=240, hwaccel_stages=site.ALL
            )
        }
        runs: list[site.Run] = []
        while len(runs) < TRIES and (not runs or runs[-1].rc):
            # The way is bad, and what warns of it is right to come; a traceback is not.
            runs.append(site.playbook("site", hosts, warnings=[r"WARNING\]"], timeout=900))
            assert all("Next: " in text for text in runs[-1].failures), runs[-1].stdout[-6000:]
        print(f"{len(runs)} runs; {way.counts.total()} requests were spoilt: {dict(way.counts)}")
        assert runs[-1].rc == 0, runs[-1].stdout[-6000:]
    assert way.counts and COMMON & set(faults) <= set(way.counts), (
        f"faults that never happened prove nothing: {way.counts}"
    )
    cluster.await_undisturbed()
