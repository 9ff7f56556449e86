# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate on 5,000 nodes and 25,000 pods of realistic size stays within its budget of time and memory."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.client import Page
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.run import begin
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate.settings import Settings
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.gpu import samples as s

PAGE = 500
#: Seconds of CPU time until the first verdicts, and peak memory in MiB.
SECONDS, MIB = 30.0, 250.0


class BigCluster(Cluster):
    """Pages of JSON that are created when they are requested, so that only the state of the gate is in memory."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = nodes
        self.creation_seconds = 0.0

    def pages(self, resource, namespace="", **_selectors):
        per_page = PAGE if resource.kind == "Node" else PAGE // 5
        for start in range(0, self.nodes, per_page):
            began = time.process_time()
            text = json.dumps(
                [
                    fat
                    for number in range(start, min(start + per_page, self.nodes))
                    for fat in self._objects(resource.kind, f"training-{number}")
                ]
            )
            self.creation_seconds += time.process_time() - began
            yield Page(json.loads(text), "1")

    def _objects(self, kind: str, name: str) -> list[s.Obj]:
        if kind == "Node":
            node = s.node(
                name, allocatable=8, labels={f"example.org/label-{number}": "some value of it" for number in range(120)}
            )
            node["status"]["images"] = [
                {"names": [f"registry.example.org/team/image-{number}@sha256:{'0' * 64}"], "sizeBytes": number}
                for number in range(50)
            ]
            return [_fat(node, 20)]
        loading = s.running(ready=False, started=False)
        pods = [
            s.driver(name, loading),
            s.toolkit(name, s.waiting()),
            s.validator(name, s.running(ready=False)),
            s.plugin(name),
            s.worker(name),
        ]
        return [_fat(pod, 40) for pod in pods]


def _fat(obj: s.Obj, entries: int) -> s.Obj:
    """Add managed fields like those of every real object."""
    fields = {f"f:field-{number}": {"f:mountPath": {}, "f:name": {}, "f:readOnly": {}} for number in range(entries)}
    obj["metadata"]["managedFields"] = [
        {"manager": manager, "operation": "Update", "fieldsV1": fields}
        for manager in ("kubelet", "kube-controller-manager")
    ]
    return obj


def measure(nodes: int) -> dict[str, float]:
    cluster = BigCluster(nodes)
    began = time.process_time()
    gate = begin(Settings("driver"), cluster, {})
    gate.judge()
    spent = time.process_time() - began - cluster.creation_seconds
    packed = len(gate.fleet.pack())
    assert len(gate.verdicts) == nodes
    assert {verdict.reason for verdict in gate.verdicts.values()} == {"the driver is compiling or loading"}
    return {"seconds": spent, "mib": peak_mib(), "resume_kib": packed / 1024}


def peak_mib() -> float:
    """Peak memory of this process alone: the maximum of getrusage is inherited from the parent process (fork, then exec)."""
    lines = pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


@pytest.mark.slow
def test_a_large_fleet_stays_within_the_budget() -> None:
    """Runs in its own process, because peak memory is measured per process."""
    program = f"import json; from {__name__} import measure; print(json.dumps(measure(5000)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(run.stdout)
    assert found["seconds"] <= SECONDS, found
    assert found["mib"] <= MIB, found


def test_the_state_between_slices_is_small_for_each_node() -> None:
    """The state between two slices is a text that needs much less space for each pod than the pod itself."""
    assert measure(200)["resume_kib"] < 200 * 5 * 0.15
