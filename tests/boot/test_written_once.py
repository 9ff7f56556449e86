# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real boots of computers whose firmware tries the network before the disk: each is written once a wish, whatever it is restarted for.

Their installer writes their disk and restarts them, like that of CoreOS. Nobody runs Ansible in between, and they do not become nodes.
"""

from __future__ import annotations

import collections.abc as c

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import STATE, Site, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import BIOS, DISK, UEFI, Computers, Kind
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import INSTALLED, INSTALLS, Installer

pytestmark = pytest.mark.slow
MASTER, WORKER = 151, 152
#: By which the worker is installed, instead of ignition.
ANSWER = {
    "kind": "kickstart",
    "user": "gpuadmin",
    "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3xYk1s6m2Yc2l3 operator@example.com"],
    "source": "http://mirror.example.com/os",
}


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    Installer.of(tmp_path_factory.mktemp("installer"), INSTALLS).put_in(made)
    worker = made.variables["dns_pxe_profiles"][2]
    del worker["ignition"]
    worker["answer"] = ANSWER
    yield made
    rig.remove(made.server)


def started(site: Site, computers: Computers, number: int, kind: Kind, ipxe: str, **how: object) -> str:
    """The console of a computer, whose disk is blank if it has a BIOS."""
    name = {MASTER: "master-0", WORKER: "worker-0"}[number]
    site.done(dns_pxe_ipxe=ipxe, dns_pxe_install_again=[])
    site.done(dns_pxe_ipxe=ipxe, dns_pxe_install_again=[name])
    return computers.boot(mac(number), kind, disk=computers.blank(name), restarts=True, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "kind", "ipxe"),
    [
        pytest.param(MASTER, BIOS, "never", id="pxelinux"),
        pytest.param(MASTER, BIOS, "clients", id="ipxe"),
        pytest.param(WORKER, UEFI, "never", id="grub-and-kickstart"),
    ],
)
def test_a_machine_that_tries_the_network_first_is_written_once(
    number: int, kind: Kind, ipxe: str, site: Site, computers: Computers
) -> None:
    console = started(site, computers, number, kind, ipxe)
    assert console.count(INSTALLED) == 1 and console.index(INSTALLED) < console.index(DISK), console[-3000:]
    assert "written once, so they boot their disks: " in site.done(dns_pxe_ipxe=ipxe).stdout
    if kind is BIOS:
        console = computers.boot(mac(number), kind, disk="/var/tmp/master-0.disk", restarts=True)
        assert DISK in console and INSTALLED not in console, console[-3000:]


def test_without_the_service_it_is_written_at_each_restart_and_the_service_catches_up(
    site: Site, computers: Computers
) -> None:
    """As before this service existed."""
    site.done(dns_pxe_install_again=[])
    site.done(dns_pxe_install_again=["master-0"])
    site.server.sh("systemctl stop hwaccel-gpu-once")
    console = computers.boot(mac(MASTER), disk=computers.blank("master-0"), restarts=True, until=INSTALLED, times=2)
    assert console.count(INSTALLED) == 2 and DISK not in console, console[-3000:]
    entry = f"{STATE}/files/pxelinux.cfg/01-{mac(MASTER).replace(':', '-')}"
    assert "DEFAULT install\n" in site.server.read(entry)
    site.server.sh("systemctl start hwaccel-gpu-once")
    site.server.wait("its entry turns", lambda: "DEFAULT disk\n" in site.server.read(entry), 10)
