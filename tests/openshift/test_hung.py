# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installations that hang at their API or after it: module openshift_wait says the cause in the first three lines of its message.

Real are the control plane, requests for certificates, TLS, and the words of Python, OpenSSL and Go about it. The install tool, kubelets and operators are
stand-ins; what an operator says of a registry was written down, since there is no registry here. Where an API server's certificate cannot be used, a server
shows only this certificate, because nobody gets further. Runtime: one control plane, and some seconds for each installation.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import json
import pathlib
import re
import socketserver
import ssl
import struct
import subprocess
import tempfile
import threading
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.kubelets import serving_certificate
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.clock import Clock
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import NotFound
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import objects, progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr import run
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.reads import CSR, NODE
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_csr.settings import Settings
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import evidence
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import domain
from ansible_collections.hwaccel.gpu.tests.live.support import adhoc
from ansible_collections.hwaccel.gpu.tests.live.support.clusters import is_ready, until
from ansible_collections.hwaccel.gpu.tests.live.support.sandboxes import find_programs
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.conftest import ISOLATED, Made
from ansible_collections.hwaccel.gpu.tests.openshift.rig.control_plane import ControlPlane
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk, unpack
from ansible_collections.hwaccel.gpu.tests.openshift.rig.node_program import Process, write_bootstrap
from ansible_collections.hwaccel.gpu.tests.openshift.rig.operators import (
    OPERATORS,
    PULL_REFUSED,
    REMOVABLE,
    Expected,
    Faults,
    Operators,
)
from ansible_collections.hwaccel.gpu.tests.openshift.rig.world import furnish
from ansible_collections.hwaccel.gpu.tests.unit.api.kubelet import handshake, server

