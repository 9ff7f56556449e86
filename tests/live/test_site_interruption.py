# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`site` killed in its middle, all its processes at once: the next run ends in the state of an undisturbed one.

Runtime: three runs of site for each kill, and one undisturbed.
"""

from __future__ import annotations

import random
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.snapshot import await_alike, ours

FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [{"name": "gpu", "count": 2, "kernel": "6.8.0-134-generic", "gpu": GPU}, {"name": "cpu", "count": 1}],
}
SEED = 20261122


class Cluster:
    def __init__(self, sandbox: Sandbox) -> None:
        self.audit_log = sandbox.audit_log
        self.client: Client = connect({"kubeconfig": sandbox.kubeconfig})
        self.hosts = {"one": site.cluster(sandbox.kubeconfig, hwaccel_wait_timeout=240, hwaccel_stages=site.ALL)}

    def site(self) -> site.Run:
        run = site.playbook("site", self.hosts)
        assert run.rc == 0, run.stdout[-6000:]
        return run


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_a_killed_run_is_finished_by_the_next(make_sandbox: t.Any, kills: int) -> None:
    cluster = Cluster(make_sandbox(FLEET))
    audit = AuditLog(cluster.audit_log)
    cluster.site()
    writes, undisturbed = len(audit.our_writes()), ours(cluster.client)
    assert min(writes, len(undisturbed)) > 20, "there is something to interrupt, and to compare"
    moments = random.Random(SEED)
    for kill in range(kills):
        gone = site.playbook("teardown", cluster.hosts)
        assert gone.rc == 0, gone.stdout[-4000:]
        done, last = AuditLog(cluster.audit_log), moments.randint(1, writes - 5)
        assert site.killed("site", cluster.hosts, lambda done=done, last=last: len(done.our_writes()) >= last), f"{writes} writes are no longer made"
        print(f"kill {kill + 1} of {kills}: after write {last} of {writes}, {len(ours(cluster.client))} of {len(undisturbed)} objects were there")
        cluster.site()
        await_alike(undisturbed, lambda: ours(cluster.client))
        assert cluster.site().changed() == 0
