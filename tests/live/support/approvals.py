# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose kubelets file requests for certificates: real requests of any identity, real signers, and OpenShift's bindings.

The approver has the rights and the kubeconfig of examples/csr-approver.
"""

from __future__ import annotations

import base64
import collections.abc as c
import contextlib
import dataclasses
import pathlib
import ssl
import typing as t
import urllib.parse

import yaml
from cryptography.hazmat.primitives import serialization

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import kubeconfig as files
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.transport import Transport
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR, NODE
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import await_right, endpoint, token
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import REPOSITORY, Sandbox
from ansible_collections.hwaccel.gpu.tests.unit.api.kubelet import handshake, server
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Filed

EXAMPLE = REPOSITORY / "examples" / "csr-approver"
NAMESPACE = "hwaccel-gpu-approver"
BOOTSTRAPPER = ("openshift-machine-config-operator", "node-bootstrapper")

Obj = dict[str, t.Any]


def _bound(name: str, role: str, *subjects: Obj) -> Obj:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }


def _group(name: str) -> Obj:
    return {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name}


#: machine-config-operator, manifests/machineconfigserver/csr-*.yaml, and the group of the cluster's administrators, which OpenShift's API server has.
OPENSHIFT: list[Obj] = [
    *(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (BOOTSTRAPPER[0], "openshift-config-managed", "openshift-machine-api")
    ),
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": BOOTSTRAPPER[1], "namespace": BOOTSTRAPPER[0]}},
    _bound(
        "system-bootstrap-node-bootstrapper",
        "system:node-bootstrapper",
        {"kind": "ServiceAccount", "name": BOOTSTRAPPER[1], "namespace": BOOTSTRAPPER[0]},
    ),
    _bound(
        "system-bootstrap-node-renewal",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        _group("system:nodes"),
    ),
    _bound("cluster-admins", "cluster-admin", _group("system:cluster-admins")),
    # Any identity of these tests may file requests.
    _bound("tests-file-requests", "system:node-bootstrapper", _group("system:authenticated")),
]


def authority_map(pem: bytes) -> Obj:
    """Where OpenShift keeps the CA of serving certificates."""
    metadata = {"name": "csr-controller-ca", "namespace": "openshift-config-managed"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca-bundle.crt": pem.decode()}}


def join(client: Client, name: str, address: str, *, port: int = 0) -> None:
    """A Node that is Ready."""
    client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, NODE)
    status: Obj = {
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready"}],
    }
    if port:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
    client.patch(NODE, name, "", {"status": status}, subresource="status")


def file(filed: Filed, client: Client) -> Obj:
    """Files a request, whose identity is the client's."""
    spec = {key: value for key, value in filed.object()["spec"].items() if key not in ("username", "groups", "extra")}
    body = {"apiVersion": CSR.api_version, "kind": CSR.kind, "metadata": {"name": filed.name}, "spec": spec}
    return client.create(body, CSR).object


def certificate(client: Client, name: str) -> str:
    """base64 of a request's certificate, when the signer has issued it."""
    until(lambda: bool(client.get(CSR, name)["status"].get("certificate")), f"{name} to be signed")
    return str(client.get(CSR, name)["status"]["certificate"])


def apply(client: Client, objects: c.Iterable[Obj]) -> None:
    for obj in objects:
        client.apply(obj, client.resource(obj["apiVersion"], obj["kind"]), field_manager="tests")


