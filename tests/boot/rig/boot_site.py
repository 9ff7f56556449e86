# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot server of the rig with machines that are off: an inventory, runs of the playbook dns_pxe, and clients with the requests of machines."""

from __future__ import annotations

import collections.abc as c
import copy
import dataclasses
import hashlib
import pathlib
import shlex
import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip

DOMAIN, BALANCER, PORT = "ocp.example.com", "10.99.0.5", 8080
CONFIG, STATE = "/etc/hwaccel-gpu/dns_pxe", "/var/lib/hwaccel-gpu/dns_pxe"
#: Machines: group, firmware, last byte of MAC and IP address.
MACHINES = {
    "bootstrap-0": ("bootstrap", "bios", 150),
    "master-0": ("control_plane", "bios", 151),
    "worker-0": ("workers", "uefi", 152),
    "worker-1": ("workers", "", 153),
}
UNKNOWN = "52:54:00:99:00:fe"
SECRET = "keys-of-the-cluster"
#: Options that a client requests.
_REQUESTED = ("-O", "bootfile", "-O", "tftp", "-O", "ntpsrv", "-O", "mtu")
_EVENT = """#!/bin/sh
[ "$1" = bound ] || exit 0
for n in ip hostname domain router dns ntpsrv mtu lease siaddr bootfile boot_file; do eval "echo $n=\\$$n"; done
"""


def mac(number: int) -> str:
    return f"52:54:00:99:00:{number:02x}"


def address(number: int) -> str:
    return f"10.99.0.{number}"


def _profiles(folder: pathlib.Path) -> tuple[list[dict[str, t.Any]], list[dict[str, str]]]:
    """A profile and an ignition file for each role."""
    profiles: list[dict[str, t.Any]] = []
    ignitions = []
    for role in ("bootstrap", "master", "worker"):
        file = folder / f"{role}.ign"
        text = f'{{"ignition": {{"version": "3.2.0"}}, "role": "{role}", "x": "{SECRET}"}}'
        file.write_text(text, encoding="utf-8")
        ignitions.append({"path": f"ocp/{role}.ign", "source": str(file)})
        boots = {"kernel": "os/kernel", "initramfs": "os/initramfs", "rootfs": "os/rootfs"}
        further = {"install_device": "/dev/vda", "arguments": ["ip=dhcp", "test.name={fqdn}"]}
        profiles.append({"role": role, **boots, "ignition": f"ocp/{role}.ign", **further})
    return profiles, ignitions


@dataclasses.dataclass
class Site:
    """groups, clusters: the inventory. play() runs the playbook, with changed variables of the boot server."""

    rig: BootRig
    server: Machine
    folder: pathlib.Path
    groups: dict[str, dict[str, dict[str, t.Any]]]
    clusters: dict[str, dict[str, t.Any]]

    @classmethod
    def of(cls, rig: BootRig, server: Machine, folder: pathlib.Path) -> Site:
        """The boot server also accepts connections for the API, like the load balancer."""
        artifacts = [
            _file(folder, path, size)
            for path, size in (("os/kernel", 300_000), ("os/initramfs", 500_000), ("os/rootfs", 2_000_000))
        ]
        profiles, ignitions = _profiles(folder)
        variables = {
            "dns_pxe_interfaces": ["eth0"],
            "dns_pxe_profiles": profiles,
            "dns_pxe_artifacts": artifacts,
            "dns_pxe_ignitions": ignitions,
            "dns_pxe_networks": [{"network": "10.99.0.0/24", "router": "10.99.0.1", "ntp": ["10.99.0.1"], "mtu": 9000}],
            "dns_pxe_extra_hosts": [{"address": "10.99.0.7", "names": ["storage.example.com", "nfs.example.com"]}],
        }
        groups: dict[str, dict[str, dict[str, t.Any]]] = {"boot_servers": {server.name: variables}}
        for name, (group, firmware, number) in MACHINES.items():
            host = {
                "hwaccel_mac": mac(number),
                "hwaccel_address": address(number),
                "hwaccel_firmware": firmware,
                "hwaccel_install": name != "worker-1",
            }
            groups.setdefault(group, {})[name] = host
        server.sh(
            f"ip address add {BALANCER}/32 dev lo; systemd-run --quiet --unit=balancer python3 -m http.server 6443"
        )
        server.wait("the load balancer listens", lambda: ":6443" in server.sh("ss -ltn"))
        network = {
            "hwaccel_machine_network": "10.99.0.0/24",
            "hwaccel_cluster_network": "10.128.0.0/14",
            "hwaccel_service_network": "172.30.0.0/16",
        }
        cluster = {
            "hwaccel_domain": DOMAIN,
            "hwaccel_load_balancer_address": BALANCER,
            "hwaccel_new_cluster": True,
            **network,
        }
        return cls(rig, server, folder, groups, {"ocp": cluster})

    @property
    def variables(self) -> dict[str, t.Any]:
        return self.groups["boot_servers"][self.server.name]

    def play(self, *arguments: str, **changed: t.Any) -> Run:
        groups = copy.deepcopy(self.groups)
        groups["boot_servers"][self.server.name].update(changed)
        return self.rig.play("dns_pxe", groups, *arguments, clusters=copy.deepcopy(self.clusters))

    def done(self, *arguments: str, **changed: t.Any) -> Run:
        run = self.play(*arguments, **changed)
        assert run.rc == 0, run.stdout[-8000:]
        return run

    def refused(self, *arguments: str, **changed: t.Any) -> str:
        """The reason of a run that has to fail."""
        run = self.play(*arguments, **changed)
        assert run.rc == 2, run.stdout[-8000:]
        return run.failures[-1]

    def renew(self, number: int) -> None:
        """Has a machine written once more, as machine_boot does if it is requested by name. number: last byte of its MAC address."""
        request = f"{STATE}/again/{mac(number)}"
        self.server.sh(f"touch {request}")
        self.server.wait(
            "the request is taken", lambda: "yes" not in self.server.sh(f"test -e {request} && echo yes || :"), 10
        )

    def state(self) -> str:
        """All files that the role can change, and the processes of its services."""
        folders = f"{CONFIG} {STATE} /etc/systemd/system /etc/dnsmasq.conf /etc/dnsmasq.d /etc/nginx"
        files = f"find {folders} -type f -printf '%p %m %U:%G %C@\\n' 2>/dev/null | sort; ls -1d {folders} 2>/dev/null"
        return self.server.sh(
            f"{files}; systemctl show dnsmasq nginx -p MainPID -p ActiveState -p UnitFileState; dpkg-query -W | sort",
            check=False,
        )


