# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine by what dns_pxe serves: installed from the network, from its disk after that, and installed anew where it is asked for by name."""

from __future__ import annotations

import collections.abc as c
import copy
import hashlib

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_site import Site
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import DISK
from ansible_collections.hwaccel.gpu.tests.boot.rig.hypervisor import BRIDGE, Hypervisor
from ansible_collections.hwaccel.gpu.tests.boot.rig.installer import INSTALLED, INSTALLS, Installer
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

pytestmark = pytest.mark.slow
NAME = "master-0"
NAMED = ("-e", f"machine_boot_named={NAME}")


@pytest.fixture(scope="module")
def site(rig: BootRig, tmp_path_factory: pytest.TempPathFactory) -> c.Iterator[Site]:
    made = Site.of(rig, rig.machine("boot"), tmp_path_factory.mktemp("site"))
    Installer.of(tmp_path_factory.mktemp("installer"), INSTALLS).put_in(made)
    made.done()
    yield made
    rig.remove(made.server)


@pytest.fixture(scope="module")
def hyper(rig: BootRig) -> c.Iterator[Hypervisor]:
    made = Hypervisor.of(rig, "hyper")
    yield made
    made.clean()
    rig.remove(made.machine)


def play(site: Site, group: str, name: str, *arguments: str, **changed: object) -> Run:
    virtual = {
        "hwaccel_power_provider": "libvirt",
        "hwaccel_hypervisor": "hyper",
        "hwaccel_vm_bridge": BRIDGE,
        "machine_boot_vm_small": [name],
    }
    sizes = {"hwaccel_vm_memory": 512, "hwaccel_vm_vcpus": 1, "hwaccel_vm_disk": 1}
    # What is on its disk halts, and hears nobody ask it to end.
    times = {"machine_boot_interval": 5, "machine_boot_timeout": 240, "machine_boot_shutdown_timeout": 5}
    machine = {**site.groups[group][name], **virtual, **sizes, **times, **changed}
    groups = {group: {name: machine}, "hypervisors": {"hyper": {}}, "boot_servers": {site.server.name: {}}}
    return site.rig.play("machine_boot", groups, *arguments, clusters=copy.deepcopy(site.clusters))


def test_it_is_installed_once_restarts_from_its_disk_and_is_installed_anew_only_by_name(
    site: Site, hyper: Hypervisor
) -> None:
    def run(*arguments: str) -> Run:
        return play(site, "control_plane", NAME, *arguments)

    def said(installations: int, starts: int) -> None:
        """The console has told of so many installations and of so many starts from the disk."""
        hyper.machine.wait(f"{starts} starts from the disk", lambda: hyper.console(NAME).count(DISK) == starts, 120)
        assert hyper.console(NAME).count(INSTALLED) == installations, hyper.console(NAME)[-3000:]

    done = run()
    assert done.rc == 0, done.stdout[-6000:]
    assert "it has downloaded its ignition file" in done.stdout
    said(1, 1)
    assert hyper.console(NAME).index(INSTALLED) < hyper.console(NAME).index(DISK)
    assert run().changed() == 0

    # Without its node in the cluster the boot server would install it at each start from the network.
    off = run("-e", "machine_boot_power=off", *NAMED)
    assert off.rc == 0, off.stdout[-6000:]
    started = run()
    assert started.rc == 0, started.stdout[-6000:]
    assert "its disk is not empty: it starts from its disk" in started.stdout
    said(1, 2)

    anew = run("-e", "machine_boot_power=cycle", *NAMED)
    assert anew.rc == 0, anew.stdout[-6000:]
    assert "start from the network once: network is requested, before it was disk" in anew.stdout
    assert "power on: its installation has ended, it starts from its disk" in anew.stdout
    said(2, 3)
    assert run().changed() == 0


def test_uefi_with_secure_boot_installs_from_the_network_too(site: Site, hyper: Hypervisor) -> None:
    done = play(site, "workers", "worker-0", hwaccel_vm_secure_boot=True)
    assert done.rc == 0, done.stdout[-6000:]
    assert "it has downloaded its ignition file" in done.stdout
    ignition = hashlib.sha256((site.folder / "worker.ign").read_bytes()).hexdigest()
    hyper.machine.wait("it is installed", lambda: f"{INSTALLED} {ignition}" in hyper.console("worker-0"), 120)
    assert "OVMF_CODE_4M.ms.fd" in hyper.machine.sh("tr '\\0' ' ' </proc/$(cat /run/libvirt/qemu/worker-0.pid)/cmdline")
