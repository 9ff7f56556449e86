# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""K3s on machines as an administrator would set it up, without any role: binary, unit and configuration; or by its own script."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._api.client import Client, connect
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3s
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

DATA = "/var/lib/rancher/k3s"
CONFIG = "/etc/rancher/k3s/config.yaml"
IMAGES = f"{DATA}/agent/images"
_UNIT = """[Unit]
After=network-online.target
Wants=network-online.target
[Service]
Type=notify
ExecStart=/usr/local/bin/k3s {command}
KillMode=process
Delegate=yes
TimeoutStartSec=0
Restart=always
RestartSec=5s
[Install]
WantedBy=multi-user.target
"""
#: As install.sh of K3s writes it (create_systemd_service_file), which puts each argument on a line of its own.
_OF_SCRIPT = """[Unit]
Description=Lightweight Kubernetes
Documentation=https://k3s.io
Wants=network-online.target
After=network-online.target

[Install]
WantedBy=multi-user.target

[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/sysconfig/%N
EnvironmentFile=-/etc/systemd/system/{unit}.service.env
KillMode=process
Delegate=yes
User=root
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStartPre=-/sbin/modprobe br_netfilter
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/k3s \\
    {command} \\
{arguments}

"""


@dataclasses.dataclass(frozen=True)
class Installed:
    """K3s on one machine. command: server or agent."""

    machine: Machine
    command: str

    @property
    def unit(self) -> str:
        return "k3s" if self.command == "server" else "k3s-agent"

    def configure(self, config: dict[str, t.Any]) -> None:
        self.machine.write(CONFIG, yaml.safe_dump(config), "0600")

    def start(self, seconds: float = 240) -> None:
        """Returns once systemd says that it runs."""
        try:
            self.machine.sh(f"systemctl daemon-reload; systemctl start {self.unit}", seconds=seconds)
        except Exception as failure:
            raise AssertionError(f"{self.unit} does not start on {self.machine.name}:\n{self.log()}") from failure

    def stop(self) -> None:
        self.machine.sh(f"systemctl stop {self.unit}", seconds=120)

    def refused(self, seconds: float = 120) -> str:
        """Starts it, waits until it has ended by itself, and returns the error that has ended it. It does not run then."""
        cursor = self.machine.sh("journalctl --lines 0 --show-cursor").rpartition("cursor: ")[2].strip()

        def ended() -> list[str]:
            said = self.machine.sh(f"journalctl --no-pager --unit {self.unit} --after-cursor '{cursor}'", check=False)
            return re.findall(r'level=fatal msg="(.*)"', said)

        self.machine.sh(f"systemctl daemon-reload; systemctl start --no-block {self.unit}")
        with contextlib.ExitStack() as stopped:
            stopped.callback(self.stop)
            self.machine.wait(f"{self.unit} has ended", lambda: bool(ended()), seconds=seconds)
            return ended()[-1]

    def said(self) -> str:
        """All that K3s itself has logged, without the programs that it is made of."""
        return self.machine.sh(f"journalctl --no-pager --unit {self.unit} | grep level= || :")

    def log(self) -> str:
        return self.machine.sh(f"journalctl --no-pager --unit {self.unit} --lines 60", check=False)

    def token(self, name: str = "token") -> str:
        return self.machine.read(f"{DATA}/server/{name}").strip()

    def client(self) -> Client:
        """As an administrator, from outside of the machine."""
        kubeconfig = yaml.safe_load(self.machine.read("/etc/rancher/k3s/k3s.yaml"))
        kubeconfig["clusters"][0]["cluster"]["server"] = f"https://{self.machine.address}:6443"
        return connect({"kubeconfig": kubeconfig})


def install(machine: Machine, k3s: K3s, command: str, config: dict[str, t.Any]) -> Installed:
    """Installs it without starting it, with images because there is no registry."""
    installed = Installed(machine, command)
    machine.sh(f"install -D {k3s.inside} /usr/local/bin/k3s; mkdir -p {IMAGES}; cp {k3s.archive} {IMAGES}")
    machine.write(f"/etc/systemd/system/{installed.unit}.service", _UNIT.format(command=command))
    installed.configure(config)
    return installed


def install_by_script(machine: Machine, k3s: K3s, command: str, *arguments: str, **environment: str) -> Installed:
    """Installs it as its own script does, and starts it. environment: what its caller had."""
    installed = Installed(machine, command)
    unit = f"/etc/systemd/system/{installed.unit}.service"
    machine.sh(f"install -D {k3s.inside} /usr/local/bin/k3s; mkdir -p {IMAGES}; cp {k3s.archive} {IMAGES}")
    machine.sh("cd /usr/local/bin; for name in kubectl crictl ctr; do ln -sf k3s $name; done")
    uninstall = "k3s-uninstall.sh" if command == "server" else "k3s-agent-uninstall.sh"
    for name in ("k3s-killall.sh", uninstall):
        machine.write(f"/usr/local/bin/{name}", "#!/bin/sh\nexit 1\n", "0755")
    quoted = "".join(f"\t'{one}' \\\n" for one in arguments)
    machine.write(unit, _OF_SCRIPT.format(unit=installed.unit, command=command, arguments=quoted))
    machine.write(f"{unit}.env", "".join(f"{name}='{value}'\n" for name, value in environment.items()), "0600")
    machine.sh(f"systemctl enable --quiet {installed.unit}")
    installed.start()
    return installed
