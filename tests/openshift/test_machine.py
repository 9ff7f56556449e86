# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for kubelet of OpenShift's machines, at a real API server with real signers, approved by the rules of the product.

The rules refuse addresses of loopback, so these tests need a network namespace of their own. Runtime: one control plane, a minute.
"""

from __future__ import annotations

import collections.abc as c
import datetime
import itertools
import pathlib
import socket
import ssl
import stat
import typing as t

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound, Unreachable
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR, NODE
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings
from ansible_collections.hwaccel.gpu.tests.live.support.accounts import bearer
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip
from ansible_collections.hwaccel.gpu.tests.openshift.conftest import ISOLATED, Made
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import unpack
from ansible_collections.hwaccel.gpu.tests.openshift.rig.node_program import (
    OWN,
    Process,
    write_bootstrap,
)
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import bound, furnish, group, put
from ansible_collections.hwaccel.gpu.tests.unit.api.kubelet import server

DOMAIN = "dgxpod.example.com"
Obj = dict[str, t.Any]
PORT = 10250
#: All of its addresses are this host's.
NETWORK = "10.33.3.0/24"
#: Last bytes of addresses.
numbers = itertools.count(20)


@pytest.fixture(scope="module")
def cluster(made: Made, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[ControlPlane]:
    if not ISOLATED:
        pytest.skip("machines need a network namespace of their own: run it by tests/tools/isolated")
    ip("address", "add", NETWORK, "dev", "lo")
    disk = unpack(made.folder / "bootstrap.ign", tmp_path_factory.mktemp("disk"))
    with ControlPlane(find_programs(), disk, tmp_path_factory.mktemp("plane") / "state") as started:
        furnish(started.admin, disk)
        # Any identity of these tests may file requests.
        put(started.admin, bound("tests-file-requests", "system:node-bootstrapper", group("system:authenticated")))
        yield started


class Computer:
    """A folder in place of a machine's disk, and the program on it."""

    def __init__(
        self, cluster: ControlPlane, program: pathlib.Path, place: pathlib.Path, name: str, address: str
    ) -> None:
        self.cluster, self.program, self.root, self.address = cluster, program, place / name, address
        self.name, self.log, self.admin = f"{name}.{DOMAIN}", place / f"{name}.log", cluster.admin
        self.expected = [{"name": self.name, "ip_addresses": [address]}]
        self.root.mkdir()

    def ignite(self, token: str = "", endpoint: str = "") -> None:
        """As Ignition leaves it, but that api-int is no name of DNS. token: instead of the certificate that the bootstrap machine hands out."""
        kubeconfig = self.cluster.disk.kubeconfig("kubelet")
        where = {"server": f"https://{endpoint or self.cluster.endpoint}", "tls-server-name": f"api-int.{DOMAIN}"}
        kubeconfig["clusters"][0]["cluster"] |= where
        if token:
            kubeconfig["users"][0]["user"] = {"token": token}
        write_bootstrap(self.root, kubeconfig)

    def start(self, *arguments: str) -> Process:
        given = (f"--root={self.root}", f"--name={self.name}", f"--address={self.address}", "--node-status-interval=1s")
        return Process.start(self.log, self.program, "node", *given, *arguments)

    def requests(self, signer: str) -> list[str]:
        """Names of its requests that have no certificate yet."""
        return [
            one["metadata"]["name"]
            for one in self.admin.list(CSR).items
            if one["spec"]["signerName"] == f"kubernetes.io/{signer}" and not one["status"].get("certificate")
        ]

    def approve(self, expected: list[Obj] | None = None) -> Outcome:
        """By the rules of the product. expected: another inventory than that of this machine."""
        settings = Settings(expected_nodes=self.expected if expected is None else expected, profile="openshift")
        return run.approve(settings, self.admin, Clock(), serving_certificate)

    def join(self) -> None:
        """Approves both requests, each when it is there."""
        for signer in ("kube-apiserver-client-kubelet", "kubelet-serving"):
            until(lambda one=signer: bool(self.requests(one)), f"a request for {signer}", seen=self.log.read_text)
            assert [one["node"] for one in self.approve().values["approved"]] == [self.name]
        until(lambda: bool(self.served()), "a serving certificate")

    def node(self) -> Obj | None:
        try:
            return self.admin.get(NODE, self.name)
        except NotFound:
            return None

    def ready(self) -> bool:
        conditions = (self.node() or {"status": {}})["status"].get("conditions") or []
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def served(self) -> bytes:
        """DER of the certificate that it serves with, b"" if it has none or does not listen."""
        try:
            return serving_certificate(self.address, PORT)
        except Unreachable:
            return b""

    def kept(self, kind: str) -> bytes:
        """Key and certificate that it keeps. kind: client or server."""
        return (self.root / OWN / "pki" / f"kubelet-{kind}-current.pem").read_bytes()


