# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real boots of computers with UEFI from dns_pxe: by TFTP, with Secure Boot, by HTTP and with iPXE, for installation and from their disks.

There is one boot server. The tests depend on the state that earlier ones leave: first machines are installed, then they are nodes.
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
    """The boot server with a machine whose kernel is not signed, a machine with another architecture, and a GRUB for boots by HTTP."""
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
    """Adds a worker with its own profile."""
    site.variables["dns_pxe_artifacts"] += [{"path": path, **artifact_of(file)} for path, file in files.items()]
    site.variables["dns_pxe_profiles"].append({**site.variables["dns_pxe_profiles"][2], **profile})
    site.groups["workers"][name] = {
        "hwaccel_mac": mac(number),
        "hwaccel_address": address(number),
        "hwaccel_install": True,
        **variables,
    }


def _http_loader(site: Site) -> str:
    """Builds the boot loader as documented."""
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
    loaders = {
        "shimaa64.efi": "shim/shimaa64.efi.signed",
        "grubaa64.efi": "grub/arm64-efi-signed/grubnetaa64.efi.signed",
    }
    return {name: f"/srv/arm64/usr/lib/{path}" for name, path in loaders.items()}


@pytest.fixture(scope="module")
def installing(site: Site) -> Site:
    site.done()
    return site


@pytest.fixture(scope="module")
def nodes(installing: Site) -> Site:
    installing.done("-e", json.dumps({"dns_pxe_joined": NODES}))
    return installing


def by_network(kind: Kind, *marks: pytest.MarkDecorator) -> object:
    names = {UEFI: "uefi", SECURE_BOOT: "secure-boot", UEFI_BY_HTTP: "http"}
    return pytest.param(kind, id=names[kind], marks=marks)


KINDS = [by_network(UEFI), by_network(SECURE_BOOT, pytest.mark.slow), by_network(UEFI_BY_HTTP, pytest.mark.slow)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_is_installed_with_its_own_ignition_file(kind: Kind, installing: Site, computers: Computers) -> None:
    installing.renew(WORKER)
    console = computers.boot(mac(WORKER), kind)
    assert installed(installing, "worker-0", "worker", FIRMWARES[kind]) in console, console[-3000:]
    assert DISK not in console
    assert (BY_HTTP in console) == (kind is UEFI_BY_HTTP)


@pytest.mark.slow
def test_an_unsigned_kernel_is_refused_with_secure_boot(installing: Site, computers: Computers) -> None:
    console = computers.boot(mac(UNSIGNED), SECURE_BOOT, until="bad shim signature")
    assert "bad shim signature" in console and INSTALLED not in console, console[-3000:]
    console = computers.boot(mac(UNSIGNED), UEFI)
    assert installed(installing, "worker-2", "worker", "uefi") in console, "without Secure Boot, the kernel boots"


@pytest.mark.slow
def test_machines_with_three_roles_boot_at_once_and_each_gets_its_own_ignition_file(
    installing: Site, computers: Computers
) -> None:
    machines = (
        ("bootstrap-0", "bootstrap", 150, BIOS),
        ("master-0", "master", 151, BIOS),
        ("worker-0", "worker", WORKER, UEFI),
    )
    installing.renew(WORKER)
    with concurrent.futures.ThreadPoolExecutor(len(machines)) as at_once:
        ends = [at_once.submit(computers.boot, mac(number), kind) for _name, _role, number, kind in machines]
    for (name, role, _number, kind), end in zip(machines, ends, strict=True):
        assert installed(installing, name, role, FIRMWARES[kind]) in end.result(), end.result()[-3000:]


@pytest.mark.slow
def test_an_unknown_machine_boots_its_disk(installing: Site, computers: Computers) -> None:
    console = computers.boot(UNKNOWN, UEFI)
    assert "No valid offer received" in console, console[-3000:]
    assert DISK in console and INSTALLED not in console, console[-3000:]


@pytest.mark.slow
def test_ten_boots_in_a_row(installing: Site, computers: Computers) -> None:
    for number, kind in zip(range(10), itertools.cycle(FIRMWARES), strict=False):
        name, role, last = ("master-0", "master", 151) if kind is BIOS else ("worker-0", "worker", WORKER)
        installing.renew(last)
        console = computers.boot(mac(last), kind)
        assert installed(installing, name, role, FIRMWARES[kind]) in console, f"boot {number} of ten: {console[-3000:]}"


@pytest.mark.slow
def test_a_machine_with_an_arm_processor_is_installed(installing: Site, computers: Computers) -> None:
    console = computers.boot(mac(ARM), AARCH64, seconds=500)
    assert installed(installing, "worker-3", "worker", "uefi") in console, console[-3000:]


@pytest.mark.slow
def test_a_node_with_an_arm_processor_boots_its_disk(nodes: Site, computers: Computers) -> None:
    console = computers.boot(mac(ARM), AARCH64, seconds=500)
    assert DISK in console and INSTALLED not in console, console[-3000:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_reboots_from_the_network_boots_its_disk(kind: Kind, nodes: Site, computers: Computers) -> None:
    console = computers.boot(mac(WORKER), kind)
    assert DISK in console and INSTALLED not in console, console[-3000:]
    assert (BY_HTTP in console) == (kind is UEFI_BY_HTTP)


@pytest.mark.slow
def test_ipxe_boots_disks_of_nodes_and_installs_others(nodes: Site, computers: Computers) -> None:
    # No package contains an iPXE for aarch64.
    del nodes.groups["workers"]["worker-3"]
    nodes.done("-e", json.dumps({"dns_pxe_joined": NODES}), dns_pxe_ipxe="always")
    console = computers.boot(mac(WORKER), UEFI)
    assert "iPXE initialising devices" in console
    assert DISK in console and INSTALLED not in console, console[-3000:]
    nodes.renew(UNSIGNED)
    console = computers.boot(mac(UNSIGNED), UEFI)
    assert "iPXE initialising devices" in console
    assert installed(nodes, "worker-2", "worker", "uefi") in console, console[-3000:]
