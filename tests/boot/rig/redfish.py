# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that the role machine_boot boots by Redfish, on emulated BMCs with TLS and passwords. Lines in logs simulate their boots."""

from __future__ import annotations

import collections.abc as c
import contextlib
import functools
import http.server
import os
import pathlib
import sys
import threading
import time
import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import HOST, PATIENCE, Bmc
from ansible_collections.hwaccel.gpu.tests.live.support.site import Clusters, Run, playbook

PASSWORD = "planted-4711-secret"
TIMES = {
    "machine_boot_bmc_timeout": 4,
    "machine_boot_bmc_retries": 1,
    "machine_boot_interval": 2,
    "machine_boot_timeout": 15,
}


class Logs:
    """Logs of a boot server. The lines of a machine are written after its BMC reports that it is powered on."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.dhcp, self.web, self.marks = folder / "dnsmasq.log", folder / "access.log", folder / "marks"
        for path in (self.dhcp, self.web):
            path.write_text("", encoding="ascii")
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def host(self, name: str = "boot") -> dict[str, dict[str, t.Any]]:
        return {
            name: {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
        }

    def variables(self) -> dict[str, t.Any]:
        return {
            "machine_boot_dhcp_log": str(self.dhcp),
            "machine_boot_web_log": str(self.web),
            "machine_boot_marks": str(self.marks),
        }

    def play(self, number: int, bmc: Bmc, stages: int, since: int = 0) -> None:
        """Starts to write lines of a boot, for a range of stages."""
        mac, address = f"52:54:00:77:00:{10 + number}", f"10.77.0.{10 + number}"
        lines: list[tuple[pathlib.Path, str]] = [
            (self.dhcp, f"Nov 23 03:41:10 dnsmasq-dhcp[8]: 77 DHCPACK(eth0) {address} {mac} machine{number}"),
            (self.dhcp, f"Nov 23 03:41:11 dnsmasq-tftp[8]: sent /srv/tftp/shimx64.efi to {address}"),
            (
                self.web,
                f'{address} - - [23/Nov/2026:03:41:12 +0000] "GET /images/rhcos-live-kernel.x86_64 HTTP/1.1" 200 99 "-" "GRUB"',
            ),
            (
                self.web,
                f'{address} - - [23/Nov/2026:03:41:13 +0000] "GET /ignition/worker.ign HTTP/1.1" 200 99 "-" "coreos-installer"',
            ),
        ]
        thread = threading.Thread(target=self._play, args=(bmc, lines[since:stages]))
        self._threads.append(thread)
        thread.start()

    def _play(self, bmc: Bmc, lines: list[tuple[pathlib.Path, str]]) -> None:
        while not self._ended.wait(0.3):
            # Reading the file with requested power states avoids a TLS handshake with the BMC.
            if bmc.asked() and bmc.state()[0] == "On":
                break
        else:
            return
        for path, line in lines:
            with open(path, "a", encoding="ascii") as log:
                log.write(f"{line}\n")
            self._ended.wait(0.3)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def machine(number: int, bmc: Bmc, **changed: t.Any) -> dict[str, t.Any]:
    own = {
        "hwaccel_mac": f"52:54:00:77:00:{10 + number}",
        "hwaccel_address": f"10.77.0.{10 + number}",
        "hwaccel_firmware": "uefi",
    }
    return {**own, **bmc.variables(), **TIMES, **changed}


def run(
    machines: dict[str, dict[str, t.Any]],
    *arguments: str,
    logs: Logs | None = None,
    clusters: Clusters | None = None,
    pipelined: bool = True,
) -> Run:
    """pipelined: modules run without temporary files, which saves a third of the processor time. This is not Ansible's default."""
    boot = {"boot_servers": logs.host()} if logs else {}
    workers = {name: {**variables, **(logs.variables() if logs else {})} for name, variables in machines.items()}
    return playbook(
        "machine_boot",
        clusters or {},
        *arguments,
        machines={"workers": workers, **boot},
        environment={"ANSIBLE_PIPELINING": str(pipelined)},
    )


def powered(bmc: Bmc) -> None:
    """Powers on the machine of a BMC."""
    bmc.request("POST", f"/redfish/v1/Systems/{bmc.system}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    deadline = time.monotonic() + PATIENCE
    while bmc.state()[0] != "On":
        assert time.monotonic() < deadline
        time.sleep(0.2)


@contextlib.contextmanager
def image(folder: pathlib.Path) -> c.Iterator[str]:
    """Serves an image for BMCs, and yields its address."""
    (folder / "agent.iso").write_bytes(b"image")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/agent.iso"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def watched() -> c.Iterator[list[str]]:
    """Yields a growing list with arguments of processes that contain the password."""
    ended, found = threading.Event(), []

    def watch() -> None:
        while not ended.wait(0.1):
            for process in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    if PASSWORD.encode() in (content := pathlib.Path(f"/proc/{process}/cmdline").read_bytes()):
                        found.append(content.replace(b"\0", b" ").decode()[:300])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
