# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`site` that is disturbed: its API server dies or stands still, the way to it is bad, or the run itself is killed.

It ends, by itself or by the next run, in the state of an undisturbed one, or reports clearly what is wrong; it never hangs. All disturbances are
tried in one go, each by itself in the slow tests.

Runtime: an undisturbed run, a killed one, one to three with faults, and one that changes nothing.
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
#: By the part of the writes of a run after which each happens.
Losses = dict[float, c.Callable[[Sandbox], None]]
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

    def patient(self, kubeconfig: str) -> dict[str, t.Any]:
        """Variables with a longer timeout than the default: a server restarts in seconds, or in minutes on a busy machine."""
        return {**self.hosts["one"], "hwaccel_connection": {"kubeconfig": kubeconfig, "retry_timeout": 240}}

    def outlived(self) -> site.Run:
        run = site.playbook("site", {"one": self.patient(self.sandbox.kubeconfig)}, warnings=WARNINGS, timeout=900)
        assert run.rc == 0, run.stdout[-6000:]
        return run

    def await_undisturbed(self) -> None:
        await_alike(self.undisturbed, lambda: ours(self.client))


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    return Cluster(make_sandbox(FLEET))


def kill_run(cluster: Cluster, last: int) -> AuditLog:
    """A run whose processes are all killed at once after so many writes; the audit log from its first one on."""
    done = AuditLog(cluster.sandbox.audit_log)
    assert site.killed("site", cluster.hosts, lambda: len(done.our_writes()) >= last), (
        f"the run ended before write {last} of {cluster.writes}"
    )
    there = f"{len(ours(cluster.client))} of {len(cluster.undisturbed)} objects were there"
    print(f"killed after write {last} of {cluster.writes}, {there}")
    return done


def lose_server(cluster: Cluster, run: concurrent.futures.Future[t.Any], done: AuditLog, losses: Losses) -> None:
    """While this run goes on."""
    for part, disturb in losses.items():
        last = int(part * cluster.writes)
        until(lambda last=last: run.done() or len(done.our_writes()) >= last, f"write {last} of {cluster.writes}", 300)
        assert not run.done(), "the run ended before the disturbance"
        disturb(cluster.sandbox)


def run_with_faults(host: dict[str, t.Any]) -> site.Run:
    """The last of at most TRIES runs. A warning about the connection is expected, a traceback is not."""
    for tried in range(1, TRIES + 1):
        run = site.playbook("site", {"one": host}, warnings=[r"WARNING\]"], timeout=900)
        print(f"run {tried} of {TRIES} ended with {run.rc}")
        assert all("Next: " in text for text in run.failures), run.stdout[-6000:]
        if not run.rc:
            break
    assert run.rc == 0, run.stdout[-6000:]
    return run


def test_a_killed_run_is_finished_while_requests_fail_and_the_api_server_is_lost(
    cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    cluster.run("teardown")
    done = kill_run(cluster, int(0.2 * cluster.writes))
    with (
        spoilt(cluster.sandbox.kubeconfig, tuple(FAULTS), SHARE, SEED) as server,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        run = pool.submit(run_with_faults, cluster.patient(server.kubeconfig(tmp_path / "kubeconfig")))
        lose_server(cluster, run, done, {0.4: killed, 0.7: still})
        run.result()
    assert set(server.counts) >= COMMON, f"faults that did not occur prove nothing: {server.counts}"
    cluster.await_undisturbed()
    assert cluster.run("site").changed() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "losses",
    [
        pytest.param({part: disturb}, id=f"{disturb.__name__}-{part}")
        for part in (0.3, 0.6, 0.9)
        for disturb in (killed, still)
    ],
)
def test_a_run_outlives_the_loss_of_the_api_server(cluster: Cluster, losses: Losses) -> None:
    cluster.run("teardown")
    done = AuditLog(cluster.sandbox.audit_log)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(cluster.outlived)
        lose_server(cluster, run, done, losses)
        run.result()
    cluster.await_undisturbed()


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(8))
def test_a_killed_run_is_finished_by_the_next(cluster: Cluster, kill: int) -> None:
    cluster.run("teardown")
    kill_run(cluster, random.Random(SEED + kill).randint(1, cluster.writes - 5))
    cluster.run("site")
    cluster.await_undisturbed()
    assert cluster.run("site").changed() == 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_outlives_requests_that_fail(cluster: Cluster, tmp_path: pathlib.Path, fault: str) -> None:
    cluster.run("teardown")
    common = fault in COMMON
    cluster.sandbox.set_fleet(FLEET if common else {**FLEET, "time_scale": SLOWLY})
    with spoilt(cluster.sandbox.kubeconfig, (fault,), SHARE if common else OF_WATCHES, SEED) as server:
        run_with_faults(
            site.cluster(server.kubeconfig(tmp_path / "kubeconfig"), hwaccel_wait_timeout=240, hwaccel_stages=site.ALL)
        )
    print(f"{server.counts.total()} requests failed: {dict(server.counts)}")
    assert server.counts, "faults that did not occur prove nothing"
    cluster.await_undisturbed()
