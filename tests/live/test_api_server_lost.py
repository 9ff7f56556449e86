# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server dies, or stands still, in the middle of `site`: the run waits for it and ends in the state of an undisturbed one.

Runtime: a run of site, and a teardown and a run for each disturbance.
"""

from __future__ import annotations

import collections.abc as c
import concurrent.futures
import signal
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_alike, ours

FLEET: dict[str, t.Any] = {
    # So slow that gates watch.
    "time_scale": 0.05,
    "pools": [{"name": "gpu", "count": 2, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
#: Seconds for which a server stands still: short of the time after which a client gives up an answer, and of the controllers' own.
STILL = 6.0
#: What such a run may say of its way to the server.
WARNINGS = ["gate .* did not wait any longer for "]


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
        audit = AuditLog(sandbox.audit_log)
        self.run("site")
        self.writes, self.undisturbed = len(audit.our_writes()), ours(self.client)

    def run(self, name: str) -> site.Run:
        host = site.cluster(self.sandbox.kubeconfig, hwaccel_wait_timeout=240)
        # A server that is started anew is there again after seconds, or after minutes where others want the machine.
        host["hwaccel_connection"]["retry_timeout"] = 240
        run = site.playbook(name, {"one": host}, warnings=WARNINGS, timeout=900)
        assert run.rc == 0, run.stdout[-6000:]
        return run


@pytest.fixture(scope="module")
def cluster(make_sandbox: t.Any) -> Cluster:
    return Cluster(make_sandbox(FLEET))


@pytest.mark.parametrize("part", [0.3, pytest.param(0.6, marks=pytest.mark.slow), pytest.param(0.9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("disturb", [killed, still])
def test_a_run_outlives_the_loss_of_the_api_server(cluster: Cluster, disturb: c.Callable[[Sandbox], None], part: float) -> None:
    """part: of the writes of a run that are done by then."""
    cluster.run("teardown")
    done, last = AuditLog(cluster.sandbox.audit_log), int(part * cluster.writes)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(cluster.run, "site")
        until(lambda: run.done() or len(done.our_writes()) >= last, f"write {last} of {cluster.writes}", 300)
        assert not run.done(), "it has not ended before the disturbance"
        disturb(cluster.sandbox)
        run.result()
    await_alike(cluster.undisturbed, lambda: ours(cluster.client))
