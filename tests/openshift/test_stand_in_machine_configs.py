# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for the server of machine configs: section 5 of behaviours.yml. Its process is asked over loopback, with the keys of an installation."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import http.client
import json
import pathlib
import socket
import ssl
import typing as t
import urllib.parse

import pytest
from cryptography import x509

from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.pki import ensure_pki
from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import free_ports
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import until
from ansible_collections.hwaccel.gpu.tests.node.rig.authority import Authority
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.conftest import Made
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import unpack
from ansible_collections.hwaccel.gpu.tests.openshift.rig.machine_configs import (
    ROLE_FILE,
    MachineConfigServer,
    machine_config,
    of_disk,
)
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_configs import BOOTSTRAP, CLUSTER, Pool, Served

Obj = dict[str, t.Any]
HOST = "127.0.0.1"
IGNITION = "application/vnd.coreos.ignition+json"
#: As Ignition of 2.14 sends it.
ACCEPT = f"{IGNITION};version=3.3.0, */*;q=0.1"


@dataclasses.dataclass(frozen=True)
class Answered:
    status: int
    headers: c.Mapping[str, str]
    body: bytes

    @property
    def config(self) -> Obj:
        assert self.status == 200, self
        content: Obj = json.loads(self.body)
        return content

    def file(self, path: str) -> str:
        """Content of the last file of the config with this path, of those that are data URLs without base64."""
        (*_earlier, found) = [one for one in self.config["storage"]["files"] if one["path"] == path]
        return urllib.parse.unquote(found["contents"]["source"].removeprefix("data:,"))


@dataclasses.dataclass(frozen=True)
class Asked:
    """The server, and how tests ask it. trusted: PEM of the authority in pointers."""

    server: MachineConfigServer
    domain: str
    trusted: str

    def get(self, path: str, accept: str | None = ACCEPT, method: str = "GET", *, tls: bool = True) -> Answered:
        secure, insecure = self.server.ports
        with socket.create_connection((HOST, secure if tls else insecure), timeout=20) as plain:
            if tls:
                context = ssl.create_default_context(cadata=self.trusted)
                return self._ask(
                    context.wrap_socket(plain, server_hostname=f"api-int.{self.domain}"), path, accept, method
                )
            return self._ask(plain, path, accept, method)

    def _ask(self, connected: socket.socket, path: str, accept: str | None, method: str) -> Answered:
        connection = http.client.HTTPConnection(HOST)
        connection.sock = connected
        headers = {} if accept is None else {"Accept": accept}
        connection.request(method, path, headers=headers, body=b"body" if method == "POST" else None)
        found = connection.getresponse()
        answered = Answered(found.status, dict(found.getheaders()), found.read())
        connection.close()
        return answered

    def master(self, accept: str | None = ACCEPT) -> Answered:
        return self.get("/config/master", accept)


@pytest.fixture(scope="module")
def process(made: Made, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Asked]:
    ports = free_ports(2)
    server = MachineConfigServer(tmp_path_factory.mktemp("server") / "own", HOST, (ports[0], ports[1]))
    disk = unpack(made.folder / "bootstrap.ign", tmp_path_factory.mktemp("disk"))
    server.write(*of_disk(disk, "master", "worker"))
    pointer = support.ignition(made.folder / "master.ign")["ignition"]
    (authority,) = pointer["security"]["tls"]["certificateAuthorities"]
    domain = urllib.parse.urlsplit(pointer["config"]["merge"][0]["source"]).hostname.removeprefix("api-int.")
    with server.running():
        yield Asked(server, domain, support.decoded(authority["source"]).decode())


@pytest.fixture
def asked(process: Asked) -> c.Iterator[Asked]:
    """As it serves while bootstrapping, also after a test that has changed it."""
    before = process.server.served()
    yield process
    process.server.change(**{field.name: getattr(before, field.name) for field in dataclasses.fields(Served)})


def cluster(asked: Asked) -> None:
    """As on masters of a cluster."""
    asked.server.change(mode=CLUSTER, kubeconfigs={CLUSTER: "a token"})


