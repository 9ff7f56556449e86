# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters behind load balancers of the rig: members that respond, clients with continuous requests, and an API server with the progress of bootstrap."""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import datetime
import json
import pathlib
import subprocess
import sys
import threading
import typing as t

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ansible_collections.hwaccel.gpu.tests.boot.rig.api import Api
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY

_PROGRAMS = pathlib.Path(__file__).parent / "programs"
#: Found before that of systemd, which is in /usr/bin.
_SYSTEMCTL = "/usr/local/bin/systemctl"
MEMBERS = ("bootstrap-0", "master-0", "master-1", "master-2", "worker-0", "worker-1")
#: worker-1 is outside of this network.
MACHINE_NETWORK = "10.99.0.0/28"
#: Ports of OpenShift's members. The load uses plain HTTP on another port, because TLS handshakes in Python would dominate it.
PORTS = ("6443=tls", "22623=tls", "443=tls", "80", "1936", "8080")
LOAD_PORT = 8080
#: Service for the load: like the API, with bootstrap among its members.
LOAD = {
    "name": "load",
    "cluster": "ocp",
    "port": LOAD_PORT,
    "roles": ["master", "bootstrap"],
    "check": {"type": "http", "path": "/readyz", "interval": "500ms"},
}


class Bootstrapping(Api):
    """Serves the progress of bootstrap. status: with "", the cluster does not report it."""

    def __init__(self) -> None:
        self.status = "progressing"
        super().__init__(GATEWAY, self._answer)

    def _answer(self, path: str) -> tuple[int, dict[str, t.Any]]:
        if path == "/api/v1/namespaces/kube-system/configmaps/bootstrap" and self.status:
            return 200, {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": "bootstrap"},
                "data": {"status": self.status},
            }
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


def certificate(path: pathlib.Path) -> pathlib.Path:
    """Writes key and certificate of all members to one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "member")]), datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    )
    signed = (
        builder.not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(text + signed.public_bytes(serialization.Encoding.PEM))
    return path


def serve(host: Host, own: pathlib.Path) -> subprocess.Popen[str]:
    """Starts a member, and waits until it listens. own: its certificate."""
    return host.serve(_PROGRAMS / "member.py", host.name, str(own), *PORTS)


@dataclasses.dataclass
class Balanced:
    """A cluster with bootstrap, three masters and two workers, behind a load balancer. variables: of the load balancer."""

    rig: BootRig
    machine: Machine
    hosts: dict[str, Host]
    api: Bootstrapping
    certificate: pathlib.Path
    variables: dict[str, t.Any]

    def serve(self, name: str) -> subprocess.Popen[str]:
        return serve(self.hosts[name], self.certificate)

    def groups(self, **variables: t.Any) -> dict[str, dict[str, dict[str, t.Any]]]:
        members = {
            group: {name: {"ansible_host": host.address} for name, host in self.hosts.items() if name.startswith(start)}
            for group, start in (("bootstrap", "bootstrap"), ("control_plane", "master"), ("workers", "worker"))
        }
        return {"load_balancers": {self.machine.name: {**self.variables, **variables}}, **members}

    @property
    def clusters(self) -> dict[str, dict[str, t.Any]]:
        variables = {
            "hwaccel_distribution": "openshift",
            "hwaccel_machine_network": MACHINE_NETWORK,
            "hwaccel_connection": self.api.connection,
        }
        return {"ocp": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}}

    def play(self, *arguments: str, **variables: t.Any) -> Run:
        return self.rig.play("load_balancer", self.groups(**variables), *arguments, clusters=self.clusters)

    def killed_before(self, action: str, **variables: t.Any) -> None:
        """A run that is killed when it has systemd reload or restart HAProxy, which does not happen. action: "reload" or "restart"."""
        held = f'case "$*" in "{action} haproxy"*) echo $$ >/run/held; exec sleep infinity ;; esac'
        self.machine.write(_SYSTEMCTL, f'#!/bin/sh\n{held}\nexec /usr/bin/systemctl "$@"\n', "0755")
        try:
            assert self.rig.killed(
                "load_balancer",
                self.groups(**variables),
                lambda: self.machine.sh("cat /run/held 2>/dev/null || :").strip() != "",
                self.clusters,
            ), f"the run has ended, and systemd was never to {action} HAProxy"
        finally:
            self.machine.sh(f"rm {_SYSTEMCTL}; kill $(cat /run/held); rm /run/held", check=False)

    def done(self, *arguments: str, **variables: t.Any) -> Run:
        run = self.play(*arguments, **variables)
        assert run.rc == 0, run.stdout
        return run

    def refused(self, *arguments: str, **variables: t.Any) -> str:
        """The reason of a run that has to fail."""
        run = self.play(*arguments, **variables)
        assert run.rc == 2, run.stdout
        return run.failures[-1]

    def servers(self, backend: str) -> dict[str, str]:
        """States of members in the running HAProxy."""
        rows = (
            line.split(",") for line in self.runtime_api("show stat").splitlines() if line.startswith(f"{backend},")
        )
        return {row[1]: row[17].split()[0] for row in rows if row[1] not in ("FRONTEND", "BACKEND")}

    def runtime_api(self, command: str) -> str:
        """The output of a command of HAProxy's runtime API."""
        script = (
            "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect('/run/haproxy/admin.sock'); s.sendall(sys.argv[1].encode()+b'\\n');"
            "sys.stdout.write(b''.join(iter(lambda: s.recv(65536), b'')).decode())"
        )
        return self.machine.execute("python3", "-c", script, command).stdout

    def worker(self) -> str:
        """The worker process, which differs after a reload."""
        return next(line for line in self.runtime_api("show info").splitlines() if line.startswith("Pid:"))


@dataclasses.dataclass(frozen=True)
class Load:
    """answers: number of responses by member. lost: time and error of each lost request."""

    seconds: float
    answers: dict[str, int]
    lost: list[tuple[float, str]]

    @property
    def requests(self) -> int:
        return sum(self.answers.values()) + len(self.lost)


@contextlib.contextmanager
def load(client: Host, address: str, rate: int, port: int = LOAD_PORT) -> c.Iterator[c.Callable[[], Load]]:
    """Sends requests until the end of the context, or until the yielded function is called, which returns the results."""
    process = client.spawn(
        sys.executable, str(_PROGRAMS / "client.py"), address, str(port), str(rate), stdin=-1, stdout=-1
    )

    def end() -> Load:
        printed, _none = process.communicate(timeout=60)
        return Load(**json.loads(printed))

    try:
        yield end
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def response_times(client: Host, address: str, port: int) -> c.Iterator[list[float]]:
    """Sends requests continuously, and yields a growing list with the times of responses."""
    process = client.spawn(sys.executable, str(_PROGRAMS / "prober.py"), address, str(port), stdout=-1)
    lines = t.cast("t.IO[str]", process.stdout)
    times: list[float] = []
    reader = threading.Thread(target=lambda: times.extend(float(line) for line in lines))
    reader.start()
    try:
        yield times
    finally:
        process.kill()
        process.wait()
        reader.join()
