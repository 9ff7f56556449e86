# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for the server of machine configs in tests: its configs, its process, its mode, and its log as data.

server = MachineConfigServer(folder)
server.write(*of_disk(disk, "master", "worker"))
with server.running():
    ...
    server.change(mode=CLUSTER)
    assert [one.status for one in server.requests()] == [500, 200]
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_config_server import (
    CERTIFICATE,
    KEY,
    REQUESTS,
    SERVED,
    Request,
)
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_configs import BOOTSTRAP, Pool, Served

SECURE, INSECURE = 22623, 22624
#: File and unit that the config of a pool has. The file has the pool's name.
ROLE_FILE, ROLE_UNIT = "/etc/hwaccel-gpu/role", "hwaccel-gpu-role.service"
_TREE = pathlib.Path(__file__).resolve().parents[6]
_MODULE = "ansible_collections.hwaccel.gpu.tests.openshift.stand_in.machine_config_server"
Obj = dict[str, t.Any]


def machine_config(pool: str) -> Obj:
    """A rendered MachineConfig, whose config is of specification 3.2."""
    file = {"path": ROLE_FILE, "mode": 0o640, "contents": {"source": f"data:,{pool}"}}
    unit = {
        "name": ROLE_UNIT,
        "enabled": True,
        "contents": f"[Service]\nType=oneshot\nExecStart=/bin/echo {pool}\n[Install]\nWantedBy=multi-user.target\n",
    }
    config = {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}, "systemd": {"units": [unit]}}
    digest = hashlib.sha256(json.dumps(config).encode()).hexdigest()[:32]
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": f"rendered-{pool}-{digest}"},
        "spec": {"config": config, "fips": False, "kernelType": "default", "osImageURL": ""},
    }


def served(mode: str, kubeconfigs: c.Mapping[str, str], kubelet_ca: str, *pools: str) -> Served:
    """The configs of these pools."""
    configs = {pool: machine_config(pool) for pool in pools}
    names = {pool: config["metadata"]["name"] for pool, config in configs.items()}
    return Served(
        mode,
        {pool: Pool(name, name) for pool, name in names.items()},
        {names[pool]: config for pool, config in configs.items()},
        kubeconfigs,
        kubelet_ca,
    )


def of_disk(disk: Disk, *pools: str) -> tuple[Served, bytes, bytes]:
    """What the bootstrap machine serves to these pools, certificate and key, of the files that bootkube.sh uses for it."""
    kubeconfig = disk.path("auth/kubeconfig-kubelet").read_text(encoding="utf-8")
    authority = disk.tls("kube-apiserver-complete-client-ca-bundle.crt").read_text(encoding="ascii")
    certificate, key = (disk.tls(f"machine-config-server.{suffix}").read_bytes() for suffix in ("crt", "key"))
    return served(BOOTSTRAP, {BOOTSTRAP: kubeconfig}, authority, *pools), certificate, key


class MachineConfigServer:
    """folder: of this server only. It holds keys."""

    def __init__(
        self, folder: pathlib.Path, address: str = "0.0.0.0", ports: tuple[int, int] = (SECURE, INSECURE)
    ) -> None:
        self.folder, self.address, self.ports = folder, address, ports
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / REQUESTS).touch(0o600)

    def write(self, served: Served, certificate: bytes, key: bytes) -> None:
        """certificate, key: PEM, of machine-config-server."""
        self._put(SERVED, json.dumps(served.written()).encode())
        self.certify(certificate, key)

    def certify(self, certificate: bytes, key: bytes) -> None:
        """Another certificate, which a running server takes within a second."""
        self._put(KEY, key)
        self._put(CERTIFICATE, certificate)

    def served(self) -> Served:
        return Served.of(json.loads((self.folder / SERVED).read_bytes()))

    def change(self, **fields: t.Any) -> None:
        """Of what it serves, from the next request on."""
        self._put(SERVED, json.dumps(dataclasses.replace(self.served(), **fields).written()).encode())

    def requests(self) -> list[Request]:
        """Requests of configs, in their order."""
        return [
            Request(**json.loads(line)) for line in (self.folder / REQUESTS).read_text(encoding="utf-8").splitlines()
        ]

    def command(self) -> list[str]:
        """For a process that somebody else starts, as in a namespace. It prints a line when it listens."""
        ports = map(str, self.ports)
        return ["env", f"PYTHONPATH={_TREE}", sys.executable, "-m", _MODULE, str(self.folder), self.address, *ports]

    @contextlib.contextmanager
    def running(self) -> c.Iterator[None]:
        with subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
            try:
                await_listening(process)
                yield
            finally:
                process.kill()

    def _put(self, name: str, content: bytes) -> None:
        """A running server never reads half a file."""
        path = self.folder / f"{name}.new"
        path.touch(0o600)
        path.write_bytes(content)
        os.replace(path, self.folder / name)


def await_listening(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("a stand-in for machine-config-server listens"), line
