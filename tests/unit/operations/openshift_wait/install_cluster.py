# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory that is being installed: its bootstrap, version, operators, nodes and their requests."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.objects import MEMBER_REMOVED
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.settings import Settings
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import served
from ansible_collections.hwaccel.gpu.tests.unit.clusters.requests import Request
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installs as i
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_csr.csr_cluster import AUTHORITY, CsrCluster

CONFIG, OPERATOR = "config.openshift.io/v1", "operator.openshift.io/v1"
KINDS = (
    served(CONFIG, "ClusterVersion", "clusterversions", namespaced=False),
    served(CONFIG, "ClusterOperator", "clusteroperators", namespaced=False),
    served(CONFIG, "Infrastructure", "infrastructures", namespaced=False),
    served(OPERATOR, "Etcd", "etcds", namespaced=False),
)
AWAY = Unreachable("listing", "https://api:6443", "no answer: connection refused", "wait")
MASTER, WORKER = i.MASTERS[0], i.WORKERS[0]
ADDRESSES = {MASTER: "10.33.3.10", WORKER: "10.33.3.20"}
EXPECTED = [{"name": name, "ip_addresses": [address]} for name, address in ADDRESSES.items()]
MACHINES = [
    {"name": i.BOOTSTRAP, "role": "bootstrap", "stage": "config"},
    {"name": MASTER, "role": "master", "stage": "config"},
    {"name": WORKER, "role": "worker", "stage": "config"},
]
#: What the role knows of a cluster of one master and one worker.
GIVEN: dict[str, t.Any] = {
    "expected_nodes": EXPECTED,
    "machines": MACHINES,
    "installation": {"path": "/srv/dgxpod", "infrastructure": i.INFRASTRUCTURE},
}


def conditions(**given: bool) -> list[dict[str, str]]:
    return [
        {"type": kind, "status": str(status), "reason": "Test", "message": f"{kind} is {status}"}
        for kind, status in given.items()
    ]


class InstallCluster(CsrCluster):
    """`away`: the API does not answer while it is set. Each watch takes as long as it is asked to, and then the next of `steps` happens."""

    def __init__(self, *steps: c.Callable[[], object] | None, away: bool = False) -> None:
        super().__init__(nodes=())
        self.kinds += KINDS
        self.away: HwaccelError | None = AWAY if away else None
        self.steps = list(steps)
        self.on("", self._answers)
        self.on("watch", self._turn)

    def _answers(self, request: Request) -> None:
        if self.away is not None:
            raise self.away

    def _turn(self, request: Request) -> None:
        assert self.time is not None
        self.time.now = max(self.time.now, request.body["deadline"])
        self.step()

    def step(self) -> None:
        if self.steps and (step := self.steps.pop(0)):
            step()

    def wait(
        self, *, check_mode: bool = False, slice_of: float | None = None, resume: t.Any = None, **options: t.Any
    ) -> Outcome:
        settings = Settings(**{"name": i.NAME} | GIVEN | options)
        return run.wait(settings, self, self.clock(slice_of), self.ask, check_mode=check_mode, resume=resume)

    def slices(self, slice_of: float = 10.0, most: int = 1000, **options: t.Any) -> tuple[Outcome, list[str]]:
        """As the action plugin runs them, with a second between two. The last outcome, and all lines."""
        resume: dict[str, t.Any] = {}
        lines: list[str] = []
        for _slice in range(most):
            outcome = self.wait(slice_of=slice_of, resume=resume, **options)
            lines += outcome.progress
            if outcome.pending is None:
                return outcome, lines
            resume = json.loads(json.dumps(outcome.pending))
            assert self.time is not None
            self.time.advance(0.5)
        raise AssertionError("it does not end")

    # What happens.

    def appear(self) -> None:
        self.away = None

    def infrastructure(self, name: str = i.INFRASTRUCTURE) -> None:
        self.put({"kind": "Infrastructure", "metadata": {"name": "cluster"}, "status": {"infrastructureName": name}})

    def bootstrap(self, status: str) -> None:
        metadata = {"name": "bootstrap", "namespace": "kube-system"}
        self.put({"kind": "ConfigMap", "metadata": metadata, "data": {"status": status}})

    def etcd(self, removed: bool) -> None:
        self.put(
            {
                "kind": "Etcd",
                "metadata": {"name": "cluster"},
                "status": {"conditions": conditions(**{MEMBER_REMOVED: removed})},
            }
        )

    def release(self, state: str = "Partial", **given: bool) -> None:
        status = {"history": [{"state": state}], "conditions": conditions(**given)}
        self.put({"kind": "ClusterVersion", "metadata": {"name": "version"}, "status": status})

    def operator(self, name: str, **given: bool) -> None:
        status = {"conditions": conditions(**given)}
        self.put({"kind": "ClusterOperator", "metadata": {"name": name}, "status": status})

    def serve(self, name: str) -> None:
        """Its kubelet has a certificate of the cluster."""
        self.kubelets[ADDRESSES[name]] = AUTHORITY.issue(name, *s.dns(name), *s.ips(ADDRESSES[name]))

    def up(self, name: str) -> None:
        self.join(name, ADDRESSES[name])
        self.serve(name)

    def install(self) -> None:
        """All that an install ends with."""
        self.infrastructure()
        self.bootstrap("complete")
        self.etcd(True)
        for name in ADDRESSES:
            self.up(name)
        self.release("Completed", Available=True, Progressing=False)
        self.operator("etcd", Available=True)
