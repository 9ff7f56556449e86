# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real boots from dns_pxe: a computer with BIOS is installed from the network, with pxelinux and with iPXE, and boots its disk once it is a node."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import UNKNOWN, Site, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import DISK, Computers
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import INSTALLED, installed

pytestmark = pytest.mark.slow
JOINED = ("-e", json.dumps({"dns_pxe_joined": {"ocp": ["master-0"]}}))


@pytest.mark.parametrize("ipxe", ["never", "clients"])
def test_a_machine_is_installed_with_its_own_ignition_file_and_boots_its_disk_once_it_is_a_node(
    ipxe: str, booting: Site, computers: Computers
) -> None:
    booting.done(dns_pxe_ipxe=ipxe, dns_pxe_install_again=["master-0"])
    console = computers.boot(mac(151))
    assert installed(booting, "master-0", "master", "bios") in console, console[-3000:]
    assert DISK not in console
    booting.done(*JOINED, dns_pxe_ipxe=ipxe)
    # Its cluster is unreachable now, and still declared as new.
    booting.done(dns_pxe_ipxe=ipxe)
    console = computers.boot(mac(151))
    assert DISK in console and INSTALLED not in console, console[-3000:]


def test_an_unknown_machine_boots_its_disk(booting: Site, computers: Computers) -> None:
    booting.done()
    console = computers.boot(UNKNOWN)
    assert DISK in console and INSTALLED not in console, console[-3000:]
