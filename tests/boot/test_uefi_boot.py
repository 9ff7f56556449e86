# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real boots of computers with UEFI by what dns_pxe serves: by TFTP, with Secure Boot, by HTTP and by iPXE, to be installed and to boot their disks.

One boot server; the tests go on from each other's state, first with machines that are to be installed, then with those that are nodes.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import PORT, UNKNOWN, Site, address, mac
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import (
    AARCH64,
    ARM64,
    BIOS,
    DISK,
    SECURE_BOOT,
    UEFI,
    UEFI_BY_HTTP,
    Computers,
    Kind,
)
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import (
    INSTALLED,
    Installer,
    artifact_of,
    installed,
    unsigned,
)

WORKER, UNSIGNED, ARM = 152, 154, 155
NODES = {"ocp": ["worker-0", "worker-3"]}
FIRMWARES = {BIOS: "bios", UEFI: "uefi", SECURE_BOOT: "secure-boot", UEFI_BY_HTTP: "uefi"}
BY_HTTP = "Start HTTP Boot over IPv4"


@pytest.fixture(scope="module")
def site(booting: Site, installer: Installer, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """With a machine whose kernel nobody has signed, one of another architecture, and a GRUB for boots by HTTP."""
    kernel = unsigned(installer.kernel, booting.folder / "unsigned")
    _add(
        booting,
        "worker-2",
        UNSIGNED,
        {"role": "unsigned", "kernel": "os/unsigned"},
        {"os/unsigned": kernel},
        hwaccel_role="unsigned",
    )
    arm = Installer.of_arm64(tmp_path_factory.mktemp("arm64"))
    files = {"arm/kernel": arm.kernel, "arm/initramfs": arm.initramfs}
    boots = {
        "architecture": "aarch64",
        "kernel": "arm/kernel",
        "initramfs": "arm/initramfs",
        "arguments": ["console=ttyAMA0"],
    }
    _add(booting, "worker-3", ARM, boots, files, hwaccel_architecture="aarch64")
    booting.variables["dns_pxe_loaders"] = {"httpx64.efi": _http_loader(booting), **_arm64_loaders(booting)}
    return booting


def _add(
    site: Site, name: str, number: int, profile: dict[str, t.Any], files: dict[str, pathlib.Path], **variables: str
) -> None:
    """A worker more, with a profile of its own."""
    site.variables["dns_pxe_artifacts"] += [{"path": path, **artifact_of(file)} for path, file in files.items()]
    site.variables["dns_pxe_profiles"].append({**site.variables["dns_pxe_profiles"][2], **profile})
    site.groups["workers"][name] = {
        "hwaccel_mac": mac(number),
        "hwaccel_address": address(number),
        "hwaccel_install": True,
        **variables,
    }


def _http_loader(site: Site) -> str:
    """As the documentation says."""
    server = site.server
    server.write("/srv/http.cfg", f"net_bootp\nset root=(http,{server.address}:{PORT})\nconfigfile /grub/grub.cfg\n")
    server.sh(
        "apt-get -qq update; apt-get -qq install --no-install-recommends grub-common grub-efi-amd64-bin >/dev/null 2>&1; "
        "grub-mkimage --format x86_64-efi --prefix /grub --config /srv/http.cfg --output /srv/httpx64.efi "
        "boot chain configfile echo efinet fat http linux net normal part_gpt part_msdos regexp search search_fs_file test",
        seconds=300,
    )
    return "/srv/httpx64.efi"


def _arm64_loaders(site: Site) -> dict[str, str]:
    site.server.sh(
        f"for package in shim-signed grub-efi-arm64-signed; do dpkg-deb --extract {ARM64}/${{package}}_*.deb /srv/arm64; done"
    )
    found = {"shimaa64.efi": "shim/shimaa64.efi.signed", "grubaa64.efi": "grub/arm64-efi-signed/grubnetaa64.efi.signed"}
    return {name: f"/srv/arm64/usr/lib/{path}" for name, path in found.items()}


@pytest.fixture(scope="module")
def installing(site: Site) -> Site:
    site.done()
    return site


@pytest.fixture(scope="module")
def nodes(installing: Site) -> Site:
    installing.done("-e", json.dumps({"dns_pxe_joined": NODES}))
    return installing


def by_network(kind: Kind, *more: pytest.MarkDecorator) -> object:
    names = {UEFI: "uefi", SECURE_BOOT: "secure-boot", UEFI_BY_HTTP: "http"}
    return pytest.param(kind, id=names[kind], marks=more)


KINDS = [by_network(UEFI), by_network(SECURE_BOOT, pytest.mark.slow), by_network(UEFI_BY_HTTP, pytest.mark.slow)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_is_installed_with_its_own_ignition_file(kind: Kind, installing: Site, computers: Computers) -> None:
    said = computers.boots(mac(WORKER), kind)
    assert installed(installing, "worker-0", "worker", FIRMWARES[kind]) in said, said[-3000:]
    assert DISK not in said
    assert (BY_HTTP in said) == (kind is UEFI_BY_HTTP)


@pytest.mark.slow
def test_a_kernel_that_nobody_has_signed_is_refused_where_secure_boot_is_on(
    installing: Site, computers: Computers
) -> None:
    said = computers.boots(mac(UNSIGNED), SECURE_BOOT, until="bad shim signature")
    assert "bad shim signature" in said and INSTALLED not in said, said[-3000:]
    said = computers.boots(mac(UNSIGNED), UEFI)
    assert installed(installing, "worker-2", "worker", "uefi") in said, "the control: it is a kernel that boots"


@pytest.mark.slow
def test_machines_of_three_roles_boot_at_once_and_each_gets_its_own_ignition_file(
    installing: Site, computers: Computers
) -> None:
    machines = (
        ("bootstrap-0", "bootstrap", 150, BIOS),
        ("master-0", "master", 151, BIOS),
        ("worker-0", "worker", WORKER, UEFI),
    )
    with concurrent.futures.ThreadPoolExecutor(len(machines)) as at_once:
        ends = [at_once.submit(computers.boots, mac(number), kind) for _name, _role, number, kind in machines]
    for (name, role, _number, kind), end in zip(machines, ends, strict=True):
        assert installed(installing, name, role, FIRMWARES[kind]) in end.result(), end.result()[-3000:]


@pytest.mark.slow
def test_a_machine_that_nobody_knows_boots_its_disk(installing: Site, computers: Computers) -> None:
    said = computers.boots(UNKNOWN, UEFI)
    assert "No valid offer received" in said, said[-3000:]
    assert DISK in said and INSTALLED not in said, said[-3000:]


@pytest.mark.slow
def test_ten_boots_in_a_row(installing: Site, computers: Computers) -> None:
    for number, kind in zip(range(10), itertools.cycle(FIRMWARES), strict=False):
        name, role, last = ("master-0", "master", 151) if kind is BIOS else ("worker-0", "worker", WORKER)
        said = computers.boots(mac(last), kind)
        assert installed(installing, name, role, FIRMWARES[kind]) in said, f"boot {number} of ten: {said[-3000:]}"


@pytest.mark.slow
def test_a_machine_with_an_arm_processor_is_installed(installing: Site, computers: Computers) -> None:
    said = computers.boots(mac(ARM), AARCH64, seconds=500)
    assert installed(installing, "worker-3", "worker", "uefi") in said, said[-3000:]


@pytest.mark.slow
def test_a_node_with_an_arm_processor_boots_its_disk(nodes: Site, computers: Computers) -> None:
    said = computers.boots(mac(ARM), AARCH64, seconds=500)
    assert DISK in said and INSTALLED not in said, said[-3000:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_reboots_by_network_boots_its_disk(kind: Kind, nodes: Site, computers: Computers) -> None:
    said = computers.boots(mac(WORKER), kind)
    assert DISK in said and INSTALLED not in said, said[-3000:]
    assert (BY_HTTP in said) == (kind is UEFI_BY_HTTP)


@pytest.mark.slow
def test_ipxe_boots_disks_of_nodes_and_installs_others(nodes: Site, computers: Computers) -> None:
    # No package has an iPXE of aarch64.
    del nodes.groups["workers"]["worker-3"]
    nodes.done("-e", json.dumps({"dns_pxe_joined": NODES}), dns_pxe_ipxe="always")
    said = computers.boots(mac(WORKER), UEFI)
    assert "iPXE initialising devices" in said
    assert DISK in said and INSTALLED not in said, said[-3000:]
    said = computers.boots(mac(UNSIGNED), UEFI)
    assert "iPXE initialising devices" in said
    assert installed(nodes, "worker-2", "worker", "uefi") in said, said[-3000:]
