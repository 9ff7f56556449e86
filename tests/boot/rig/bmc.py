# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs on loopback: OpenStack's Redfish emulator (sushy-tools) with TLS and passwords, for systems that exist only in its state. No virtual machine is needed.

It does not support Once: it reports each boot device as Continuous, as some real BMCs do. Its power changes two to three seconds after a request.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import datetime
import ipaddress
import itertools
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time
import typing as t
import urllib.error
import urllib.request
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ansible_collections.hwaccel.gpu.tests.tools import environments

USERNAME = "operator"
HOST = "127.0.0.1"
#: Seconds until an emulator that does not respond counts as lost. It has a share of two cores beside everything else that runs.
PATIENCE = 240
#: Starts one emulator for each configuration in forks of one process, because the import takes as long as everything else. Each one records requested power
#: states and paths. The operating system of a system with a file "deaf" ignores shutdown requests. The driver changes power after a random time of up to eleven
#: seconds, during which the state is polled; here this time is three seconds.
_FORKS = """
import os, sys, types
import flask
from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver

given = fakedriver.FakeDriver.set_power_state

def set_power_state(self, identity, state):
    own = self._config["SUSHY_EMULATOR_STATE_DIR"]
    with open(own + "/asked", "a") as asked:
        asked.write(state + "\\n")
    if state != "GracefulShutdown" or not os.path.exists(own + "/deaf"):
        given(self, identity, state)

def keep_path():
    with open(main.app.config["SUSHY_EMULATOR_STATE_DIR"] + "/paths", "a") as paths:
        paths.write(flask.request.path + "\\n")

main.app.before_request(keep_path)
fakedriver.FakeDriver.set_power_state = set_power_state
fakedriver.random = types.SimpleNamespace(randint=lambda least, most: 3)
for configuration in sys.argv[1:]:
    if os.fork() == 0:
        sys.argv = ["sushy-emulator", "--config", configuration]
        main.main()
        os._exit(1)
while True:
    os.wait()
"""


