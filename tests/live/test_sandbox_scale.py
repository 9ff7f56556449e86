# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A thousand nodes are Ready within a minute, with 3 GiB for control plane and fleet agent together; and `site` on such nodes.

`site` deploys six pods on each node, six thousand in all. The API server needs most of the time, not the gates or the fleet agent.
"""

from __future__ import annotations

import pathlib
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import COMPONENTS
from ansible_collections.hwaccel.gpu.tests.live.support.audit import AuditLog
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.live.support.site import ALL, cluster, playbook

GPU = {"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "memory_mib": 81559, "mig_capable": True}
THOUSAND = {"time_scale": 0.1, "pools": [{"name": "gpu", "count": 500, "gpu": GPU}, {"name": "cpu", "count": 500}]}
GPU_NODES = {
    "time_scale": 0.1,
    "pools": [
        {"name": "gpu", "count": 1000, "gpu": GPU, "kernel": "6.8.0-134-generic", "os_image": "Ubuntu 24.04.3 LTS"}
    ],
}


def pids(sandbox: Sandbox) -> dict[str, int]:
    known = {name: process.known(sandbox.layout.pid_file(name)) for name in COMPONENTS}
    return {name: one.pid for name, one in known.items() if one}


def memory_mib(sandbox: Sandbox) -> dict[str, int]:
    """Proportional set sizes, which count pages once that several processes of the same binary share."""
    sizes = {}
    for name, pid in pids(sandbox).items():
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        sizes[name] = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) // 1024
    return sizes


def processor_seconds(sandbox: Sandbox) -> float:
    fields = [
        pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        for pid in pids(sandbox).values()
    ]
    return sum(int(one[11]) + int(one[12]) for one in fields) / 100


@pytest.mark.slow
def test_a_thousand_nodes(make_sandbox: t.Any) -> None:
    began = time.monotonic()
    sandbox = make_sandbox(THOUSAND)
    took = time.monotonic() - began
    client = connect({"kubeconfig": sandbox.kubeconfig})
    assert len(client.list(client.resource("v1", "Node")).items) == 1000
    leases = client.resource("coordination.k8s.io/v1", "Lease")
    deadline = time.monotonic() + 120
    while len(client.list(leases, namespace="kube-node-lease").items) < 1000:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    time.sleep(10)
    before, begun = processor_seconds(sandbox), time.monotonic()
    time.sleep(30)
    cores = (processor_seconds(sandbox) - before) / (time.monotonic() - begun)
    sizes = memory_mib(sandbox)
    print(
        f"1,000 nodes Ready after {took:.1f} s; MiB: {sizes}, together {sum(sizes.values())}; at rest {cores:.2f} cores"
    )
    sandbox.close()
    assert took < 60
    assert sum(sizes.values()) < 3072
    assert cores < 0.5


@pytest.mark.slow
def test_site_on_a_thousand_gpu_nodes(make_sandbox: t.Any) -> None:
    sandbox = make_sandbox(GPU_NODES)
    clusters = {"thousand": cluster(sandbox.kubeconfig, hwaccel_stages=ALL)}
    began = time.monotonic()
    first = playbook("site", clusters, timeout=1800)
    took = time.monotonic() - began
    sizes, used = memory_mib(sandbox), processor_seconds(sandbox)
    log = AuditLog(sandbox.audit_log)
    began = time.monotonic()
    again = playbook("site", clusters, timeout=600)
    took_again, began = time.monotonic() - began, time.monotonic()
    status = playbook("status", clusters, timeout=600)
    took_status, written = time.monotonic() - began, log.our_writes()
    print(
        f"site on 1,000 GPU nodes: {took:.0f} s, control plane and fleet agent {used:.0f} s of processor time; MiB: {sizes}, together "
        f"{sum(sizes.values())}; again: {took_again:.0f} s; status: {took_status:.0f} s"
    )
    sandbox.close()
    assert status.rc == 0, status.stdout[-6000:]
    assert first.rc == 0, first.stdout[-6000:]
    assert [gate["nodes"]["passed"] for gate in first.results("node_gate")] == [1000] * 4
    assert again.rc == 0, again.stdout[-6000:]
    assert again.changed() == 0
    assert written == []
    assert took < 600
    assert sizes["fleet-agent"] < 1024
