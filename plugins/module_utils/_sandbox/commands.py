# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each component is started: its flags, its configuration files and its identity for the API server.

Pure: text and argument lists from paths and ports.
"""

from __future__ import annotations

import base64
import dataclasses
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import Layout
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pki import SERVICE_NETWORK
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.process import Command

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
AGENT = "fleet-agent"
#: The order in which they start. They stop in groups in reverse order.
COMPONENTS = (*CONTROL_PLANE, AGENT)
PORTS = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", AGENT)
#: Clients of the API server with their own kubeconfig.
CLIENTS = ("kube-controller-manager", "kube-scheduler", "kwok", AGENT)
#: kwok renews the leases of nodes with this annotation.
SIMULATED = "kwok.x-k8s.io/node=fake"
#: Maximum renewals of all leases per second.
_RENEWALS = 5


@dataclasses.dataclass(frozen=True)
class CommandSettings:
    """Parameters of the commands of one sandbox."""

    layout: Layout
    ports: t.Mapping[str, int]
    python: str
    nodes: int = 0
    #: Digest of the component's files by component: a new version restarts it.
    versions: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"


def lease_seconds(nodes: int) -> int:
    """How long a node's lease is valid: kubelet's 40 s, increased in steps if there would be too many renewals.

    kwok renews after a quarter of it. Steps are used because another value restarts kwok.
    """
    seconds = 40
    while nodes * 4 / seconds > _RENEWALS:
        seconds *= 4
    return seconds


def files(plan: CommandSettings) -> dict[pathlib.Path, str]:
    """Every configuration file with its content."""
    layout = plan.layout
    configs = {
        layout.config / "etcd.yaml": _etcd(plan),
        layout.config / "audit-policy.yaml": AUDIT_POLICY,
        layout.config / "kwok.yaml": _KWOK,
        layout.kubeconfig: kubeconfig(plan, "admin"),
    }
    return configs | {layout.config / f"{client}.kubeconfig": kubeconfig(plan, client) for client in CLIENTS}


def kubeconfig(plan: CommandSettings, subject: str) -> str:
    pki = plan.layout.pki

    def data(file: str) -> str:
        return base64.b64encode((pki / file).read_bytes()).decode()

    return f"""apiVersion: v1
kind: Config
clusters:
  - name: sandbox
    cluster:
      server: {plan.server}
      certificate-authority-data: {data("ca.crt")}
users:
  - name: {subject}
    user:
      client-certificate-data: {data(subject + ".crt")}
      client-key-data: {data(subject + ".key")}
contexts:
  - name: sandbox
    context:
      cluster: sandbox
      user: {subject}
current-context: sandbox
"""


def command(plan: CommandSettings, component: str) -> Command:
    """The command of a component; its digest changes with everything that requires a restart."""
    layout = plan.layout
    arguments = _ARGUMENTS[component](plan)
    # The caller's environment is not passed on, because a proxy variable would route the API server's requests to kubelets off the machine.
    environment = {"HOME": str(layout.root), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    if component == AGENT:
        program: tuple[str, ...] = (plan.python, "-m", "fleet_agent")
        environment |= {"PYTHONPATH": str(layout.agent), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    else:
        program = (str(layout.bin / component),)
        # Less frequent garbage collection needs an eighth less CPU time, and about 60 MiB more memory for the API server.
        environment["GOGC"] = "200"
    content = {"etcd": _etcd(plan), "kube-apiserver": AUDIT_POLICY, "kwok": _KWOK}.get(component, "")
    # The others read the server from a kubeconfig at their start only.
    server = "" if component in ("etcd", "kube-apiserver") else str(plan.ports["kube-apiserver"])
    digest_of = plan.versions.get(component, "") + content + server
    return Command(
        component, (*program, *arguments), environment, layout.agent if component == AGENT else layout.root, digest_of
    )


def _etcd(plan: CommandSettings) -> str:
    pki = plan.layout.pki
    client, peer = (f"https://127.0.0.1:{plan.ports[name]}" for name in ("etcd", "etcd-peer"))
    # fsync is off, because a power failure can only damage a simulated cluster.
    return f"""name: default