Obj = dict[str, t.Any]
DOMAIN = "dgxpod.example.com"
#: All of its addresses are this host's.
NETWORK = "10.33.4.0/24"
API = "10.33.4.9"
BOOTSTRAP, MASTER, WORKER = f"b.{DOMAIN}", f"m0.{DOMAIN}", f"w0.{DOMAIN}"
NODES = {MASTER: "10.33.4.11", WORKER: "10.33.4.21"}
ROLES = {BOOTSTRAP: "bootstrap", MASTER: "master", WORKER: "worker"}
CLIENT, SERVING = "kube-apiserver-client-kubelet", "kubelet-serving"
#: Seconds by which the clock of the host was ahead on which the files were made.
AHEAD, TWO_DAYS_AGO = "7200", "-172800"
#: Cluster-authentication-operator has a line for each of its controllers that fails (pkg/controllers/oauthendpoints, ingressstate).
OTHER_CONTROLLERS = (
    "IngressStateEndpointsDegraded: No subsets found for the endpoints of oauth-server",
    "OAuthServerServiceEndpointAccessibleControllerDegraded: "
    'Get "https://198.51.100.13:443/healthz": dial tcp 198.51.100.13:443: connect: connection refused',
    "OAuthServerServiceEndpointsEndpointAccessibleControllerDegraded: oauth service endpoints are not ready",
)
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@dataclasses.dataclass(frozen=True)
class Files:
    """A folder of the install tool, and what its bootstrap file writes."""

    folder: pathlib.Path
    disk: Disk

    @property
    def installation(self) -> Obj:
        """Option of openshift_wait, as the role has it."""
        chains = support.certificates(support.ignition(self.folder / "bootstrap.ign")).values()
        first = min(one.not_valid_after_utc for chain in chains for one in chain)
        return {
            "path": str(self.folder),
            "infrastructure": self.disk.infrastructure,
            "not_after": first.isoformat(),
        }

    def kubeconfig(self, server: str, name: str = "", api: str = "api") -> Obj:
        """That of the administrator or of kubelets, as the role makes it: by address, because names may be unknown here."""
        content: Obj = self.disk.kubeconfig(name)
        content["clusters"][0]["cluster"] |= {"server": f"https://{server}", "tls-server-name": f"{api}.{DOMAIN}"}
        return content

    @contextlib.contextmanager
    def certificate_shown(self) -> c.Iterator[str]:
        """Address and port of a server with the certificate that the API server has by these files."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        name = "kube-apiserver-lb-server"
        context.load_cert_chain(self.disk.tls(f"{name}.crt"), self.disk.tls(f"{name}.key"))
        with server(handshake(context)) as port:
            yield f"127.0.0.1:{port}"


@dataclasses.dataclass(frozen=True)
class Hung:
    """What a wait in vain has said and returned."""

    lines: list[str]
    result: Obj

    def is_at(self, phase: str, state: str) -> None:
        """Of an installation for which it was waited."""
        assert re.fullmatch(
            rf"{re.escape(DOMAIN)}: .* was waited for in vain for 0 min, since {TIME} \(phase {phase}, {state}: .*\)\.",
            self.lines[0],
        ), self.lines
        assert (self.result["phase"], self.result["state"]) == (phase, state)

    def is_told(self, state: str) -> None:
        """Of one for which it is not waited."""
        assert self.lines[0] == f"{DOMAIN} is {state}, and nothing is waited for.", self.lines
        assert self.result["state"] == state

    def because(self, *texts: str, next_step: str) -> None:
        """texts: in this order."""
        line = self.lines[1]
        assert line.startswith("Most likely: ") and " Next: " in line, self.lines
        assert re.search(".*".join(map(re.escape, texts)), line), line
        assert next_step in line.partition(" Next: ")[2], line
        assert self.lines[2].startswith("Last observation: "), self.lines
        assert self.result["cause"]["next_step"] == line.partition(" Next: ")[2]


@dataclasses.dataclass(frozen=True)
class Hanging:
    """An installation whose control plane runs. program: in place of kubelets."""

    files: Files
    plane: ControlPlane
    program: pathlib.Path
    place: pathlib.Path

    @contextlib.contextmanager
    def machine(
        self, name: str, address: str, role: str = "worker", kubeconfig: Obj | None = None
    ) -> c.Iterator[Process]:
        """A machine to which 22623 has given its config. What it has left in the cluster is removed at its end."""
        root = pathlib.Path(tempfile.mkdtemp(dir=self.place))
        write_bootstrap(root, kubeconfig or self.files.kubeconfig(self.plane.endpoint, "kubelet", "api-int"))
        options = {"root": root, "name": name, "address": address, "role": role, "node-status-interval": "1s"}
        arguments = [f"--{key}={value}" for key, value in options.items()]
        try:
            with Process.start(root / "log", self.program, "node", *arguments) as process:
                yield process
        finally:
            self.forget(name)

    def refused(self, name: str, files: Files, server: str) -> list[Obj]:
        """Option `machines` by the console of a machine that has these files and does not accept the certificate of this server."""
        with self.machine(name, NODES[name], "master", files.kubeconfig(server, "kubelet")) as machine:
            until(lambda: "x509: " in machine.output(), "its refusal", seen=machine.output)
            return console(machine, name)

    def forget(self, name: str) -> None:
        admin = self.plane.admin
        for one in admin.list(CSR).items:
            admin.delete(CSR, one["metadata"]["name"])
        with contextlib.suppress(NotFound):
            admin.delete(NODE, name)

    def requests(self, signer: str) -> list[Obj]:
        """Those that are not approved."""
        found = self.plane.admin.list(CSR).items
        pending = [one for one in found if not one["status"].get("conditions")]
        return [one for one in pending if one["spec"]["signerName"] == f"kubernetes.io/{signer}"]

    def approve(self) -> None:
        settings = Settings(expected_nodes=expected(), profile="openshift")
        run.approve(settings, self.plane.admin, Clock(), serving_certificate)

    def ready(self) -> set[str]:
        nodes = self.plane.admin.list(NODE).items
        return {one["metadata"]["name"] for one in nodes if is_ready(one)}

    def wait(self, *short: str, files: Files | None = None, server: str = "", **options: t.Any) -> tuple[int, Obj]:
        """Status and result of openshift_wait. short: phases that are waited for a second only. files: of another folder. server: instead of the API."""
        given = files or self.files
        path = self.place / "kubeconfig"
        path.touch(0o600)
        path.write_text(yaml.safe_dump(given.kubeconfig(server or self.plane.endpoint)), encoding="utf-8")
        limits = {
            f"{phase}_timeout": 1 if phase in short else 240 for phase in ("api", "bootstrap", "nodes", "install")
        }
        arguments = {
            "name": DOMAIN,
            "kubeconfig": str(path),
            "expected_nodes": expected(),
            "installation": given.installation,
            "machines": machines(),
            **limits,
        }
        status, result, _said = adhoc.task("openshift_wait", arguments | options, home=self.place)
        return status, result

    def hung(self, *short: str, files: Files | None = None, server: str = "", **options: t.Any) -> Hung:
        status, result = self.wait(*short, files=files, server=server, **options)
        assert status != 0 and "cause" in result, result
        return Hung(result["msg"].splitlines(), result)


def expected() -> list[Obj]:
    return [{"name": name, "ip_addresses": [address]} for name, address in NODES.items()]


def machines(stage: str = "ignition", **told: Obj) -> list[Obj]:
    """Option of openshift_wait. told: further fields by first label of a machine."""
    return [
        {"name": name, "role": role, "stage": stage, "quiet": 30.0, **told.get(name.partition(".")[0], {})}
        for name, role in ROLES.items()
    ]


def console(process: Process, name: str) -> list[Obj]:
    """Option `machines` by the console of a virtual machine on which this process runs, as its hypervisor keeps it."""
    given = [
        {"host": one, "label": one, "name": one, "role": role, "address": NODES.get(one, API), "mac": ""}
        for one, role in ROLES.items()
    ]
    logs = {one["address"]: {"earlier": False, "lines": []} for one in given}
    tails = {domain.console(name): process.output()}
    told = [
        {"host": kind, "kind": kind, "reads": json.dumps({"now": 0, **reads}), "requests": "", "why": ""}
        for kind, reads in (("boot server", {"logs": logs}), ("hypervisor", {"tails": tails}))
    ]
    return [
        {**row, "stage": "ignition"} for row in evidence.judged({"cluster": "ocp", "machines": given}, told)["machines"]
    ]


class Unknown(socketserver.BaseRequestHandler):
    """A DNS server that answers NXDOMAIN to everybody."""

    def handle(self) -> None:
        query, connection = self.request
        # The header has 12 bytes, and the question ends with four after its name.
        question = query[12 : query.index(0, 12) + 5]
        connection.sendto(query[:2] + b"\x81\x83" + struct.pack("!4H", 1, 0, 0, 0) + question, self.client_address)


@contextlib.contextmanager
def names_unknown(place: pathlib.Path) -> c.Iterator[None]:
    """That server is the only one of this host."""
    (place / "resolv.conf").write_text("nameserver 127.0.0.1\n", encoding="ascii")
    settings = pathlib.Path("/etc/resolv.conf").resolve()
    if not settings.exists():
        # Below /run, which is empty in these namespaces.
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.touch()
    with socketserver.UDPServer(("127.0.0.1", 53), Unknown) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        subprocess.run(["mount", "--bind", place / "resolv.conf", settings], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", settings], check=True)
            listening.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def hanging(made: Made, program: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Hanging]:
    if not ISOLATED:
        pytest.skip("machines need a network namespace of their own: run it by tests/tools/isolated")
    place = tmp_path_factory.mktemp("hung")
    ip("address", "add", NETWORK, "dev", "lo")
    # Its own copy: the control plane keeps the paths of its keys.
    files = Files(made.folder, unpack(made.folder / "bootstrap.ign", place / "disk"))
    try:
        with ControlPlane(find_programs(), files.disk, place / "state", API, 6443) as plane:
            furnish(plane.admin, files.disk)
            yield Hanging(files, plane, program, place)
    finally:
        ip("address", "delete", NETWORK, "dev", "lo")


def files(place: pathlib.Path, keys: str, **settings: str) -> Files:
    """settings: of the install tool's stand-in."""
    folder = support.configure(place / "files")
    done = support.run(folder, *support.IGNITION, keys=keys, **settings)
    assert done.status == 0, done.err
    return Files(folder, unpack(folder / "bootstrap.ign", place / "disk"))