@dataclasses.dataclass(frozen=True)
class Client:
    """A network card on the bridge that requests an address and a boot program."""

    host: Host
    folder: pathlib.Path

    @classmethod
    def of(cls, host: Host, folder: pathlib.Path) -> Client:
        script = folder / "event"
        script.write_text(_EVENT, encoding="ascii")
        script.chmod(0o755)
        return cls(host, folder)

    def dhcp(self, own: str, code: int | None = None, *, ipxe: bool = False) -> dict[str, str]:
        """The lease of a machine with this MAC, {} without a response. code: of its architecture, None for a machine that does not boot from the network."""
        ip("link", "set", "eth0", "address", own, pid=self.pid)
        # Options 60 and 93 describe the client; options 77 and 175 identify iPXE.
        options: list[str] = []
        if code is not None:
            kind = "HTTPClient" if code in (15, 16, 18, 19) else "PXEClient"
            options = ["-V", f"{kind}:Arch:{code:05d}:UNDI:002001", "-x", f"0x5d:{code:04x}"]
        options += ["-x", "0x4d:69505845", "-x", "0xaf:b105"] if ipxe else []
        event = str(self.folder / "event")
        done = self.host.run(
            "busybox",
            "udhcpc",
            "-f",
            "-i",
            "eth0",
            "-n",
            "-q",
            "-t",
            "2",
            "-T",
            "1",
            "-s",
            event,
            *_REQUESTED,
            *options,
            check=False,
        )
        lease = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        # The boot program is in a field of the message, or in an option.
        return {**lease, "boots": lease["boot_file"] or lease["bootfile"]} if lease else {}

    @property
    def pid(self) -> int:
        return int(self.host.port.namespace.split("/")[2])


def start_other_dhcp_server(host: Host, folder: pathlib.Path) -> None:
    """Starts another DHCP server on a host of the segment."""
    (folder / "leases").touch()
    settings = f"interface eth0\nstart 10.99.0.230\nend 10.99.0.240\nlease_file {folder}/leases\npidfile {folder}/pid\n"
    (folder / "udhcpd.conf").write_text(settings, encoding="ascii")
    host.spawn("busybox", "udhcpd", "-f", str(folder / "udhcpd.conf"), stderr=-3)


def dig(client: Machine, server: str, name: str, kind: str = "A", *more: str) -> tuple[str, list[str]]:
    """Status and answers of dig, ("", []) without a response."""
    argv = [
        "dig",
        f"@{server}",
        "+tries=1",
        "+time=1",
        "+noall",
        "+comments",
        "+answer",
        *more,
        *(["-x", name] if kind == "PTR" else [name, kind]),
    ]
    output = client.sh(shlex.join(argv), check=False)
    status = output.partition("status: ")[2].partition(",")[0]
    return status, sorted(line.split()[-1] for line in output.splitlines() if line and not line.startswith(";"))


def download(client: Machine, url: str, *more: str) -> tuple[str, str]:
    """Status and checksum of a file, by HTTP or TFTP."""
    argv = [
        "curl",
        "--silent",
        "--show-error",
        "--max-time",
        "5",
        "--output",
        "/tmp/fetched",
        "--write-out",
        "%{http_code}",
        *more,
        url,
    ]
    output = client.sh(f"rm -f /tmp/fetched; {shlex.join(argv)} || :; sha256sum /tmp/fetched || :")
    return output[:3], output[3:67]


def overwritten(site: Site, changes: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Variables of the boot server with changes."""
    return {**site.variables, **changes}


def _file(folder: pathlib.Path, path: str, size: int) -> dict[str, str]:
    content = hashlib.sha512(path.encode()).digest() * (size // 64)
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_bytes(content)
    return {"path": path, "source": str(folder / path), "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}"}
