# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory with certificate requests, its signers and kubelets."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.clusters.cluster import Cluster
from ansible_collections.hwaccel.gpu.tests.unit.clusters.kinds import KINDS, served
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time

MACHINE = served("machine.openshift.io/v1beta1", "Machine", "machines")
AUTHORITY = s.Authority()


class CsrCluster(Cluster):
    """`kubelets`: certificates that kubelets present, by their address. Others do not answer. `dialed`: addresses that were asked."""

    def __init__(self, *filed: s.Filed, nodes: t.Iterable[str] = (cases.WORKER,), machines: bool = False) -> None:
        super().__init__(kinds=(*KINDS, MACHINE) if machines else KINDS, time=Time(s.NOW))
        self.kubelets: dict[str, bytes] = {}
        self.dialed: list[tuple[str, int]] = []
        for name in ("kube-system", "openshift-config-managed", "openshift-machine-api"):
            self.put({"kind": "Namespace", "metadata": {"name": name, "uid": f"uid-{name}"}})
        metadata = {"name": "csr-controller-ca", "namespace": "openshift-config-managed"}
        self.put({"kind": "ConfigMap", "metadata": metadata, "data": {"ca-bundle.crt": AUTHORITY.pem}})
        for number, name in enumerate(nodes):
            self.join(name, f"10.33.3.{20 + number}")
        for one in filed:
            self.file(one)

    def file(self, filed: s.Filed) -> None:
        assert self.time is not None
        obj = filed.object(self.time.now)
        obj["metadata"]["uid"] = filed.uid or self.new_uid()
        self.put(obj)

    def join(self, name: str, address: str = "10.33.3.20", *, ready: bool = True, port: int = 0) -> None:
        """A kubelet registers its Node, or reports another state of it."""
        status: dict[str, t.Any] = {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": str(ready), "message": "the network is not ready"}],
        }
        if port:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        self.put({"kind": "Node", "metadata": {"name": name}, "status": status})

    def ask(self, address: str, port: int) -> bytes:
        self.dialed.append((address, port))
        if address not in self.kubelets:
            raise Unreachable(
                "asking a kubelet for its certificate", f"{address} port {port}", "connection refused", "wait"
            )
        return self.kubelets[address]

    def conditions(self, name: str) -> list[str]:
        return [one["type"] for one in self.stored("CertificateSigningRequest", name)["status"].get("conditions") or ()]

    def approve(
        self, *, check_mode: bool = False, slice_of: float | None = None, resume: t.Any = None, **options: t.Any
    ) -> Outcome:
        given = {"expected_nodes": cases.EXPECTED, "profile": "openshift"} | options
        return run.approve(
            Settings(**given), self, self.clock(slice_of), self.ask, check_mode=check_mode, resume=resume
        )

    @property
    def decided(self) -> list[str]:
        """Names of requests that were written."""
        return [write.rpartition(" ")[2] for write in self.writes]
