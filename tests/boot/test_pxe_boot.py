# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real boots by what dns_pxe serves: a computer with BIOS is installed by network, by pxelinux and by iPXE, and boots its disk once it is a node."""

from __future__ import annotations

import collections.abc as c
import hashlib
import json

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import DOMAIN, UNKNOWN, Site, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import DISK, INSTALLED, Computers, ensure_computers, installer

pytestmark = pytest.mark.slow
JOINED = ("-e", json.dumps({"dns_pxe_joined": {"ocp": ["master-0"]}}))


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    files = installer(ensure_computers(), tmp_path_factory.mktemp("installer"))
    for artifact, path in zip(made.variables["dns_pxe_artifacts"], files, strict=False):
        artifact.update(source=str(path), checksum=f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
    for profile in made.variables["dns_pxe_profiles"]:
        profile["arguments"] += ["console=ttyS0", "panic=5"]
    # Larger ones are for networks that carry them.
    made.variables["dns_pxe_networks"][0]["mtu"] = 1500
    yield made
    rig.remove(made.server)


@pytest.fixture(scope="module")
def computers(rig: BootRig) -> Computers:
    return Computers(rig, "hypervisor")


@pytest.mark.parametrize("ipxe", ["never", "clients"])
def test_a_machine_is_installed_with_its_own_ignition_file_and_boots_its_disk_once_it_is_a_node(ipxe: str, site: Site, computers: Computers) -> None:
    site.done(dns_pxe_ipxe=ipxe)
    said = computers.boots(mac(151))
    ignition = hashlib.sha256((site.folder / "master.ign").read_bytes()).hexdigest()
    rootfs = site.variables["dns_pxe_artifacts"][2]["checksum"].removeprefix("sha256:")
    assert f"{INSTALLED} {ignition} {rootfs} master-0.{DOMAIN}" in said, said[-3000:]
    assert DISK not in said
    site.done(*JOINED, dns_pxe_ipxe=ipxe)
    said = computers.boots(mac(151))
    assert DISK in said and INSTALLED not in said, said[-3000:]


def test_a_machine_that_nobody_knows_boots_its_disk(site: Site, computers: Computers) -> None:
    site.done()
    said = computers.boots(UNKNOWN)
    assert DISK in said and INSTALLED not in said, said[-3000:]