data-dir: {plan.layout.root}/etcd
listen-client-urls: {client}
advertise-client-urls: {client}
listen-peer-urls: {peer}
initial-advertise-peer-urls: {peer}
initial-cluster: default={peer}
log-level: warn
unsafe-no-fsync: true
quota-backend-bytes: 4294967296
auto-compaction-mode: periodic
auto-compaction-retention: 5m
client-transport-security: {{cert-file: {pki}/etcd.crt, key-file: {pki}/etcd.key, client-cert-auth: true, trusted-ca-file: {pki}/etcd-ca.crt}}
peer-transport-security: {{cert-file: {pki}/etcd.crt, key-file: {pki}/etcd.key, client-cert-auth: true, trusted-ca-file: {pki}/etcd-ca.crt}}
"""


#: One line for each request, written when it is complete and before the caller gets the answer.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
"""

#: kwok exits without a stage. This one matches no node, and there is none for pods, so kwok starts no controller for
#: them: it only renews leases (and RBAC does not allow more).
_KWOK = """apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  nodeLeaseParallelism: 8
  nodePlayStageParallelism: 1
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: leases-only
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchAnnotations: {sandbox.hwaccel.gpu/no-node-has-this: "true"}
  next: {}
"""

#: Permissions of kwok: it reads nodes and manages their leases. It lists pods because its watch on them is not optional.
KWOK_RULES: list[dict[str, list[str]]] = [
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "get", "list", "update", "watch"],
    },
]


def _etcd_arguments(plan: CommandSettings) -> list[str]:
    return [f"--config-file={plan.layout.config}/etcd.yaml"]


def _apiserver_arguments(plan: CommandSettings) -> list[str]:
    layout, pki = plan.layout, plan.layout.pki
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={plan.ports['kube-apiserver']}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--etcd-servers=https://127.0.0.1:{plan.ports['etcd']}",
        f"--etcd-cafile={pki}/etcd-ca.crt",
        f"--etcd-certfile={pki}/etcd-client.crt",
        f"--etcd-keyfile={pki}/etcd-client.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-accounts.pub",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        # Without it, logs and exec would resolve the node's name by DNS.
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--anonymous-auth=false",
        "--profiling=false",
        # Thousands of simulated kubelets share this server with all other clients.
        "--max-requests-inflight=1200",
        "--max-mutating-requests-inflight=600",
        f"--audit-policy-file={layout.config}/audit-policy.yaml",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxsize=1024",
        "--audit-log-maxbackup=1",
    ]


def _client_arguments(plan: CommandSettings, component: str) -> list[str]:
    pki, config = plan.layout.pki, f"{plan.layout.config}/{component}.kubeconfig"
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={plan.ports[component]}",
        f"--tls-cert-file={pki}/controllers.crt",
        f"--tls-private-key-file={pki}/controllers.key",
        "--leader-elect=false",
        "--profiling=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def _controller_manager_arguments(plan: CommandSettings) -> list[str]:
    pki = plan.layout.pki
    return [
        *_client_arguments(plan, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/service-accounts.key",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        # The agent decides whether a node is ready, even if its lease is rarely renewed.
        "--node-monitor-grace-period=24h",
        "--node-monitor-period=1m",
    ]


def _scheduler_arguments(plan: CommandSettings) -> list[str]:
    return _client_arguments(plan, "kube-scheduler")


def _kwok_arguments(plan: CommandSettings) -> list[str]:
    config = plan.layout.config
    return [
        f"--kubeconfig={config}/kwok.kubeconfig",
        f"--config={config}/kwok.yaml",
        f"--manage-nodes-with-annotation-selector={SIMULATED}",
        f"--node-lease-duration-seconds={lease_seconds(plan.nodes)}",
        "--v=WARN",
    ]


def _agent_arguments(plan: CommandSettings) -> list[str]:
    layout = plan.layout
    return [
        f"--kubeconfig={layout.config}/{AGENT}.kubeconfig",
        f"--fleet={layout.fleet}",
        "--state",
        str(layout.root),
        f"--listen-port={plan.ports[AGENT]}",
    ]


_ARGUMENTS: dict[str, t.Callable[[CommandSettings], list[str]]] = {
    "etcd": _etcd_arguments,
    "kube-apiserver": _apiserver_arguments,
    "kube-controller-manager": _controller_manager_arguments,
    "kube-scheduler": _scheduler_arguments,
    "kwok": _kwok_arguments,
    AGENT: _agent_arguments,
}
