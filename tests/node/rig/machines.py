# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines on one bridge. Rigs add the programs that run on them."""

from __future__ import annotations

import collections.abc as c
import os
import pathlib
import shutil
import tempfile

from ansible_collections.hwaccel.gpu.tests.node.rig import machine_image, network
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine, release_storage, remove_control_groups

#: Commands that a rig requires besides Python.
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


def unmet_precondition() -> str:
    """Why no rig can run on this machine, "" if it can."""
    if os.geteuid() != 0:
        return "the rig of real machines requires root: it creates namespaces and runs containers"
    if not os.environ.get("HWACCEL_ISOLATED"):
        return (
            "the rig of real machines runs only in its own namespaces: start it with make test-node or make test-boot"
        )
    missing = [
        command for command in COMMANDS if not shutil.which(command, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    ]
    return f"the rig of real machines requires {', '.join(missing)}" if missing else ""


class Machines:
    """Machines that close() removes without leaving anything behind."""

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
        network.take_down()
        release_storage(self.podman.folder)
        remove_control_groups()
        shutil.rmtree(self.folder)

    def port(self) -> network.Port:
        """A new port of the bridge with a unique address."""
        self._ports += 1
        return network.Port(self._ports)

    def machine(self, name: str, shares: dict[str, str] | None = None) -> Machine:
        """Creates and boots a machine."""
        assert name not in self._machines, f"the rig has a machine {name} already"
        machine = Machine(name, self.podman, self.folder / name, self.port(), shares or {})
        self._machines[name] = machine
        machine.start()
        return machine

    def remove(self, machine: Machine) -> None:
        """Removes a machine that would disturb others, such as a server that responds to all machines on the bridge."""
        machine.stop()
        del self._machines[machine.name]
