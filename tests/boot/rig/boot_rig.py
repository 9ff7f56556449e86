# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig of machines that boot and of the services that they boot from: Debian machines with a package repository, and lightweight hosts, on one bridge."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import pathlib
import subprocess
import sys
import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.packages import REPOSITORY, ensure_packages
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run, killed, playbook
from ansible_collections.hwaccel.gpu.tests.node.rig.login import allow_ssh
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import PYTHON, Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import Machines
from ansible_collections.hwaccel.gpu.tests.node.rig.network import Port


@dataclasses.dataclass
class Host:
    """A host without its own operating system: a network namespace with an address, in which programs of the tests run."""

    name: str
    port: Port
    _started: list[subprocess.Popen[str]] = dataclasses.field(default_factory=list)

    @property
    def address(self) -> str:
        return self.port.address

    def _inside(self, argv: c.Sequence[str]) -> list[str]:
        return ["nsenter", f"--net={self.port.namespace}", *argv]

    def run(
        self, *argv: str, check: bool = True, seconds: float = 60, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._inside(argv), capture_output=True, text=True, timeout=seconds, check=check, input=stdin
        )

    def spawn(self, *argv: str, **options: t.Any) -> subprocess.Popen[str]:
        """Starts a program, which ends with the host at the latest."""
        process = subprocess.Popen(self._inside(argv), text=True, **options)
        self._started.append(process)
        return process

    def serve(self, program: pathlib.Path, *arguments: str) -> subprocess.Popen[str]:
        """Starts a program in Python, and waits until it listens."""
        process = self.spawn(sys.executable, str(program), *arguments, stdout=-1)
        assert process.stdout
        assert process.stdout.readline() == "serves\n"
        return process

    def stop_programs(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        self._started.clear()

    def stop(self) -> None:
        self.stop_programs()
        self.port.unplug()


class BootRig(Machines):
    """rig.machine("lb"): a machine to which Ansible can connect. rig.host("w1"): a namespace. rig.play(...): a playbook on machines."""

    def __init__(self, say: c.Callable[[str], None]) -> None:
        self._packages = ensure_packages(say)
        super().__init__(say)
        self._hosts: list[Host] = []
        #: Environment variables of Ansible for connections to machines.
        self.login: dict[str, str] = {}

    def close(self) -> None:
        for host in self._hosts:
            host.stop()
        super().close()

    def machine(self, name: str, shares: dict[str, str] | None = None) -> Machine:
        """Boots a machine, which installs packages from the rig's repository and has no name server."""
        machine = super().machine(name, {str(self._packages): REPOSITORY, **(shares or {})})
        machine.write("/etc/resolv.conf", "")
        self.login = allow_ssh(machine, self.folder)
        return machine

    def host(self, name: str) -> Host:
        host = Host(name, self.port())
        host.port.plug()
        self._hosts.append(host)
        return host

    def play(
        self,
        name: str,
        groups: dict[str, dict[str, dict[str, t.Any]]],
        *arguments: str,
        clusters: dict[str, dict[str, t.Any]] | None = None,
        environment: dict[str, str] | None = None,
        **options: t.Any,
    ) -> Run:
        """Runs a playbook of the collection. groups: hosts' variables by group and name; addresses of machines are added."""
        known = self.login | (environment or {})
        return playbook(name, clusters or {}, *arguments, machines=self._located(groups), environment=known, **options)

    def killed(
        self,
        name: str,
        groups: dict[str, dict[str, dict[str, t.Any]]],
        when: c.Callable[[], bool],
        clusters: dict[str, dict[str, t.Any]] | None = None,
        environment: dict[str, str] | None = None,
        **options: t.Any,
    ) -> bool:
        """As play, but all its processes are killed at once when `when` returns true. False if the run has ended before."""
        known = self.login | (environment or {})
        return killed(name, clusters or {}, when, machines=self._located(groups), environment=known, **options)

    def _located(self, groups: dict[str, dict[str, dict[str, t.Any]]]) -> dict[str, dict[str, dict[str, t.Any]]]:
        return {
            group: {host: {**self.reached(host), **variables} for host, variables in hosts.items()}
            for group, hosts in groups.items()
        }

    def reached(self, host: str) -> dict[str, t.Any]:
        """Connection variables of a machine, none if the host is no machine of the rig."""
        if host not in self._machines:
            return {}
        return {
            "ansible_host": self._machines[host].address,
            "ansible_user": "root",
            "ansible_python_interpreter": PYTHON,
        }
