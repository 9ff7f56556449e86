# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig's network: a bridge in the network namespace of the tests, and one namespace per machine.

The namespaces are anonymous: they belong to processes and end with them. There is no route to other networks.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import subprocess

BRIDGE = "rig0"
GATEWAY = "10.99.0.1"
#: First address of the service network, which pods find in KUBERNETES_SERVICE_HOST. No kube-proxy runs here.
KUBERNETES_SERVICE = "10.96.0.1"
_MACHINES = ipaddress.ip_network("10.99.0.0/24")


def ip(*arguments: str, pid: int | None = None) -> None:
    """Runs one ip command, in the network namespace of a process if its pid is given."""
    inside = ("nsenter", f"--net=/proc/{pid}/ns/net") if pid else ()
    subprocess.run([*inside, "ip", *arguments], check=True, capture_output=True, text=True, timeout=240)


def set_up() -> None:
    """Creates the bridge of the machines."""
    ip("link", "set", "lo", "up")
    ip("link", "add", BRIDGE, "type", "bridge")
    for address in (f"{GATEWAY}/24", f"{KUBERNETES_SERVICE}/32"):
        ip("address", "add", address, "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for setting in ("ip_forward", f"conf/{BRIDGE}/route_localnet"):
        with open(f"/proc/sys/net/ipv4/{setting}", "w", encoding="ascii") as file:
            file.write("1")


def take_down() -> None:
    """Removes the bridge, so that another rig can follow, and the cables, which the kernel would remove some time after their machines' namespaces."""
    shown = ["ip", "-json", "link", "show", "master", BRIDGE]
    listed = subprocess.run(shown, check=True, capture_output=True, text=True, timeout=240).stdout
    for cable in json.loads(listed or "[]"):
        # It may go at the same time.
        subprocess.run(["ip", "link", "delete", cable["ifname"]], check=False, capture_output=True, timeout=240)
    ip("link", "delete", BRIDGE)


def publish(api_server_port: int) -> None:
    """Makes the API server, which listens on loopback only, available under its Service address."""
    match = ("-d", f"{KUBERNETES_SERVICE}/32", "-p", "tcp", "--dport", "443")
    for chain in ("PREROUTING", "OUTPUT"):
        rule = (
            "iptables",
            "-t",
            "nat",
            "-A",
            chain,
            *match,
            "-j",
            "DNAT",
            "--to-destination",
            f"127.0.0.1:{api_server_port}",
        )
        subprocess.run(rule, check=True, capture_output=True, text=True, timeout=240)


@dataclasses.dataclass
class Port:
    """A machine's network namespace and its cable to the bridge, which reboots of the machine do not change."""

    #: Number of the machine, 1 to 200. It determines address, network of pods, and name of the cable.
    number: int
    _holder: subprocess.Popen | None = None

    @property
    def address(self) -> str:
        return str(_MACHINES[10 + self.number])

    @property
    def pods(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def cable(self) -> str:
        """Name of the interface at the other end of the cable."""
        return f"rig{self.number}"

    @property
    def namespace(self) -> str:
        return f"/proc/{self._pid}/ns/net"

    @property
    def _pid(self) -> int:
        if self._holder is None:
            raise RuntimeError("the machine's network is not plugged in")
        return self._holder.pid

    def plug(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE
        )
        assert self._holder.stdout
        self._holder.stdout.readline()
        pid, cable = self._pid, self.cable
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        ip("link", "set", cable, "master", BRIDGE, "up")
        for arguments in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{self.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            ip(*arguments, pid=pid)
        ip("route", "add", "default", "via", GATEWAY, pid=pid)
        ip("route", "add", self.pods, "via", self.address)

    def plug_into(self, other: Port) -> None:
        """Moves the other end of the cable from the bridge into another machine."""
        ip("link", "set", self.cable, "netns", other.namespace)

    def unplug(self) -> None:
        if self._holder is not None:
            assert self._holder.stdout
            self._holder.kill()
            self._holder.wait()
            self._holder.stdout.close()
            self._holder = None