@pytest.fixture
def computer(cluster: ControlPlane, program: pathlib.Path, tmp_path: pathlib.Path) -> c.Iterator[Computer]:
    number = next(numbers)
    yield Computer(cluster, program, tmp_path, f"w{number}", f"10.33.3.{number}")
    for filed in cluster.admin.list(CSR, metadata_only=True).items:
        cluster.admin.delete(CSR, filed["metadata"]["name"])


def echo(connection: socket.socket) -> None:
    while data := connection.recv(4096):
        connection.sendall(data)


def asked(address: str, port: int, text: bytes = b"hello") -> bytes:
    """What an echo answers to all of the text, after the end of the text was passed on. b"" if nobody listens."""
    try:
        with socket.create_connection((address, port), timeout=10) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return b""


def https(computer: Computer, path: str) -> str:
    """The answer to a GET, with the certificate verified for the Node's name."""
    context = ssl.create_default_context(cafile=computer.cluster.disk.tls("kubelet-serving-ca-bundle.crt"))
    with (
        socket.create_connection((computer.address, PORT), timeout=10) as connection,
        context.wrap_socket(connection, server_hostname=computer.name) as secured,
    ):
        secured.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return b"".join(iter(lambda: secured.recv(4096), b"")).decode()


def lease(computer: Computer) -> Obj:
    admin = computer.admin
    return admin.get(admin.resource("coordination.k8s.io/v1", "Lease"), computer.name, "kube-node-lease")


def test_it_joins_when_both_requests_are_approved(computer: Computer) -> None:
    computer.ignite()
    with server(echo) as far, computer.start("--role=master", f"--forward=6443=127.0.0.1:{far}") as process:
        until(lambda: bool(computer.requests("kube-apiserver-client-kubelet")), "its first request")
        first = process.output()
        assert first.startswith("machine: a stand-in for kubelet")
        assert computer.node() is None and not (computer.root / OWN / "pki" / "kubelet-client-current.pem").exists()
        assert (asked(computer.address, 6443), computer.served()) == (b"", b"")

        assert [one["signer"] for one in computer.approve().values["approved"]] == ["client"]
        until(computer.ready, "its Node to be Ready", seen=process.output)
        until(lambda: bool(computer.requests("kubelet-serving")), "its second request")
        assert computer.served() == b"", "no certificate before the approval"
        assert [one["signer"] for one in computer.approve().values["approved"]] == ["serving"]
        until(lambda: bool(computer.served()), "its certificate")
        assert https(computer, "/healthz").endswith("\r\n\r\nok")
        assert https(computer, "/pods").startswith("HTTP/1.0 404 ")
        assert asked(computer.address, 6443) == b"hello"
        assert process.stop() == 0
    certificate = x509.load_pem_x509_certificate(computer.kept("server"))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in names] == [computer.name, computer.address]


@pytest.mark.parametrize(("role", "roles"), [("master", {"control-plane", "master"}), ("worker", {"worker"})])
def test_its_node_is_that_of_its_role(computer: Computer, role: str, roles: set[str]) -> None:
    computer.ignite()
    prefix = "node-role.kubernetes.io/"
    with computer.start(f"--role={role}"):
        computer.join()
        node = computer.node()
        assert node
        labels, status = node["metadata"]["labels"], node["status"]
        assert {name.removeprefix(prefix) for name in labels if name.startswith(prefix)} == roles
        assert labels["kubernetes.io/hostname"] == computer.name
        taints = {one["key"]: one["effect"] for one in node["spec"].get("taints", ()) if one["key"].startswith(prefix)}
        assert taints == ({f"{prefix}master": "NoSchedule"} if role == "master" else {})
        assert status["addresses"] == [
            {"type": "InternalIP", "address": computer.address},
            {"type": "Hostname", "address": computer.name},
        ]
        assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == PORT
        assert "stand-in" in status["nodeInfo"]["osImage"] and status["nodeInfo"]["kubeletVersion"].startswith("v1.")
        assert {"cpu", "memory", "pods"} <= set(status["allocatable"])


def test_it_keeps_its_node_ready_and_renews_its_lease(computer: Computer) -> None:
    computer.ignite()
    with computer.start():
        computer.join()
        node = computer.node()
        assert node and lease(computer)["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        before = lease(computer)["spec"]["renewTime"]
        conditions = [one | {"status": "Unknown", "reason": "Test"} for one in node["status"]["conditions"]]
        others = {"example.com/device": "1"}
        computer.admin.patch(
            NODE, computer.name, "", {"status": {"conditions": conditions, "capacity": others}}, subresource="status"
        )
        until(computer.ready, "its Node to be Ready again")
        present = computer.node()
        assert present and present["status"]["capacity"]["example.com/device"] == "1", "others' entries stay"
        until(lambda: lease(computer)["spec"]["renewTime"] > before, "its Lease to be renewed", seconds=30)


def test_a_restart_keeps_the_identity_and_files_nothing(computer: Computer) -> None:
    computer.ignite()
    with computer.start() as process:
        computer.join()
        assert process.stop() == 0
    kept, filed = (computer.kept("client"), computer.kept("server")), len(computer.admin.list(CSR).items)
    pki = computer.root / OWN / "pki"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (*pki.iterdir(), pki.parent / "kubeconfig")} == {0o600}
    computer.ignite("not-a-token")
    with computer.start():
        until(lambda: bool(computer.served()), "its certificate")
        assert len(computer.admin.list(CSR).items) == filed
        renewed = lease(computer)["spec"]["renewTime"]
        until(lambda: lease(computer)["spec"]["renewTime"] > renewed, "its Lease to be renewed", seconds=30)
    assert (computer.kept("client"), computer.kept("server")) == kept


