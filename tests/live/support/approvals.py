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
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.identity import Credentials
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
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import (
    BINDINGS,
    BOOTSTRAPPER,
    authority_map,
    bound,
    group,
    put,
)
from ansible_collections.hwaccel.gpu.tests.unit.api.kubelet import handshake, server
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s
from ansible_collections.hwaccel.gpu.tests.unit.approval.signing import Filed

EXAMPLE = REPOSITORY / "examples" / "csr-approver"
NAMESPACE = "hwaccel-gpu-approver"

Obj = dict[str, t.Any]


#: Any identity of these tests may file requests.
_ANYBODY = bound("tests-file-requests", "system:node-bootstrapper", group("system:authenticated"))


def join(client: Client, name: str, address: str, *, port: int = 0) -> None:
    """A Node that is Ready, and has room for pods."""
    client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}, NODE)
    room = {"cpu": "64", "memory": "512Gi", "pods": "250"}
    status: Obj = {
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready"}],
        "capacity": room,
        "allocatable": room,
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


class Approvals:
    """A sandbox with OpenShift's bindings, and an approver with its own credentials."""

    def __init__(self, sandbox: Sandbox, folder: pathlib.Path) -> None:
        self.sandbox, self.admin = sandbox, connect({"kubeconfig": sandbox.kubeconfig})
        server, authority = endpoint(sandbox.kubeconfig)
        rights = [
            yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8")) for name in ("rights.yaml", "openshift.yaml")
        ]
        for obj in (
            *BINDINGS,
            _ANYBODY,
            authority_map(authority),
            *(one for found in rights for one in found["items"]),
        ):
            put(self.admin, obj)
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

    def machine(self, folder: pathlib.Path, name: str) -> Machine:
        return with_token(self.sandbox.kubeconfig, self.admin, folder, name)

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


@dataclasses.dataclass
class Machine:
    """A machine that joins. server: credentials that reach its API server. bootstrap: with the identity that the machine-config-server hands out."""

    server: Credentials
    bootstrap: Client
    folder: pathlib.Path
    name: str
    key: t.Any = dataclasses.field(default_factory=s.ec_key)

    def write(self, certificate: str) -> tuple[pathlib.Path, pathlib.Path]:
        paths = self.folder / "tls.crt", self.folder / "tls.key"
        kind = serialization
        paths[0].write_bytes(base64.b64decode(certificate))
        paths[1].write_bytes(self.key.private_bytes(kind.Encoding.PEM, kind.PrivateFormat.PKCS8, kind.NoEncryption()))
        return paths

    def node(self, certificate: str) -> Client:
        """A client with the certificate that was signed."""
        crt, key = (path.read_text() for path in self.write(certificate))
        return Client(Transport(dataclasses.replace(self.server, client_cert=crt, client_key=key, token="")))


def with_token(kubeconfig: str, admin: Client, folder: pathlib.Path, name: str) -> Machine:
    """A machine with a token of the ServiceAccount, as in a cluster that is installed."""
    server = dataclasses.replace(files.load(kubeconfig), client_cert="", client_key="")
    own = token(admin, *BOOTSTRAPPER, {"expirationSeconds": 3600})
    return Machine(server, Client(Transport(dataclasses.replace(server, token=own))), folder, name)


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
