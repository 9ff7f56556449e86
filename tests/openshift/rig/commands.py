# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the control plane is started from the files of the bootstrap machine's disk: flags as cluster-kube-apiserver-operator and
cluster-kube-controller-manager-operator render them for the bootstrap machine (bindata/bootkube/config), where they matter for who trusts whom. Pure.

Other than there: etcd serves on the loopback interface without TLS, since its certificates are no files of the installer (its operator makes them); the
admission plugin NodeRestriction is off, since that of OpenShift lets a kubelet register the labels of its role (pkg/kubelet/apis of openshift/kubernetes), and
that of Kubernetes does not.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import json
import pathlib

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import AUDIT_POLICY
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.process import Command
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk

ETCD, API, MANAGER, SCHEDULER = COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
#: Certificate and key of each client by its program.
CLIENTS = {name: f"kube-control-plane-{name}-client" for name in (MANAGER, SCHEDULER)}
_DEFAULT_SERVER = "kube-apiserver-service-network-server"
_NAMED_SERVERS = (
    "kube-apiserver-localhost-server",
    _DEFAULT_SERVER,
    "kube-apiserver-lb-server",
    "kube-apiserver-internal-lb-server",
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """state: a folder for all that the processes write. programs: folder with a program for each of COMPONENTS. ports: of etcd and etcd-peer on 127.0.0.1."""

    disk: Disk
    state: pathlib.Path
    programs: pathlib.Path
    address: str
    port: int
    ports: c.Mapping[str, int]

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def audit_log(self) -> pathlib.Path:
        return self.state / "audit.log"

    def kubeconfig(self, name: str = "") -> pathlib.Path:
        """Of a program of CLIENTS, or of the administrator."""
        return self.state / (f"{name}.kubeconfig" if name else "kubeconfig")


def files(plan: Plan) -> dict[pathlib.Path, str]:
    """Every configuration file with its content."""
    made = {
        plan.state / "etcd.json": json.dumps(_etcd(plan)),
        plan.state / "audit-policy.yaml": AUDIT_POLICY,
        plan.kubeconfig(): json.dumps(plan.disk.client(plan.server)),
    }
    return made | {
        plan.kubeconfig(name): json.dumps(plan.disk.client(plan.server, pair)) for name, pair in CLIENTS.items()
    }


def command(plan: Plan, component: str) -> Command:
    arguments = {
        ETCD: lambda: [f"--config-file={plan.state}/etcd.json"],
        API: lambda: _api(plan),
        MANAGER: lambda: _manager(plan),
        SCHEDULER: lambda: _client(plan, SCHEDULER),
    }[component]()
    # As in the sandbox: less garbage collection for some memory.
    environment = {"HOME": str(plan.state), "PATH": "/usr/bin:/bin", "GOGC": "200"}
    return Command(component, (str(plan.programs / component), *arguments), environment, plan.state)


def _etcd(plan: Plan) -> dict[str, object]:
    client, peer = (f"http://127.0.0.1:{plan.ports[name]}" for name in (ETCD, f"{ETCD}-peer"))
    return {
        "name": "default",
        "data-dir": str(plan.state / "etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "log-level": "warn",
        "unsafe-no-fsync": True,
    }


def _api(plan: Plan) -> list[str]:
    tls = plan.disk.tls
    named = [f"--tls-sni-cert-key={tls(name + '.crt')},{tls(name + '.key')}" for name in _NAMED_SERVERS]
    return [
        f"--bind-address={plan.address}",
        f"--advertise-address={plan.address}",
        f"--secure-port={plan.port}",
        "--endpoint-reconciler-type=none",
        f"--etcd-servers=http://127.0.0.1:{plan.ports[ETCD]}",
        f"--service-cluster-ip-range={plan.disk.service_network}",
        f"--client-ca-file={tls('kube-apiserver-complete-client-ca-bundle.crt')}",
        f"--tls-cert-file={tls(_DEFAULT_SERVER + '.crt')}",
        f"--tls-private-key-file={tls(_DEFAULT_SERVER + '.key')}",
        *named,
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={tls('service-account.pub')}",
        f"--service-account-key-file={tls('bound-service-account-signing-key.pub')}",
        f"--service-account-signing-key-file={tls('bound-service-account-signing-key.key')}",
        f"--kubelet-client-certificate={tls('kube-apiserver-to-kubelet-client.crt')}",
        f"--kubelet-client-key={tls('kube-apiserver-to-kubelet-client.key')}",
        f"--kubelet-certificate-authority={tls('kubelet-serving-ca-bundle.crt')}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={tls('aggregator-ca-bundle.crt')}",
        "--requestheader-allowed-names=kube-apiserver-proxy,system:kube-apiserver-proxy,system:openshift-aggregator",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={tls('aggregator-client.crt')}",
        f"--proxy-client-key-file={tls('aggregator-client.key')}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--profiling=false",
        "--event-ttl=10m",
        f"--audit-policy-file={plan.state}/audit-policy.yaml",
        f"--audit-log-path={plan.audit_log}",
    ]


def _client(plan: Plan, component: str) -> list[str]:
    # Nobody asks for its health by HTTP: its process and what it does are looked at.
    limits = ["--kube-api-qps=500", "--kube-api-burst=1000"]
    return [
        f"--kubeconfig={plan.kubeconfig(component)}",
        "--secure-port=0",
        "--leader-elect=false",
        "--profiling=false",
        *limits,
    ]


def _manager(plan: Plan) -> list[str]:
    tls = plan.disk.tls
    return [
        *_client(plan, MANAGER),
        "--use-service-account-credentials=true",
        f"--root-ca-file={tls('kube-apiserver-complete-server-ca-bundle.crt')}",
        f"--service-account-private-key-file={tls('service-account.key')}",
        f"--cluster-signing-cert-file={tls('kubelet-signer.crt')}",
        f"--cluster-signing-key-file={tls('kubelet-signer.key')}",
        "--cluster-signing-duration=720h",
        # Emulated computers on a busy machine miss what would be forty seconds of renewals.
        "--node-monitor-grace-period=5m",
    ]
