# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU time and memory of one `site` over very many clusters, on the machine that runs Ansible.

Runtime: one run of site on a real cluster, then one over many copies of it (support/twins.py).
"""

from __future__ import annotations

import resource
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import fleet
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.fault_server import serving
from ansible_collections.hwaccel.gpu.tests.live.support.twins import Twins

FLEET = {"time_scale": 0.01, "pools": [{"name": "gpu", "count": 4, "gpu": GPU}]}
#: Limit in MiB of the largest process, for a small virtual machine that runs AWX's jobs.
MEMORY = 1024


@pytest.mark.slow
# All stages over 200 clusters would take 80 minutes of processor time, and use as much memory as one stage, because memory depends on the hosts.
@pytest.mark.parametrize(("number", "stages"), [(20, site.ALL), (200, "feature_discovery")])
def test_a_run_without_changes_over_many_clusters(make_sandbox: t.Any, number: int, stages: str | None) -> None:
    sandbox = make_sandbox(FLEET)
    first = site.playbook("site", {"one": site.cluster(sandbox.kubeconfig, hwaccel_stages=stages)})
    assert first.rc == 0, first.stdout[-6000:]
    with serving(Twins(sandbox.kubeconfig, fleet.cluster_uid(connect({"kubeconfig": sandbox.kubeconfig})))) as server:
        twins = t.cast("Twins", server)
        clusters = {
            f"cluster-{one}": site.cluster("", hwaccel_connection=twins.host(one), hwaccel_stages=stages)
            for one in range(number)
        }
        audit, began, before = (
            AuditLog(sandbox.audit_log),
            time.monotonic(),
            resource.getrusage(resource.RUSAGE_CHILDREN),
        )
        run = site.playbook("site", clusters, "--forks", "8", timeout=3000)
        spent, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    largest = after.ru_maxrss // 1024
    what = f"site without changes over {number} clusters, {stages or 'all stages'}"
    print(f"{what}: {spent:.0f} s, {processor:.0f} s of processor time, {largest} MiB in the largest process")
    assert run.rc == 0, run.stdout[-6000:]
    assert (len(run.recap), run.changed()) == (number + 1, 0)
    assert [summary["stopped"] for summary in run.summary.values()] == [[]] * number
    assert audit.our_writes() == []
    assert largest < MEMORY
