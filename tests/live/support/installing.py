# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installation of OpenShift meets: an API server under its name, machines that file requests, and operators that report.

Machines and operators are stand-ins over OpenShift's own definitions of their kinds.
"""

from __future__ import annotations

import asyncio
import base64
import collections.abc as c
import contextlib
import datetime
import json
import pathlib
import ssl
import threading
import typing as t

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import connect
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import Resource
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import NODE
from ansible_collections.hwaccel.gpu.tests.live.support import administrators
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import bearer, bind_cluster_admin, endpoint
from ansible_collections.hwaccel.gpu.tests.live.support.approvals import (
    certificate,
    file,
    join,
    kubelet,
    with_token,
)
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import Sandbox
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import INSTALLED, Expected, Operators
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import (
    BINDINGS,
    INSTALLING,
    authority_map,
    define,
    put,
)
from ansible_collections.hwaccel.gpu.tests.unit.approval import signing as s

DOMAIN = "ocp.example.com"
Obj = dict[str, t.Any]
_CONFIG = "config.openshift.io/v1"
_CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_KINDS = ("ClusterVersion", "ClusterOperator", "Infrastructure")


class Installing:
    """kubeconfig: of the cluster's administrator, as an installation has it. endpoint: where its API is reached."""

    def __init__(self, sandbox: Sandbox, place: pathlib.Path) -> None:
        self.sandbox, self.admin, self._place = sandbox, connect({"kubeconfig": sandbox.kubeconfig}), place
        self.kubeconfig, self.endpoint = str(place / "kubeconfig"), ""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> t.Self:
        server, authority = endpoint(self.sandbox.kubeconfig)
        define(self.admin, (*INSTALLING, "OAuth.config.openshift.io"))
        for obj in (*BINDINGS, authority_map(authority)):
            put(self.admin, obj)
        administrators.serve(self.admin)
        bind_cluster_admin(self.admin, "default", "administrator")
        token = bearer(self.admin, "default", "administrator", 7200)
        port = self._stack.enter_context(relay(server, authority, self._place, f"api.{DOMAIN}"))
        self.endpoint = f"127.0.0.1:{port}"
        cluster = {
            "server": f"https://api.{DOMAIN}:6443",
            "certificate-authority-data": base64.b64encode((self._place / "relay.crt").read_bytes()).decode(),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "ocp", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "admin", "context": {"cluster": "ocp", "user": "admin"}}],
            "current-context": "admin",
        }
        pathlib.Path(self.kubeconfig).write_text(yaml.safe_dump(config), encoding="utf-8")
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    # Machines and operators.

    def install(self, folder: pathlib.Path, machines: c.Mapping[str, c.Mapping[str, Obj]]) -> None:
        """What happens once the files are there. Returns when everything is reported as installed."""
        metadata = folder / "metadata.json"
        until((folder / "auth" / "kubeconfig").exists, "the files of the installation", seconds=120)
        # Agents find a name for it themselves.
        found = json.loads(metadata.read_text(encoding="utf-8")) if metadata.exists() else {"infraID": "ocp-x7k2p"}
        self.rename(found["infraID"])
        administrators.kubeadmin(self.admin)
        administrators.router(self.admin, (self._place / "relay.crt").read_text(encoding="ascii"))
        joining = {
            group: {f"{name}.{DOMAIN}": one["hwaccel_address"] for name, one in machines.get(group, {}).items()}
            for group in ("control_plane", "workers")
        }
        expected = Expected(tuple(joining["control_plane"]), tuple(joining["workers"]))
        with Operators(self.sandbox.kubeconfig, expected, pace=0.5) as operators:
            for group in joining.values():
                for name, address in group.items():
                    self.join(name, address)
            operators.wait(INSTALLED)

    def rename(self, infrastructure: str) -> None:
        status = {
            "infrastructureName": infrastructure,
            "apiServerURL": f"https://api.{DOMAIN}:6443",
            "apiServerInternalURI": f"https://api-int.{DOMAIN}:6443",
            "controlPlaneTopology": "SingleReplica",
            "infrastructureTopology": "SingleReplica",
            "platform": "None",
        }
        obj = {
            "apiVersion": _CONFIG,
            "kind": "Infrastructure",
            "metadata": {"name": "cluster"},
            "spec": {"platformSpec": {"type": "None"}},
            "status": status,
        }
        put(self.admin, obj)

    def join(self, name: str, address: str) -> None:
        """A machine with the bootstrap identity: its kubelet files both requests, one after the other was approved. It may replace another one of its name."""
        number = len(list(self._place.glob(f"{name}-*")))
        place = self._place / f"{name}-{number}"
        place.mkdir()
        machine = with_token(self.sandbox.kubeconfig, self.admin, place, name)
        request = s.client(name, key=machine.key).but(name=f"csr-{name}-{number}")
        file(request, machine.bootstrap)
        node = machine.node(certificate(self.admin, request.name))
        serving = s.serving(name, *s.dns(name), *s.ips(address), key=machine.key).but(name=f"serving-{name}-{number}")
        if number == 0:
            join(node, name, "127.0.0.1")
        file(serving, node)
        crt, key = machine.write(certificate(self.admin, serving.name))
        port = self._stack.enter_context(kubelet(crt, key))
        status = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}, "conditions": [_ready("True")]}
        node.patch(NODE, name, "", {"status": status}, subresource="status")

    def lose(self, name: str) -> None:
        """What the node lifecycle controller writes when a machine is away."""
        self.admin.patch(NODE, name, "", {"status": {"conditions": [_ready("Unknown")]}}, subresource="status")


def _ready(status: str) -> Obj:
    return {"type": "Ready", "status": status, "reason": "Test", "message": f"its kubelet says {status}"}


@contextlib.contextmanager
def relay(server: str, authority: bytes, place: pathlib.Path, name: str) -> c.Iterator[int]:
    """The port of a TLS server with a certificate of its own for this name (relay.crt), which passes everything on to an API server."""
    key = s.ec_key()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=5))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (place / "relay.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    kind = serialization
    (place / "relay.key").write_bytes(
        key.private_bytes(kind.Encoding.PEM, kind.PrivateFormat.PKCS8, kind.NoEncryption())
    )
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(place / "relay.crt", place / "relay.key")
    theirs = ssl.create_default_context(cadata=authority.decode())
    theirs.check_hostname = False
    host, _colon, port = server.removeprefix("https://").partition(":")

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            far_reader, far_writer = await asyncio.open_connection(host, int(port), ssl=theirs, server_hostname=host)
            await asyncio.gather(_pass(reader, far_writer), _pass(far_reader, writer))

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    starting = asyncio.start_server(passed, "127.0.0.1", 0, ssl=ours)
    server_of = asyncio.run_coroutine_threadsafe(starting, loop).result(timeout=10)
    try:
        yield server_of.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server_of.close)
        asyncio.run_coroutine_threadsafe(_cancelled(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


async def _cancelled() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
