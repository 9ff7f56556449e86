# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a machine has come is read from what a real dnsmasq and a real nginx log of a client that boots step by step."""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import typing as t

import ansible_collections.hwaccel.gpu as collection
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request, watch
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine

SCRIPT = pathlib.Path(next(iter(collection.__path__))) / "roles" / "machine_boot" / "files" / "logs.sh"
MAC, STRANGER = "52:54:00:77:00:21", "52:54:00:77:00:22"
#: On the server.
LOOK = "/var/tmp/logs.sh"
LOGS = ("dnsmasq", "/var/log/nginx/access.log")
DNSMASQ = """port=0
interface=eth0
bind-interfaces
log-dhcp
dhcp-range=10.99.0.0,static,255.255.255.0,1h
dhcp-host={mac},{address},worker-1
dhcp-boot=loader.efi
enable-tftp
tftp-root=/srv/tftp
"""


@dataclasses.dataclass(frozen=True)
class Boot:
    """A client that boots step by step, and its boot server."""

    server: Machine
    client: Host

    @classmethod
    def of(cls, server: Machine, client: Host) -> Boot:
        server.sh("apt-get -qq update && apt-get -qq install --yes --no-install-recommends dnsmasq nginx", seconds=300)
        server.write("/etc/dnsmasq.d/boot.conf", DNSMASQ.format(mac=MAC, address=client.address))
        server.sh(
            "mkdir -p /srv/tftp /var/www/html/images /var/www/html/ignition /var/www/html/report; echo loader >/srv/tftp/loader.efi"
        )
        server.sh(
            "cd /var/www/html; echo k >images/live-kernel.x86_64; echo '{}' >report/up; systemctl restart dnsmasq nginx"
        )
        server.write(LOOK, SCRIPT.read_text(encoding="utf-8"))
        made = cls(server, client)
        for mac in (MAC, STRANGER):
            made.script("mark", mac)
        return made

    def script(self, what: str, mac: str) -> list[str]:
        return self.server.sh(
            shlex.join(["sh", LOOK, what, "/run/marks", mac, self.client.address, *LOGS, "/nowhere/again"])
        ).splitlines()

    def verdict(self, mac: str = MAC) -> tuple[str, str]:
        lines = self.script("0", mac)
        bmc = {"address": "bmc", "username": "u", "has_password": True, "system": "", "verify": True}
        common = {
            "provider": "redfish",
            "boot": "network",
            "power": "on",
            "named": False,
            "logs": True,
            "http": False,
            "media": "",
            "bmc": bmc,
        }
        asked: dict[str, t.Any] = {
            "name": "worker-1",
            "role": "worker",
            "address": self.client.address,
            "mac": mac,
            **common,
        }
        found = watch.judged([{"stdout_lines": lines}], request.read(asked), "reported", {}, {})
        return found["stage"], found["text"]

    def lease(self, mac: str) -> int:
        for argument in ("down", "up"):
            self.client.run("ip", "link", "set", "eth0", "address", mac, argument)
        return self.client.run(
            "busybox", "udhcpc", "-f", "-i", "eth0", "-n", "-q", "-t", "3", "-T", "1", "-s", "/bin/true", check=False
        ).returncode

    def fetch(self, path: str, scheme: str = "http") -> None:
        self.client.run(
            "curl", "--silent", "--output", "/dev/null", f"{scheme}://{self.server.address}/{path}", check=False
        )


def test_each_step_of_a_boot_is_seen_in_the_logs_of_real_services(rig: BootRig) -> None:
    boot = Boot.of(rig.machine("logging"), rig.host("logged"))
    address = boot.client.address
    assert boot.verdict() == ("nothing", f"no DHCP request of {MAC} was logged")
    assert boot.lease(STRANGER) != 0
    assert boot.verdict(STRANGER) == ("requested", "its DHCP request was not answered: no address available")
    assert boot.verdict()[0] == "nothing"
    assert boot.lease(MAC) == 0
    assert boot.verdict() == ("address", f"it has the address {address}, but has not downloaded its boot file")
    boot.fetch("missing.efi", "tftp")
    assert boot.verdict() == ("address", "the boot file /srv/tftp/missing.efi does not exist")
    boot.fetch("loader.efi", "tftp")
    assert boot.verdict() == ("loader", "it has downloaded its boot file (/srv/tftp/loader.efi), but no kernel")
    boot.fetch("images/live-kernel.x86_64")
    assert boot.verdict() == (
        "kernel",
        "it has downloaded its kernel (/images/live-kernel.x86_64), but nothing after it",
    )
    boot.fetch("ignition/worker.ign")
    assert boot.verdict() == ("kernel", "the ignition file /ignition/worker.ign was refused with status 404")
    boot.server.sh("echo '{}' >/var/www/html/ignition/worker.ign")
    boot.fetch("ignition/worker.ign")
    assert boot.verdict()[0] == "ignition"
    # A log that was moved away begins anew, and what is added to the new one counts.
    boot.server.sh("mv /var/log/nginx/access.log /var/log/nginx/access.log.1; nginx -s reopen")
    boot.server.wait(
        "nginx writes a new log",
        lambda: boot.server.sh("test -e /var/log/nginx/access.log && echo yes", check=False).strip() == "yes",
    )
    boot.fetch("report/up")
    assert boot.verdict() == ("reported", "reported in")
    rig.remove(boot.server)