def _answered(ask: c.Callable[[], t.Any]) -> bytes:
    """The response to a request. It is retried after status 500, with which the emulator refuses one of two simultaneous requests."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with ask() as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as refused:
            if refused.code != 500 or time.monotonic() > end:
                raise
            time.sleep(0.5)


@dataclasses.dataclass(frozen=True)
class Bmc:
    """One BMC with one system. folder: that of this BMC only."""

    port: int
    system: str
    password: str
    ca: str
    folder: pathlib.Path

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def variables(self) -> dict[str, t.Any]:
        """Variables of its machine's inventory host."""
        return {
            "hwaccel_bmc_address": self.address,
            "hwaccel_bmc_username": USERNAME,
            "hwaccel_bmc_password": self.password,
            "hwaccel_bmc_ca": self.ca,
        }

    def state(self) -> tuple[str, str]:
        """Power and boot device that the BMC reports."""
        system = self.request("GET", f"/redfish/v1/Systems/{self.system}")
        return system["PowerState"], system["Boot"]["BootSourceOverrideTarget"]

    def asked(self) -> list[str]:
        """Requested power states, in their order."""
        asked = self.folder / "asked"
        return asked.read_text(encoding="ascii").split() if asked.exists() else []

    def inquiries(self) -> int:
        """Number of requests for a session. The emulator has none, so such a request ends after the service root, with which all other requests start."""
        paths = self.folder / "paths"
        roots = [path == "/redfish/v1" for path in paths.read_text(encoding="ascii").replace("/\n", "\n").split()]
        return sum(one and other for one, other in itertools.pairwise(roots))

    def inserted(self) -> str:
        """Address of the inserted medium."""
        return str(self.request("GET", f"/redfish/v1/Systems/{self.system}/VirtualMedia/Cd")["Image"])

    def request(self, method: str, path: str, body: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        manager = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        manager.add_password(None, f"https://{self.address}/", USERNAME, self.password)
        opener = urllib.request.build_opener(
            urllib.request.HTTPBasicAuthHandler(manager),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.ca)),
        )
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(
            f"https://{self.address}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        content = _answered(lambda: opener.open(asked, timeout=PATIENCE))
        return json.loads(content) if content else {}

    def set(self, device: str) -> None:
        self.request(
            "PATCH",
            f"/redfish/v1/Systems/{self.system}",
            {"Boot": {"BootSourceOverrideTarget": device, "BootSourceOverrideEnabled": "Continuous"}},
        )


class Bmcs:
    """BMCs that run until they are closed. power: initial state of their systems."""

    def __init__(self, folder: pathlib.Path, count: int, password: str, power: str = "Off") -> None:
        environment = environments.ensure("bmc")
        authority = certificate(folder)
        hashed = _hashed(environment, password)
        self.all: list[Bmc] = []
        configurations = []
        for number, port in enumerate(free_ports(count)):
            own = folder / f"bmc{number}"
            own.mkdir()
            (own / "password").write_text(f"{USERNAME}:{hashed}\n", encoding="ascii")
            bmc = Bmc(port, str(uuid.uuid4()), password, str(authority), own)
            settings = {
                "LISTEN_IP": HOST,
                "LISTEN_PORT": bmc.port,
                "SSL_CERT": str(authority),
                "SSL_KEY": str(folder / "key.pem"),
                "AUTH_FILE": str(own / "password"),
                "FAKE_DRIVER": True,
                "STATE_DIR": str(own),
                "FAKE_SYSTEMS": [{"uuid": bmc.system, "name": f"machine{number}", "power_state": power, "nics": []}],
            }
            (own / "sushy.conf").write_text(
                "".join(f"SUSHY_EMULATOR_{key} = {value!r}\n" for key, value in settings.items()), encoding="utf-8"
            )
            configurations.append(str(own / "sushy.conf"))
            self.all.append(bmc)
        with open(folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [str(environment / "bin" / "python"), "-c", _FORKS, *configurations],
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
                # The emulator stores images in TMPDIR.
                env={**os.environ, "TMPDIR": str(folder)},
            )
        self._wait(folder / "log")

    def _wait(self, log: pathlib.Path) -> None:
        deadline = time.monotonic() + PATIENCE
        for bmc in self.all:
            while True:
                with contextlib.suppress(OSError), socket.create_connection((HOST, bmc.port), 1):
                    break
                assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
                time.sleep(0.1)

    def close(self) -> None:
        children = (
            pathlib.Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            .read_text(encoding="ascii")
            .split()
        )
        subprocess.run(["kill", "-9", str(self._process.pid), *children], check=True, timeout=10)
        self._process.wait()


class Proxy:
    """A proxy between Ansible and a BMC. delay: seconds by which each response is delayed. hangs: connections are accepted without any response.

    failures: number of connections that are reset before one is forwarded.
    """

    def __init__(self, bmc: Bmc, delay: float = 0, hangs: bool = False, failures: int = 0) -> None:
        self._bmc, self._delay, self._hangs, self._failures = bmc, delay, hangs, failures
        self.connections = 0
        self._listener = socket.create_server((HOST, 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"{HOST}:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _peer = self._listener.accept()
                self.connections += 1
                self._open.append(taken)
                if self._hangs:
                    continue
                if self.connections <= self._failures:
                    # With this option, the peer gets a reset.
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    taken.close()
                    continue
                behind = socket.create_connection((HOST, self._bmc.port))
                self._open.append(behind)
                for source, target, delay in ((taken, behind, 0.0), (behind, taken, self._delay)):
                    threading.Thread(target=self._pass, args=(source, target, delay), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, delay: float) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                time.sleep(delay)
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        # Without a shutdown, a thread that waits in accept would keep the listener open.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for one in (self._listener, *self._open):
            one.close()


def free_ports(count: int) -> list[int]:
    """They differ: each is taken until all are known."""
    with contextlib.ExitStack() as taken:
        listeners = [taken.enter_context(socket.create_server((HOST, 0))) for _number in range(count)]
        return [int(listener.getsockname()[1]) for listener in listeners]


def _hashed(environment: pathlib.Path, password: str) -> str:
    program = "import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt(4)).decode())"
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", program],
        input=password,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def certificate(folder: pathlib.Path) -> pathlib.Path:
    """Writes a self-signed certificate for all BMCs, with its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bmc")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "authority.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    return folder / "authority.pem"


def opened(folder: pathlib.Path, count: int, password: str, power: str = "Off") -> c.Iterator[list[Bmc]]:
    """BMCs for one test."""
    with contextlib.closing(Bmcs(folder, count, password, power)) as bmcs:
        yield bmcs.all