class Approvals:
    """A sandbox with OpenShift's bindings, and an approver with its own credentials."""

    def __init__(self, sandbox: Sandbox, folder: pathlib.Path) -> None:
        self.sandbox, self.admin = sandbox, connect({"kubeconfig": sandbox.kubeconfig})
        server, authority = endpoint(sandbox.kubeconfig)
        apply(self.admin, [*OPENSHIFT, authority_map(authority)])
        for name in ("rights.yaml", "openshift.yaml"):
            apply(self.admin, yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))["items"])
        text = (EXAMPLE / "kubeconfig.yaml").read_text(encoding="utf-8")
        (folder / "ca.crt").write_bytes(authority)
        (folder / "token").write_text(token(self.admin, NAMESPACE, "approver", {"expirationSeconds": 43200}))
        self.kubeconfig = str(folder / "kubeconfig.yaml")
        (folder / "kubeconfig.yaml").write_text(text.replace("https://api.dgxpod.example.com:6443", server))
        self.approver: Client = connect({"kubeconfig": self.kubeconfig})
        await_right(self.approver, "update", CSR, subresource="approval")
        for name, addresses in cases.NODES.items():
            self.join(name, sorted(addresses)[0])

    def join(self, name: str, address: str, *, port: int = 0, client: Client | None = None) -> None:
        """A Node registers itself, or the administrator does so in its place."""
        join(client or self.admin, name, address, port=port)

    def identity(self, filed: Filed) -> Client:
        """A client with the identity that the request names, by impersonation."""
        extra = tuple(
            (f"Impersonate-Extra-{urllib.parse.quote(key, safe='')}", value)
            for key, values in filed.extra.items()
            for value in values
        )
        credentials = dataclasses.replace(
            files.load(self.sandbox.kubeconfig),
            impersonate_user=filed.username,
            impersonate_groups=filed.groups,
            extra_headers=extra,
        )
        return Client(Transport(credentials))

    def file(self, filed: Filed, client: Client | None = None) -> Obj:
        """Files the request as its identity, and makes the conditions that it has."""
        stored = file(filed, client or self.identity(filed))
        for condition in filed.conditions:
            decided = {"type": condition, "status": "True", "reason": "Test", "message": "by a test"}
            stored = self.admin.replace(
                stored | {"status": {"conditions": [decided]}}, CSR, subresource="approval"
            ).object
        return stored

    def stored(self, name: str) -> Obj:
        return self.admin.get(CSR, name)

    def decided(self, name: str) -> list[str]:
        """Types of the request's conditions, [] also if it is gone."""
        try:
            return [one["type"] for one in (self.stored(name).get("status") or {}).get("conditions") or ()]
        except NotFound:
            return []

    def certificate(self, name: str) -> str:
        """base64 of the signed certificate, when the signer has issued it."""
        return certificate(self.admin, name)

    def clear(self) -> None:
        for obj in self.admin.list(CSR, metadata_only=True).items:
            self.delete(obj["metadata"]["name"])

    def delete(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            self.admin.delete(CSR, name)

    def approve(
        self, client: Client | None = None, *, ask: run.Ask = lambda _address, _port: b"", **options: t.Any
    ) -> Outcome:
        """One run as the approver. ask: by default each kubelet presents no certificate."""
        given = {"expected_nodes": cases.EXPECTED, "profile": "openshift"} | options
        return run.approve(Settings(**given), client or self.approver, Clock(), ask)


class Joinable(t.Protocol):
    """A cluster with the bootstrap identity of OpenShift."""

    sandbox: Sandbox
    admin: Client


@dataclasses.dataclass
class Machine:
    """A machine that joins with the bootstrap token, as the machine-config-server hands it out."""

    approvals: Joinable
    folder: pathlib.Path
    name: str
    key: t.Any = dataclasses.field(default_factory=s.ec_key)

    @property
    def bootstrap(self) -> Client:
        return self._client(token=token(self.approvals.admin, *BOOTSTRAPPER, {"expirationSeconds": 3600}))

    def write(self, certificate: str) -> tuple[pathlib.Path, pathlib.Path]:
        paths = self.folder / "tls.crt", self.folder / "tls.key"
        kind = serialization
        paths[0].write_bytes(base64.b64decode(certificate))
        paths[1].write_bytes(self.key.private_bytes(kind.Encoding.PEM, kind.PrivateFormat.PKCS8, kind.NoEncryption()))
        return paths

    def node(self, certificate: str) -> Client:
        """A client with the certificate that was signed."""
        crt, key = (path.read_text() for path in self.write(certificate))
        return self._client(client_cert=crt, client_key=key)

    def _client(self, **credentials: str) -> Client:
        own = {"client_cert": "", "client_key": ""} | credentials
        return Client(Transport(dataclasses.replace(files.load(self.approvals.sandbox.kubeconfig), **own)))


class Between:
    """A client whose first write is preceded by what somebody else does."""

    def __init__(self, client: Client, change: c.Callable[[], object]) -> None:
        self._client, self._change, self.writes = client, change, 0

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._client, name)

    def replace(self, *arguments: t.Any, **options: t.Any) -> t.Any:
        self.writes += 1
        if self.writes == 1:
            self._change()
        return self._client.replace(*arguments, **options)


@contextlib.contextmanager
def kubelet(certificate: pathlib.Path, key: pathlib.Path) -> c.Iterator[int]:
    """The port of a server that presents a certificate, as a kubelet does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with server(handshake(context)) as port:
        yield port
