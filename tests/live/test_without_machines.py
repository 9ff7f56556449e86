# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories without machines that `site` takes in, and with a connection: the phases on machines cost them nothing.

Runtime: three runs of site to schedulable GPUs.
"""

from __future__ import annotations

import collections
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.conftest import MakeSandbox
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.site import cluster, playbook

FLEET = {"time_scale": 0.02, "pools": [{"name": "gpu", "count": 2, "gpu": GPU}]}
#: What `site` without changes has asked of this fleet since before it had phases for OpenShift: this test, run in a clone of the commit before them.
BEFORE = {
    "get /api": 6,
    "get /apis": 7,
    "get /version": 1,
    "get configmaps": 3,
    "get namespaces": 3,
    "list clusterrolebindings": 2,
    "list clusterroles": 2,
    "list configmaps": 6,
    "list customresourcedefinitions": 1,
    "list daemonsets": 8,
    "list deployments": 3,
    "list namespaces": 1,
    "list nodefeaturerules": 1,
    "list nodes": 4,
    "list pods": 4,
    "list rolebindings": 3,
    "list roles": 3,
    "list runtimeclasses": 2,
    "list secrets": 2,
    "list serviceaccounts": 4,
    "list validatingadmissionpolicies": 3,
    "list validatingadmissionpolicybindings": 3,
}
#: Nobody could log in to these. Their cluster has no hwaccel_installer.
AWAY = {"ansible_host": "192.0.2.1", "hwaccel_bmc_address": "192.0.2.2"}
MACHINES = {
    "load_balancers": {"lb": AWAY},
    "boot_servers": {"boot": AWAY},
    "bootstrap": {"bootstrap-0": AWAY},
    "control_plane": {f"master-{number}": AWAY for number in range(3)},
    "workers": {f"worker-{number}": AWAY for number in range(2)},
}


def asked(sandbox: Sandbox, **more: t.Any) -> dict[str, int]:
    """Requests of one run without changes, by what they ask for."""
    audit = AuditLog(sandbox.audit_log)
    run = playbook("site", {"one": cluster(sandbox.kubeconfig)}, **more)
    assert (run.rc, run.changed()) == (0, 0), run.stdout[-6000:]
    assert {task["host"] for task in run.tasks} == {"localhost", "one"}, "no machine has a task"
    return dict(sorted(collections.Counter(f"{one.verb} {one.resource or one.uri}" for one in audit.ours()).items()))


def least(sandbox: Sandbox, **more: t.Any) -> dict[str, int]:
    """Of up to three runs: on a busy machine a stage may have to look a second time, and asks more."""
    for _attempt in range(2):
        if (found := asked(sandbox, **more)) == BEFORE:
            return found
    return asked(sandbox, **more)


@pytest.fixture(scope="module")
def sandbox(make_sandbox: MakeSandbox) -> Sandbox:
    made = make_sandbox(FLEET)
    run = playbook("site", {"one": cluster(made.kubeconfig)})
    assert run.rc == 0, run.stdout[-6000:]
    return made


def test_site_asks_what_it_asked_before_there_were_phases(sandbox: Sandbox) -> None:
    assert least(sandbox) == BEFORE


def test_machines_of_a_cluster_that_somebody_else_has_made_change_nothing(sandbox: Sandbox) -> None:
    """Neither what is asked, nor is any machine, and nothing warns of them."""
    assert least(sandbox, machines=MACHINES) == BEFORE