@pytest.mark.parametrize("identity", ["another", "unknown"])
def test_another_bootstrap_identity_gets_nothing(computer: Computer, identity: str) -> None:
    admin = computer.admin
    computer.ignite(bearer(admin, "default", "stranger") if identity == "another" else "not-a-token")
    with computer.start() as process:
        if identity == "another":
            until(lambda: bool(computer.requests("kube-apiserver-client-kubelet")), "its request")
            outcome = computer.approve()
            assert [one["reason_code"] for one in outcome.values["ignored"]] == ["BAD_REQUESTOR"]
            assert outcome.values["approved"] == []
        else:
            until(lambda: "Unauthorized" in process.output(), "the refusal to be told", seen=process.output)
            assert admin.list(CSR).items == []
        assert process.running.poll() is None, "it goes on trying"
        assert computer.node() is None and computer.served() == b""


def test_it_waits_for_an_api_that_is_away_and_does_not_repeat_itself(
    computer: Computer, program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    balancer = ("forward", "--address=127.0.0.1", f"26443={computer.cluster.endpoint}")
    computer.ignite(endpoint="127.0.0.1:26443")
    with computer.start() as process:
        until(lambda: "connection refused" in process.output(), "that the API is away", seen=process.output)
        with Process.start(tmp_path / "balancer", program, *balancer):
            computer.join()
        until(lambda: "the status is not reported" in process.output(), "that it is away again", seen=process.output)
        assert "connection refused" in process.output().partition("the status is not reported")[2]
        told = len(process.output().splitlines())
        with pytest.raises(AssertionError, match="more lines"):
            until(lambda: len(process.output().splitlines()) > told + 6, "more lines", seconds=6)
        with Process.start(tmp_path / "balancer", program, *balancer):
            until(lambda: "the status is reported again" in process.output(), "its return", seen=process.output)
        assert process.running.poll() is None


def aged(computer: Computer, kind: str) -> bytes:
    """Key and certificate of the same names and authority, of whose life almost all is over."""
    present = x509.load_pem_x509_certificate(computer.kept(kind))
    disk = computer.cluster.disk
    authority = x509.load_pem_x509_certificate(disk.tls("kubelet-signer.crt").read_bytes())
    signer = serialization.load_pem_private_key(disk.tls("kubelet-signer.key").read_bytes(), None)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(present.subject)
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
    )
    for extension in present.extensions:
        if extension.oid in (x509.OID_SUBJECT_ALTERNATIVE_NAME, x509.OID_EXTENDED_KEY_USAGE):
            builder = builder.add_extension(extension.value, extension.critical)
    assert isinstance(signer, rsa.RSAPrivateKey)
    signed = builder.sign(signer, hashes.SHA256())
    kinds = serialization
    text = key.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.TraditionalOpenSSL, kinds.NoEncryption())
    return signed.public_bytes(kinds.Encoding.PEM) + text


def test_both_certificates_are_renewed_before_they_end(computer: Computer) -> None:
    computer.ignite()
    with computer.start():
        computer.join()
    old = {kind: aged(computer, kind) for kind in ("client", "server")}
    for kind, content in old.items():
        (computer.root / OWN / "pki" / f"kubelet-{kind}-current.pem").write_bytes(content)
    with computer.start():
        # kube-controller-manager approves the client's, as OpenShift's bindings let it.
        until(lambda: computer.kept("client") != old["client"], "the new client certificate")
        until(lambda: bool(computer.requests("kubelet-serving")), "the request for a new serving certificate")
        until(lambda: bool(computer.served()), "the old serving certificate")
        # Of a machine that the inventory does not have only a renewal is approved.
        others = computer.approve(expected=[{"name": "another", "ip_addresses": ["10.33.3.9"]}])
        approved = [(one["node"], one["renewal"]) for one in others.values["approved"]]
        assert approved == [(computer.name, True)], others.values["ignored"]
        until(lambda: computer.kept("server") != old["server"], "the new serving certificate")
        new = x509.load_pem_x509_certificate(computer.kept("server")).public_bytes(serialization.Encoding.DER)
        until(lambda: computer.served() == new, "the new certificate to be served")
        until(computer.ready, "its Node to be Ready")
