# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines on one bridge, and what they are made of. Rigs add what runs on them."""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import shutil
import tempfile

from ansible_collections.hwaccel.gpu.tests.node.rig import machine_image, network
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine, let_go, remove_control_groups

#: What a rig calls besides Python.
COMMANDS = (
    "podman",
    "runc",
    "conmon",
    "mmdebstrap",
    "iptables",
    "ip",
    "nsenter",
    "unshare",
    "busybox",
    "ssh",
    "gpg",
    "gpg-agent",
    "curl",
)


def lacking() -> str:
    """Why this machine cannot have a rig, "" where it can."""
    if os.geteuid() != 0:
        return "the rig of real machines needs root: it makes namespaces and runs containers"
    if not os.environ.get("HWACCEL_ISOLATED"):
        return "the rig of real machines runs in namespaces of its own only: start it with make test-node or make test-boot"
    missing = [
        command for command in COMMANDS if not shutil.which(command, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    ]
    return f"the rig of real machines needs {', '.join(missing)}" if missing else ""


class Machines:
    """close() leaves nothing of them."""

    def __init__(self, say: c.Callable[[str], None]) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hwaccel-rig-"))
        self.podman = machine_image.Podman(self.folder / "podman", machine_image.ensure_machine_image(say))
        self.podman.prepare()
        network.set_up()
        self._machines: dict[str, Machine] = {}
        self._ports = 0

    def close(self) -> None:
        for machine in self._machines.values():
            machine.stop()
        let_go(self.podman.folder)
        remove_control_groups()
        shutil.rmtree(self.folder)

    def port(self) -> network.Port:
        """A place on the bridge, with an address that nobody else has."""
        self._ports += 1
        return network.Port(self._ports)

    def machine(self, name: str, shares: dict[str, str] | None = None) -> Machine:
        """A machine more, which has booted."""
        assert name not in self._machines, f"the rig has a machine {name} already"
        made = Machine(name, self.podman, self.folder / name, self.port(), shares or {})
        self._machines[name] = made
        made.start()
        return made

    def remove(self, machine: Machine) -> None:
        """One that would be in the way of others, such as a server that answers to all on the bridge."""
        machine.stop()
        del self._machines[machine.name]
