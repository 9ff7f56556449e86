# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of the scenarios in molecule/metal, for as long as a command runs.

tests/tools/isolated python -m ansible_collections.hwaccel.gpu.tests.boot.rig.scenarios COMMAND...

A load balancer, a boot server, a client, and three machines with BMCs. HWACCEL_MACHINES contains the path of an inventory with their
addresses. In the place of openshift-install is its stand-in (tests/openshift/stand_in). All are removed when the command ends, or when this
program is terminated.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import threading
import types
import typing as t

import yaml

from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import certificate, serve
from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import Bmc, opened
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import Client, mac
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in import launcher
from ansible_collections.hwaccel.gpu.tests.tools.jobs import CANNOT_RUN

CLUSTER, SERVERS, CLIENT = "ocp", ("lb", "boot"), "client"
MACHINES = ("bootstrap-0", "master-0", "worker-0")
#: Code of the architecture in requests of machines with a BIOS.
BIOS = 0


class Computer:
    """A machine with a BMC. It requests an address after it is powered on, and always responds as a member of its cluster."""

    def __init__(self, host: Host, bmc: Bmc, folder: pathlib.Path) -> None:
        self._host, self._bmc = host, bmc
        self._card = Client.of(host, folder)
        self._mac = mac(host.port.number)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        ip("link", "set", "eth0", "address", self._mac, pid=self._card.pid)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.5):
            if self._bmc.state()[0] == "On" and self._card.dhcp(self._mac, BIOS):
                return

    def variables(self) -> dict[str, t.Any]:
        return {"hwaccel_address": self._host.address, "hwaccel_mac": self._mac, **self._bmc.variables()}

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


@contextlib.contextmanager
def machines() -> c.Iterator[dict[str, str]]:
    """Environment variables of a command for these machines."""
    with contextlib.ExitStack() as stack:
        rig = stack.enter_context(contextlib.closing(BootRig(say)))
        for name in SERVERS:
            rig.machine(name)
        rig.machine(CLIENT).sh(
            "apt-get -qq update && apt-get -qq install --no-install-recommends bind9-dnsutils >/dev/null"
        )
        (rig.folder / "bmc").mkdir()
        bmcs = stack.enter_context(
            contextlib.contextmanager(opened)(rig.folder / "bmc", len(MACHINES), secrets.token_hex(8))
        )
        own = certificate(rig.folder / "member.pem")
        hosts = {name: rig.reached(name) for name in (*SERVERS, CLIENT)}
        hosts[CLUSTER] = {
            "hwaccel_load_balancer_address": hosts["lb"]["ansible_host"],
            "cluster_openshift_folder": str(rig.folder / "installations" / CLUSTER),
            "cluster_openshift_installer": str(launcher.write(rig.folder)),
        }
        for name, bmc in zip(MACHINES, bmcs, strict=True):
            host = rig.host(name)
            hosts[name] = stack.enter_context(contextlib.closing(Computer(host, bmc, rig.folder))).variables()
            serve(host, own)
        inventory = rig.folder / "inventory.yml"
        inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
        yield {**rig.login, "HWACCEL_MACHINES": str(inventory)}


def terminated(number: int, _frame: types.FrameType | None) -> None:
    # Further signals are ignored, so that the cleanup is completed.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(command: list[str]) -> int:
    if reason := unmet_precondition():
        say(reason)
        return CANNOT_RUN
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, terminated)
    with machines() as variables, subprocess.Popen(command, env={**os.environ, **variables}) as process:
        try:
            return process.wait()
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
