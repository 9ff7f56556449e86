# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real boots by what dns_pxe serves: a computer with BIOS is installed by network, by pxelinux and by iPXE, and boots its disk once it is a node."""

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
    said = computers.boots(mac(151))
    assert installed(booting, "master-0", "master", "bios") in said, said[-3000:]
    assert DISK not in said
    booting.done(*JOINED, dns_pxe_ipxe=ipxe)
    # Its cluster is silent now, and still told to be new.
    booting.done(dns_pxe_ipxe=ipxe)
    said = computers.boots(mac(151))
    assert DISK in said and INSTALLED not in said, said[-3000:]


def test_a_machine_that_nobody_knows_boots_its_disk(booting: Site, computers: Computers) -> None:
    booting.done()
    said = computers.boots(UNKNOWN)
    assert DISK in said and INSTALLED not in said, said[-3000:]