@pytest.mark.parametrize("path", ["/config/master", "/config/worker", "/healthz", "/other"])
def test_methods(asked: Asked, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert asked.get(path, method=method).status == 405, method
    got, head = asked.get(path), asked.get(path, method="HEAD")
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")


def test_health(asked: Asked) -> None:
    answered = asked.get("/healthz", None)
    assert (answered.status, answered.headers["Content-Length"], answered.body) == (200, "0", b"")


@pytest.mark.parametrize("path", ["/", "/config", "/healthz/", "/configs/master"])
def test_other_paths(asked: Asked, path: str) -> None:
    assert (asked.get(path).status, asked.get(path).body) == (404, b"")


def test_pools_while_bootstrapping(asked: Asked) -> None:
    assert asked.get("/config/master").file(ROLE_FILE) == "master"
    assert asked.get("/config/a/b/master/").file(ROLE_FILE) == "master", "the last part counts"
    for pool in ("worker", "infra", ""):
        answered = asked.get(f"/config/{pool}")
        assert (answered.status, answered.body) == (500, b"")
    assert asked.server.requests()[-3].reason.endswith('refusing to serve bootstrap configuration to pool "worker"')


def test_an_arbiter_that_the_installation_has_not(asked: Asked) -> None:
    assert asked.get("/config/arbiter").status == 404


def test_pools_of_the_cluster(asked: Asked) -> None:
    cluster(asked)
    assert [asked.get(f"/config/{pool}").status for pool in ("master", "worker", "infra", "arbiter")] == [
        200,
        200,
        500,
        500,
    ]


def test_which_config_of_a_pool_is_served(asked: Asked) -> None:
    old, new = machine_config("worker"), machine_config("newer")
    names = [one["metadata"]["name"] for one in (old, new)]
    configs = dict(zip(names, (old, new), strict=True))
    for mode, updated, expected in ((CLUSTER, 0, "worker"), (CLUSTER, 1, "newer"), (BOOTSTRAP, 1, "worker")):
        pool = Pool(*names, updated)
        asked.server.change(mode=mode, kubeconfigs={mode: ""}, pools={"master": pool}, machine_configs=configs)
        assert asked.get("/config/master").file(ROLE_FILE) == expected, (mode, updated)


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        # TestAcceptHeaders of pkg/server/api_test.go.
        (f"{IGNITION}; version=2.4.0, {IGNITION}; version=1; q=0.5, */*; q=0.1", "2.2.0"),
        *((f"{IGNITION};version=3.{minor}.0, */*;q=0.1", f"3.{minor}.0") for minor in range(1, 6)),
        (f"{IGNITION}, */*;q=0.1", "2.2.0"),
        ("text/plain", "2.2.0"),
        ("an-invalid-accept-header", "2.2.0"),
        (f"{IGNITION};version=3.99.0, */*;q=0.1", "3.5.0"),
        # And others.
        (None, "2.2.0"),
        ("*/*", "2.2.0"),
        (f"{IGNITION};version=3.6.0, */*;q=0.1", "3.5.0"),
        (f"{IGNITION};version=3.4.0-experimental", "3.4.0"),
        (f"{IGNITION};version=3.1.0;q=0.2, {IGNITION};version=3.4.0;q=0.7", "3.4.0"),
        (f"{IGNITION};version=3.1.0;q=high, {IGNITION};version=3.4.0;q=0.7", "3.1.0"),
    ],
)
def test_specification_by_accept_header(asked: Asked, accept: str | None, version: str) -> None:
    assert asked.master(accept).config["ignition"]["version"] == version


@pytest.mark.parametrize("version", ["4.0.0", "2.1.0", "1.0.0"])
def test_a_specification_that_is_not_supported(asked: Asked, version: str) -> None:
    answered = asked.master(f"{IGNITION};version={version}, */*;q=0.1")
    assert (answered.status, answered.headers["Content-Length"], answered.body) == (400, "0", b"")


def change(asked: Asked, **sections: t.Any) -> None:
    """More sections of the config of masters."""
    found = machine_config("master")
    for name, content in sections.items():
        found["spec"]["config"][name] = found["spec"]["config"].get(name, {}) | content
    asked.server.change(machine_configs={found["metadata"]["name"]: found})