@pytest.fixture(scope="module")
def early(keys: str, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Of a host whose clock is ahead."""
    return files(tmp_path_factory.mktemp("early"), keys, clock=AHEAD)


@pytest.fixture(scope="module")
def old(keys: str, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files(tmp_path_factory.mktemp("old"), keys, clock=TWO_DAYS_AGO)


# Certificates.


def test_a_clock_is_behind_on_this_host(hanging: Hanging, early: Files) -> None:
    with early.certificate_shown() as shown:
        hung = hanging.hung("api", files=early, server=shown)
    hung.is_at("api", "booting")
    hung.because(
        f"a clock is behind, so that certificates are not valid yet (https://{shown}): ",
        "certificate is not yet valid",
        next_step="compare the clock of this host with a time server",
    )


def test_a_clock_is_behind_on_a_machine(hanging: Hanging, early: Files) -> None:
    with early.certificate_shown() as shown:
        told = hanging.refused(MASTER, early, shown)
    hung = hanging.hung("api", files=early, server=shown, machines=told)
    hung.is_at("api", "booting")
    hung.because(
        f"a clock is behind, so that certificates are not valid yet ({MASTER}): ",
        "x509: certificate has expired or is not yet valid: current time ",
        " is before ",
        next_step="set the clock of this machine and its hardware clock to UTC",
    )


def test_expired_files(hanging: Hanging, old: Files) -> None:
    with old.certificate_shown() as shown:
        # Machines that have only loaded their kernels cannot be installed.
        hung = hanging.hung("api", files=old, server=shown, machines=machines("kernel"))
        written = hanging.hung("api", files=old, server=shown)
        told = hanging.refused(MASTER, old, shown)
    hung.is_at("api", "booting")
    expired = "the files of the installation have expired"
    hung.because(f"{expired} (https://{shown}): ", "certificate has expired", next_step="set regenerate: true")
    # Of machines that have ignition files nobody knows what is on them.
    written.is_told("unreachable")
    written.because("have expired at ", next_step="name them in regenerate_named")
    told = [one | {"stage": "kernel"} for one in told]
    hung = hanging.hung("api", files=old, server=shown, machines=told)
    hung.is_at("api", "booting")
    hung.because(f"{expired} ({MASTER}): ", " is after ", next_step="set regenerate: true")


def test_a_machine_with_expired_files_of_an_earlier_installation(hanging: Hanging, old: Files) -> None:
    with old.certificate_shown() as shown:
        told = hanging.refused(MASTER, old, shown)
    hung = hanging.hung("bootstrap", machines=told)
    hung.is_at("bootstrap", "bootstrapping")
    hung.because(
        f"a certificate has expired, and it is none of the files of the installation ({MASTER}): ",
        " is after ",
        next_step="have it installed again",
    )


def test_a_folder_of_another_installation(hanging: Hanging, keys: str, tmp_path: pathlib.Path) -> None:
    hung = hanging.hung(files=files(tmp_path, keys))
    hung.is_told("foreign")
    hung.because(
        f"what answers is another cluster (https://{hanging.plane.endpoint}): ",
        "has a certificate of another authority: the server's certificate is not accepted: ",
        next_step="correct the records of api and api-int in DNS and the load balancer",
    )


def test_a_machine_with_files_of_another_installation(hanging: Hanging, keys: str, tmp_path: pathlib.Path) -> None:
    told = hanging.refused(MASTER, files(tmp_path, keys), hanging.plane.endpoint)
    hung = hanging.hung("bootstrap", machines=told)
    hung.is_at("bootstrap", "bootstrapping")
    hung.because(
        f"a certificate is of another authority than that of the files ({MASTER}): ",
        "x509: certificate signed by unknown authority",
        next_step="publish the files of this installation only",
    )


# Requests for certificates.


def test_a_machine_without_a_reverse_record(hanging: Hanging) -> None:
    with hanging.machine("localhost", NODES[MASTER], "master"):
        until(lambda: bool(hanging.requests(CLIENT)), "its request")
        hung = hanging.hung("bootstrap")
    hung.is_at("bootstrap", "bootstrapping")
    hung.because(
        f"a machine does not know its name ({MASTER}): a machine asks to join as localhost: its address has no reverse record",
        next_step="compare the reverse records (dig -x ADDRESS) with the inventory",
    )


def test_a_request_of_a_machine_that_the_inventory_does_not_have(hanging: Hanging) -> None:
    name = f"w9.{DOMAIN}"
    with hanging.machine(name, "10.33.4.29"):
        until(lambda: bool(hanging.requests(CLIENT)), "its request")
        hung = hanging.hung("bootstrap")
    hung.is_at("bootstrap", "bootstrapping")
    hung.because(
        f"the certificate request of {name} is not approved (NOT_IN_INVENTORY): ",
        next_step="if it is a machine of this cluster, correct the inventory",
    )


def test_a_request_for_an_address_that_the_inventory_does_not_have(hanging: Hanging) -> None:
    with hanging.machine(MASTER, "10.33.4.99", "master") as machine:
        until(lambda: bool(hanging.requests(CLIENT)), "its first request")
        hanging.approve()
        until(lambda: bool(hanging.requests(SERVING)), "its second request", seen=machine.output)
        hung = hanging.hung("bootstrap")
    hung.is_at("bootstrap", "bootstrapping")
    hung.because(
        f"the certificate request of {MASTER} is not approved (SAN_NOT_ALLOWED): ",
        "it requests 10.33.4.99; the inventory has 10.33.4.11",
        next_step="if the machine has this name or address, add it to dns_names or ip_addresses",
    )


# Machines are there.


@pytest.fixture(scope="module")
def operators(hanging: Hanging) -> c.Iterator[Operators]:
    """Both machines are Ready, and bootstrap does not end."""
    stuck = Faults(bootstrap_stuck=True)
    with (
        Operators(hanging.plane.kubeconfig, Expected((MASTER,), (WORKER,)), pace=0.3, faults=stuck) as started,
        hanging.machine(MASTER, NODES[MASTER], "master"),
        hanging.machine(WORKER, NODES[WORKER]),
    ):

        def joined() -> bool:
            hanging.approve()
            return hanging.ready() == {*NODES}

        until(joined, "both machines to join", seen=hanging.ready)
        yield started


def test_masters_are_up_and_the_api_is_not(hanging: Hanging, operators: Operators) -> None:
    status, result = hanging.wait(leg=1)
    assert (status, result["phase"], result["state"]) == (0, "bootstrap", "bootstrapping"), result
    hanging.plane.stop()
    try:
        hung = hanging.hung("bootstrap", waited=result["waited"])
        # A boot server remembers who has joined.
        anew = hanging.hung("api", machines=machines("nothing", m0={"joined": True}))
    finally:
        hanging.plane.start()
    hung.is_at("bootstrap", "bootstrapping")
    anew.is_at("api", "bootstrapping")
    for one in (hung, anew):
        one.because(
            f"masters are up, and the API is not (https://{hanging.plane.endpoint}): {MASTER} ",
            "onnection refused",
            next_step="read the bootstrap machine's log (journalctl --unit bootkube)",
        )


def broken(hanging: Hanging, operators: Operators, **faults: dict[str, str]) -> Hung:
    """Once these operators are the only ones that are not as they should be."""
    operators.faults = Faults(**faults)
    operators.wait(REMOVABLE)
    wanted = {name for told in faults.values() for name in told}
    kind = hanging.plane.admin.resource("config.openshift.io/v1", "ClusterOperator")

    def lagging() -> set[str]:
        found = [objects.operator(one) for one in hanging.plane.admin.list(kind).items]
        return {one.name for one in progress.lagging(found)}

    until(lambda: lagging() == wanted, "the operators", seen=lagging)
    hung = hanging.hung("install")
    hung.is_at("install", "installing")
    return hung


def test_an_operator_is_degraded(hanging: Hanging, operators: Operators) -> None:
    told = "One or more other status conditions indicate a degraded state: CanaryChecksSucceeding=False"
    hung = broken(hanging, operators, degraded={"ingress": told})
    hung.because(
        f"operator ingress is degraded (1 of {len(OPERATORS)} operators): ",
        told,
        next_step="oc describe clusteroperator ingress",
    )


def test_the_wildcard_record_is_missing(hanging: Hanging, operators: Operators, tmp_path: pathlib.Path) -> None:
    route = f"oauth-openshift.apps.{DOMAIN}"
    with names_unknown(tmp_path):
        kubeconfig = hanging.files.kubeconfig(f"{route}:443", "kubelet")
        with hanging.machine(f"w8.{DOMAIN}", "10.33.4.28", kubeconfig=kubeconfig) as machine:
            until(lambda: "no such host" in machine.output(), "the failed lookup", seen=machine.output)
            (told,) = set(re.findall(r"dial tcp: lookup [^\"]+: no such host", machine.output()))
    lines = (
        *OTHER_CONTROLLERS,
        f'OAuthServerRouteEndpointAccessibleControllerDegraded: Get "https://{route}/healthz": {told}',
    )
    told = "\n".join(lines)
    hung = broken(hanging, operators, degraded={"authentication": told})
    hung.because(
        "the record *.apps in DNS is wrong (operator authentication): ",
        "no such host",
        next_step="let *.apps in DNS lead to the load balancer of ports 443 and 80",
    )


def test_a_registry_refuses_the_pull_secret(hanging: Hanging, operators: Operators) -> None:
    hung = broken(hanging, operators, unavailable={"console": PULL_REFUSED})
    hung.because(
        "a registry refuses the pull secret (operator console): ",
        "unauthorized",
        next_step="afterwards in Secret openshift-config/pull-secret",
    )
