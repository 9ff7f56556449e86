# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that fails at each gate, in one run of site under ansible-runner: the closing block has each of them once, as lines. On every supported core.

Runtime: one run of site on six nodes.
"""

from __future__ import annotations

import json
import re
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support import awx
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import GPU

#: By gate: the fault of a node, and a part of the reason.
FAULTS: dict[str, tuple[dict[str, t.Any], str]] = {
    "features": ({"name": "out_of_memory", "container": "nfd-worker"}, "nfd-worker"),
    "driver": ({"name": "driver_load_failure"}, "nvidia-driver-ctr"),
    "devices": ({"name": "plugin_fewer_gpus"}, "7 nvidia.com/gpu allocatable"),
    "exporters": ({"name": "out_of_memory", "container": "nvidia-dcgm-exporter"}, "nvidia-dcgm-exporter"),
    "validation": ({"name": "out_of_memory", "container": "cuda"}, "cuda"),
}
FLEET: dict[str, t.Any] = {
    "time_scale": 0.01,
    "pools": [
        {
            "name": gate,
            "count": 1,
            "kernel": "6.8.0-134-generic",
            "gpu": GPU,
            "labels": {"pool": "gpu"},
            "faults": [fault],
        }
        for gate, (fault, _reason) in FAULTS.items()
    ]
    + [{"name": "well", "count": 1, "kernel": "6.8.0-134-generic", "gpu": GPU, "labels": {"pool": "gpu"}}],
}
VARIABLES = {
    "hwaccel_pools": json.dumps([{"name": "gpu", "selector": "pool=gpu", "gpu": GPU}]),
    "hwaccel_wait_timeout": 40,
    "hwaccel_max_failed": "50%",
}


@pytest.fixture(scope="module")
def job(make_sandbox: t.Any, tmp_path_factory: pytest.TempPathFactory) -> awx.Job:
    sandbox = make_sandbox(FLEET)
    hosts = {"one": {"ansible_connection": "local", "hwaccel_connection": {"kubeconfig": sandbox.kubeconfig}}}
    return awx.launch(tmp_path_factory.mktemp("job"), "site", hosts, awx.answers("site", **VARIABLES), {})


def test_each_node_is_told_once_with_its_reason_and_next_step(job: awx.Job) -> None:
    assert job.rc == 2, job.stdout[-6000:]
    for gate, (_fault, reason) in FAULTS.items():
        (message,) = re.findall(
            rf"^  {gate}-0 \(pool gpu\) failed at gate {gate}, .*\n(?:    .*\n)+", job.stdout, re.MULTILINE
        )
        assert reason in message and "    Next: " in message, job.stdout[-6000:]
        assert job.stdout.count(f"{gate}-0 (pool gpu) failed") == 1
    assert "\\n" not in job.stdout


def test_the_artifacts_have_the_failed_nodes(job: awx.Job) -> None:
    assert job.artifacts["hwaccel_summary"]["one"]["failed_nodes"] == sorted(f"{gate}-0" for gate in FAULTS)