@pytest.mark.parametrize(
    ("sections", "inexpressible"),
    [
        ({}, {"3.0.0"}),
        ({"storage": {"luks": [{"name": "root", "device": "/dev/sda4"}]}}, {"2.2.0", "3.0.0", "3.1.0"}),
        ({"ignition": {"version": "3.2.0", "proxy": {"httpProxy": "http://p"}}}, {"2.2.0", "3.0.0"}),
        ({"passwd": {"users": [{"name": "core", "shouldExist": False}]}}, {"2.2.0", "3.0.0"}),
        (
            {"storage": {"files": [{"path": "/a", "contents": {"source": "http://s", "httpHeaders": [{}]}}]}},
            {"2.2.0", "3.0.0"},
        ),
    ],
)
def test_what_a_specification_cannot_express(asked: Asked, sections: Obj, inexpressible: set[str]) -> None:
    change(asked, **sections)
    versions = ("2.2.0", "3.0.0", "3.1.0", "3.2.0", "3.5.0")
    found = {one: asked.master(f"{IGNITION};version={one}").status for one in versions}
    assert found == {one: 500 if one in inexpressible else 200 for one in versions}


def test_files_and_units_in_two(asked: Asked) -> None:
    directory = {"path": "/etc/b", "mode": 0o755}
    appended = {"path": "/etc/a", "append": [{"source": "data:,more"}]}
    change(
        asked,
        storage={
            "files": [appended, {"path": "/etc/c", "contents": {"source": "data:,c"}}],
            "directories": [directory],
        },
    )
    two, three = asked.master(None).config, asked.master().config
    assert two["systemd"] == three["systemd"]
    assert two["storage"]["directories"] == [{"filesystem": "root", **directory}]
    more, replaced, *added = two["storage"]["files"]
    assert more == {
        "filesystem": "root",
        "overwrite": False,
        "path": "/etc/a",
        "append": True,
        "contents": {"source": "data:,more"},
    }
    assert (replaced["overwrite"], replaced["filesystem"]) == (False, "root")
    assert [(one["path"], one["overwrite"]) for one in added] == [
        (one["path"], True) for one in three["storage"]["files"][2:]
    ]


def test_kernel_arguments_move_into_the_machine_config(asked: Asked) -> None:
    change(asked, kernelArguments={"shouldExist": ["nosmt"]})
    for version, moved in (("3.2.0", True), ("3.3.0", False)):
        answered = asked.master(f"{IGNITION};version={version}")
        encapsulated = json.loads(answered.file("/etc/ignition-machine-config-encapsulated.json"))
        assert ("kernelArguments" in answered.config, encapsulated["spec"].get("kernelArguments")) == (
            (False, ["nosmt"]) if moved else (True, None)
        )
    change(asked, kernelArguments={"shouldNotExist": ["quiet"]})
    assert [asked.master(f"{IGNITION};version={one}").status for one in ("3.2.0", "3.3.0")] == [500, 200]


def test_the_bootstrap_identity_is_added(asked: Asked, made: Made) -> None:
    contents = support.contents(support.ignition(made.folder / "bootstrap.ign"))
    answered = asked.master()
    assert answered.file("/etc/kubernetes/kubeconfig").encode() == contents["/opt/openshift/auth/kubeconfig-kubelet"]
    added = answered.config["storage"]["files"][1:]
    assert [(one["mode"], one["overwrite"]) for one in added] == [(0o644, True)] * 5
    cluster(asked)
    assert asked.master().file("/etc/kubernetes/kubeconfig") == "a token"


def test_the_authority_of_the_api_servers_clients_is_added(asked: Asked) -> None:
    path = "/etc/kubernetes/kubelet-ca.crt"
    expected = asked.server.served().kubelet_ca
    assert asked.master().file(path) == expected
    assert x509.load_pem_x509_certificates(expected.encode())
    change(asked, storage={"files": [{"path": path, "mode": 0o600, "contents": {"source": "data:,old"}}]})
    (found,) = [one for one in asked.master().config["storage"]["files"] if one["path"] == path]
    assert (found["mode"], asked.master().file(path)) == (0o600, expected), "it takes the place of an old one"


def test_annotations_of_the_node_are_added(asked: Asked) -> None:
    name = machine_config("master")["metadata"]["name"]
    prefix = "machineconfiguration.openshift.io"
    assert json.loads(asked.master().file("/etc/machine-config-daemon/node-annotations.json")) == {
        f"{prefix}/currentConfig": name,
        f"{prefix}/desiredConfig": name,
        f"{prefix}/firstPivotConfig": name,
        f"{prefix}/state": "Done",
    }


