# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight costs with many machines: two clusters of OpenShift that are not there yet, each with a load balancer and a boot server.

Nothing is there of it: load balancers and boot servers are the machine of the tests, which is only read, and preflight asks no BMC. Their problems are
expected. A clock judges the machine of the tests, so what counts is how many tasks there are and what they evaluate; the slow test measures, too.

Runtime: two runs of preflight with few machines, and three with many.
"""

from __future__ import annotations

import collections
import pathlib
import resource
import time

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.many_machines import CLUSTERS, inventory

#: Machines of both clusters, with load balancers and boot servers.
TOTALS = (50, 100, 200)
#: The same for the test without a clock.
FEW = (20, 40)
#: Tasks that a machine has in preflight, each a process of its own: what includes others, its variables, the request for it, and its outcome.
OF_A_MACHINE = 9


def tasks(run: site.Run) -> dict[str, collections.Counter[str]]:
    """Of machines that are started, and of all other hosts: how often each task has run."""
    found: dict[str, collections.Counter[str]] = {"machines": collections.Counter(), "others": collections.Counter()}
    for task in run.tasks:
        # No process is started for it.
        if task["action"].rpartition(".")[2] == "meta":
            continue
        serves = task["host"].rpartition("-")[2] in ("lb", "boot") or task["host"] in (*CLUSTERS, "localhost")
        found["others" if serves else "machines"][task["name"]] += 1
    return found


def test_machines_only_add_their_own_tasks(tmp_path: pathlib.Path) -> None:
    """Twice as many machines have twice as many tasks, and clusters, load balancers and boot servers have no more than before."""
    found = {}
    for total in FEW:
        clusters, machines = inventory(total, tmp_path)
        found[total] = tasks(site.playbook("preflight", clusters, machines=machines, warnings=[".*"]))
    few, many = (found[total] for total in FEW)
    assert many["others"] == few["others"]
    # Load balancers and boot servers are no machines that are started.
    started = {total: total - 2 * len(CLUSTERS) for total in FEW}
    assert few["machines"] == dict.fromkeys(few["machines"], started[FEW[0]])
    assert many["machines"] == dict.fromkeys(few["machines"], started[FEW[1]])
    assert len(few["machines"]) <= OF_A_MACHINE, sorted(few["machines"])


def spent() -> float:
    """Seconds of processor time of all that has run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_preflight_is_linear_in_the_number_of_machines(tmp_path: pathlib.Path) -> None:
    costs: dict[int, float] = {}
    for total in TOTALS:
        clusters, machines = inventory(total, tmp_path)
        began, before = time.monotonic(), spent()
        run = site.playbook("preflight", clusters, machines=machines, warnings=[".*"], timeout=3000)
        costs[total] = spent() - before
        took = time.monotonic() - began
        print(
            f"preflight of {len(CLUSTERS)} clusters, {total} machines: {took:.0f} s, {costs[total]:.0f} s of processor time"
        )
        assert not [task for task in run.tasks if task["outcome"] in ("failed", "unreachable")][len(CLUSTERS) :]
        for cluster in CLUSTERS:
            # The machine of the tests is neither of them, and lacks what machines are started with.
            assert all(
                any(word in reason for word in ("lb", "boot", "openshift-install", "community.general"))
                for reason in run.summary[cluster]["stopped"]
            ), run.summary[cluster]["stopped"]
    few, some, many = (costs[total] for total in TOTALS)
    each = {50: (some - few) / (TOTALS[1] - TOTALS[0]), 100: (many - some) / (TOTALS[2] - TOTALS[1])}
    print(
        f"each machine more: {each[50]:.2f} s of processor time from {TOTALS[0]} on, {each[100]:.2f} s from {TOTALS[1]} on"
    )
    assert each[100] < 1.5 * each[50]
