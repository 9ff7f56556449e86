# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bandwidth between nodes: pods on two nodes find each other, and the node that has fallen back to TCP is named.

Runtime: one run of site, two of validate.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.jobs import RUN_LABEL
from ansible_collections.hwaccel.gpu.tests.live.support import site
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.mutants import GPU
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox

FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {
            "name": "gpu", "count": 3, "labels": {"pool": "gpu"}, "kernel": "6.8.0-134-generic", "gpu": GPU,
            "interconnect": {"transport": "IB", "bandwidth": 46.5}, "nodes": {"gpu-2": {"interconnect": {"transport": "Socket", "bandwidth": 1.1}}},
        },
    ],
}
POOLS = [{"name": "training", "selector": "pool=gpu", "gpu": GPU, "interconnect": {"transport": "IB", "min_bandwidth": 40}}]


def validate(sandbox: Sandbox, *arguments: str) -> tuple[site.Run, dict[str, t.Any]]:
    variables = {"hwaccel_pools": POOLS, "gpu_validation_bandwidth": True, "gpu_validation_always": False, "gpu_validation_schedule_timeout": 240}
    run = site.playbook("validate", {"one": site.cluster(sandbox.kubeconfig, **variables)}, *arguments)
    results = run.results("node_bandwidth")
    assert len(results) == 1, run.stdout[-6000:]
    return run, results[0]


@pytest.fixture(scope="module")
def sandbox(make_sandbox: t.Any) -> Sandbox:
    made: Sandbox = make_sandbox(FLEET)
    run = site.playbook("site", {"one": site.cluster(made.kubeconfig, hwaccel_pools=POOLS, hwaccel_wait_timeout=240)})
    assert run.rc == 0, run.stdout[-6000:]
    return made


def test_check_mode_tells_who_would_be_tried_and_makes_nothing(sandbox: Sandbox) -> None:
    audit = AuditLog(sandbox.audit_log)
    run, result = validate(sandbox, "--check")
    assert run.rc == 0, run.stdout[-4000:]
    assert result["tried"] == ["gpu-0", "gpu-1", "gpu-2"] and result["missing_rights"] == []
    assert [str(request) for request in audit.our_writes()] == []


def test_the_node_that_has_fallen_back_to_tcp_is_named(sandbox: Sandbox) -> None:
    run, result = validate(sandbox)
    assert run.rc != 0 and result["failed_nodes"] == ["gpu-2"]
    assert [(pair["nodes"], pair["state"], pair["bandwidth"], pair["networks"]) for pair in result["pairs"]] == [
        (["gpu-0", "gpu-1"], "passed", 46.5, ["IB"]), (["gpu-2", "gpu-0"], "failed", 1.1, ["Socket"]),
    ]
    told = "node gpu-2 (pool training): with gpu-0: 1.1 GB/s bus bandwidth, 40 GB/s are expected; NCCL has used NET/Socket, NET/IB is expected"
    assert told in run.stdout, run.stdout[-6000:]
    assert "one: bandwidth between nodes: 2 of 3 passed, 1 failed: gpu-2" in run.stdout
    client = connect({"kubeconfig": sandbox.kubeconfig})
    kinds = (("batch/v1", "Job"), ("v1", "Pod"))
    left = [item for kind in kinds for item in client.list(client.resource(*kind), label_selector=RUN_LABEL, metadata_only=True).items]
    assert [item["metadata"]["name"] for item in left] == []