def test_the_machine_config_is_added(asked: Asked) -> None:
    assert json.loads(asked.master().file("/etc/mcs-machine-config-content.json")) == machine_config("master")


def test_the_machine_config_without_its_ignition_config_is_the_last_file(asked: Asked) -> None:
    for mode, version in ((BOOTSTRAP, "3.5.0"), (CLUSTER, "3.3.0")):
        asked.server.change(mode=mode, kubeconfigs={mode: ""})
        answered = asked.master()
        path = answered.config["storage"]["files"][-1]["path"]
        assert path == "/etc/ignition-machine-config-encapsulated.json"
        expected = machine_config("master")
        expected["spec"]["config"] = {"ignition": {"version": version}}
        assert json.loads(answered.file(path)) == expected


def test_contents_are_escaped(asked: Asked) -> None:
    # TestStringEncode of pkg/server/server_test.go.
    asked.server.change(kubeconfigs={BOOTSTRAP: "Hello, world!"})
    sources = [one["contents"]["source"] for one in asked.master().config["storage"]["files"]]
    assert "data:,Hello%2C%20world!" in sources


def test_headers(asked: Asked) -> None:
    answered = asked.master()
    assert (answered.headers["Content-Length"], answered.headers["Content-Type"]) == (
        str(len(answered.body)),
        "application/json",
    )
    refused = asked.get("/config/worker")
    assert (refused.headers["Content-Length"], refused.headers.get("Content-Type")) == ("0", None)


def test_tls(asked: Asked) -> None:
    context = ssl.create_default_context(cadata=asked.trusted)
    context.set_alpn_protocols(["h2", "http/1.1"])
    secure, _insecure = asked.server.ports
    with (
        socket.create_connection((HOST, secure), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname=f"api-int.{asked.domain}") as secured,
    ):
        der = secured.getpeercert(binary_form=True)
        assert der and secured.selected_alpn_protocol() is None, "no HTTP/2"
        names = [one.value for one in x509.load_der_x509_certificate(der).subject]
        assert names == ["system:machine-config-server"]


def test_the_other_port_is_the_same_without_tls(asked: Asked) -> None:
    for path in ("/config/master", "/config/worker", "/healthz"):
        secure, insecure = asked.get(path), asked.get(path, tls=False)
        assert insecure == secure, path
    assert [one.tls for one in asked.server.requests()[-4:]] == [True, False] * 2


def test_a_new_certificate_is_served_without_a_restart(asked: Asked, tmp_path: pathlib.Path) -> None:
    before = [(asked.server.folder / name).read_bytes() for name in ("tls.crt", "tls.key")]
    ensure_pki(tmp_path / "pki")
    authority = Authority(tmp_path / "pki")
    identity = authority.issue("system:machine-config-server", names=(f"api-int.{asked.domain}",))
    asked.server.certify(identity.certificate.encode(), identity.key.encode())
    other = dataclasses.replace(asked, trusted=authority.certificate)
    try:
        until(lambda: succeeds(other), "the new certificate", seconds=10)
        assert not succeeds(asked)
    finally:
        asked.server.certify(before[0], before[1])
        until(lambda: succeeds(asked), "the first certificate", seconds=10)


def succeeds(asked: Asked) -> bool:
    try:
        return asked.get("/healthz").status == 200
    except ssl.SSLCertVerificationError:
        return False


def test_requests_of_configs_are_recorded(asked: Asked) -> None:
    asked.get("/healthz")
    asked.get("/config/worker", None)
    asked.get("/config/master", method="HEAD")
    worker, master = asked.server.requests()[-2:]
    assert (worker.path, worker.status, worker.accept, worker.method) == ("/config/worker", 500, "", "GET")
    assert (master.path, master.status, master.accept, master.method) == ("/config/master", 200, ACCEPT, "HEAD")
    assert (master.address, master.reason) == (HOST, "") and worker.time <= master.time


def test_its_folder_is_for_its_owner_only(asked: Asked) -> None:
    modes = {path.stat().st_mode & 0o777 for path in asked.server.folder.iterdir()}
    assert (asked.server.folder.stat().st_mode & 0o777, modes) == (0o700, {0o600})
