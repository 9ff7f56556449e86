# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines by libvirt on a machine of the rig: made, switched, changed, left alone and removed."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import DISK
from ansible_collections.hwaccel.gpu.tests.boot.rig.hypervisor import BRIDGE, NAT, Hypervisor
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

THEIRS = "/var/lib/libvirt/images/theirs.qcow2"
FOREIGN = f"""<domain type='qemu'><name>master-1</name><memory unit='MiB'>64</memory><os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='disk'><source file='{THEIRS}'/><target dev='vda'/></disk></devices></domain>"""
#: The cluster has answered, and has none of the machines.
NOT_JOINED = ("-e", json.dumps({"machine_boot_nodes": {"known": True, "names": []}}))
TEARDOWN = ("-e", "machine_boot_entry=teardown")


def machine(number: int, **changed: t.Any) -> dict[str, t.Any]:
    own = {"hwaccel_mac": f"52:54:00:99:01:{number:02x}", "hwaccel_address": f"10.99.0.{160 + number}", "hwaccel_firmware": "bios"}
    virtual = {"hwaccel_power_provider": "libvirt", "hwaccel_hypervisor": "hyper", "hwaccel_vm_bridge": BRIDGE}
    small = {"hwaccel_vm_memory": 256, "hwaccel_vm_vcpus": 1, "hwaccel_vm_disk": 1, "machine_boot_vm_small": ["master-0", "master-1", "master-2"]}
    return {**own, **virtual, **small, **changed}


@pytest.fixture(scope="module")
def installed(rig: BootRig) -> c.Iterator[Hypervisor]:
    made = Hypervisor.of(rig, "hyper")
    yield made
    rig.remove(made.machine)


@pytest.fixture
def hyper(installed: Hypervisor) -> c.Iterator[Hypervisor]:
    """Without virtual machines."""
    yield installed
    installed.clean()


@pytest.fixture
def run(rig: BootRig) -> c.Callable[..., Run]:
    def play(machines: dict[str, dict[str, t.Any]], *arguments: str, hypervisors: dict[str, dict[str, t.Any]] | None = None) -> Run:
        return rig.play("machine_boot", {"control_plane": machines, "hypervisors": {"hyper": {}, **(hypervisors or {})}}, *arguments)

    return play


def test_machines_are_made_and_started_once_and_the_second_run_changes_nothing(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    machines = {"master-0": machine(0), "master-1": machine(1, hwaccel_firmware="uefi", hwaccel_vm_secure_boot=True)}
    predicted = run(machines, "--check")
    assert predicted.rc == 0, predicted.stdout[-6000:]
    assert "would define the virtual machine: hypervisor hyper does not have it (256 MiB, 1 CPUs, 1 GiB, bridge br0)" in predicted.stdout
    assert "would power on: it is off" in predicted.stdout
    assert predicted.changed("master-0") == 1
    assert hyper.virsh("list", "--all", "--name") == ""

    done = run(machines)
    assert done.rc == 0, done.stdout[-6000:]
    assert [hyper.state(name) for name in machines] == ["running", "running"]
    definition = hyper.virsh("dumpxml", "--inactive", "master-0")
    for part in ("<domain type='qemu'>", "memory unit='KiB'>262144<", "52:54:00:99:01:00", "source bridge='br0'", "urn:hwaccel:gpu:machine_boot"):
        assert part in definition
    assert "Autostart:      enable" in hyper.virsh("dominfo", "master-0")
    assert "1.00 GiB" in hyper.virsh("domblkinfo", "master-0", "vda", "--human").replace("1.000 GiB", "1.00 GiB")
    # Secure Boot is enforced by the firmware that really runs.
    assert "OVMF_CODE_4M.ms.fd" in hyper.machine.sh("tr '\\0' ' ' </proc/$(cat /run/libvirt/qemu/master-1.pid)/cmdline")
    again = run(machines)
    assert (again.rc, again.changed()) == (0, 0), again.stdout[-6000:]


def test_power_goes_through_the_same_plan_and_a_change_waits_for_the_next_start(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    hyper.halting_disk("master-0")
    machines = {"master-0": machine(0)}
    made = run(machines)
    assert made.rc == 0, made.stdout[-6000:]
    assert "its disk /var/lib/libvirt/images/master-0.qcow2 is there already, and is taken as it is" in made.stdout
    hyper.machine.wait("it starts from its disk", lambda: DISK in hyper.console("master-0"))
    ran = hyper.virsh("domid", "master-0")
    refused = run(machines, "-e", "machine_boot_power=cycle")
    assert "no power cycle: whether it runs a node is not known (hyper)" in refused.failures_of("master-0")[-1]
    assert hyper.virsh("domid", "master-0") == ran

    larger = {"master-0": machine(0, hwaccel_vm_memory=320, hwaccel_vm_disk=2)}
    told = run(larger)
    assert told.rc == 0, told.stdout[-6000:]
    assert "change its definition: memory 256 to 320 MiB, from its next start" in told.stdout
    assert "its disk has 1 GiB, and not 2: disks are left as they are" in told.stdout
    assert (hyper.virsh("domid", "master-0"), told.changed() > 0) == (ran, True)
    assert "Max memory:     262144 KiB" in hyper.virsh("dominfo", "master-0")
    assert run(larger).changed() == 0

    cycled = run(larger, "-e", "machine_boot_power=cycle", "-e", "machine_boot_named=master-0")
    assert cycled.rc == 0, cycled.stdout[-6000:]
    assert hyper.virsh("domid", "master-0") != ran
    assert "Max memory:     327680 KiB" in hyper.virsh("dominfo", "master-0")


def test_a_machine_that_is_asked_to_end_and_does_not_has_its_time_before_its_power_is_cut(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    hyper.halting_disk("master-0")
    assert run({"master-0": machine(0)}).rc == 0
    off = run({"master-0": machine(0, machine_boot_power="off", machine_boot_shutdown_timeout=5)}, "-e", "machine_boot_named=master-0")
    assert off.rc == 0, off.stdout[-6000:]
    assert hyper.state("master-0") == "shut off"
    assert off.stdout.index("shut down: it is to be off, and has 5 s for it") < off.stdout.index("power off: only where it still runs after 5 s")
    assert max(task["seconds"] for task in off.tasks if task["name"].endswith("Ask it of itself and of the machine")) > 4


def test_faults_of_all_machines_and_hypervisors_are_told_at_once_and_nothing_is_made(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    hyper.machine.write("/srv/nat.xml", NAT)
    hyper.virsh("net-define", "/srv/nat.xml")
    hyper.virsh("net-start", "inner")
    hyper.machine.write("/srv/foreign.xml", FOREIGN)
    hyper.virsh("define", "/srv/foreign.xml")
    before = hyper.everything()
    machines = {
        "master-0": machine(0, hwaccel_vm_bridge="br9"), "master-1": machine(1), "master-2": machine(2, hwaccel_vm_bridge="virbr7", hwaccel_vm_pool="none"),
        "master-3": machine(3, hwaccel_vm_disk_path=THEIRS), "master-4": machine(4, hwaccel_mac="", hwaccel_hypervisor="lost"),
        "master-5": machine(5, hwaccel_vm_memory=4_000_000, hwaccel_vm_vcpus=4, hwaccel_vm_disk=1_000_000),
        "master-6": machine(6, hwaccel_vm_disk="big"),
    }  # fmt: skip
    done = run(machines)
    hyper.virsh("net-destroy", "inner")
    hyper.virsh("net-undefine", "inner")
    assert done.rc == 2
    told = "\n".join(done.failures)
    for expected in (
        "machine master-0: br9 is no bridge of its hypervisor (hyper): its bridges are br0, virbr7",
        "machine master-1: there is a virtual machine of this name that is not ours (hyper)",
        "machine master-2: bridge virbr7 is not on the machine network (hyper): it is that of libvirt's network inner (nat)",
        "machine master-2: its hypervisor has no pool none (hyper)",
        "machine master-3: 256 MiB of memory are too little: a master needs 16384",
        f"machine master-3: its disk {THEIRS} is that of master-1",
        "machine master-4: its hypervisor lost is no host of the group hypervisors",
        "machine master-4: it has no mac",
        "'big' is no whole number from 1 on (machine_boot_vm_disk)",
        "hypervisor hyper has too little memory for",
        "hypervisor hyper has too little room in",
    ):
        assert expected in told, told
    assert hyper.everything() == before


def test_a_hypervisor_that_is_gone_costs_its_machines_a_verdict_and_others_nothing(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    machines = {"master-0": machine(0, hwaccel_hypervisor="gone"), "master-1": machine(1)}
    done = run(machines, hypervisors={"gone": {"ansible_host": "10.99.0.251"}})
    # Ansible itself tells as well that it could not be reached.
    assert done.rc == 4, done.stdout[-6000:]
    assert "machine master-0: its hypervisor cannot be reached (gone)" in done.failures_of("master-0")[-1]
    assert done.failures_of("master-1") == []
    assert hyper.state("master-1") == "running"


def test_teardown_removes_what_is_ours_and_nothing_else(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    hyper.halting_disk("master-0")
    machines = {"master-0": machine(0), "master-2": machine(2, hwaccel_firmware="uefi", machine_boot_power="off")}
    assert run(machines).rc == 0
    assert [hyper.state(name) for name in machines] == ["running", "shut off"]
    hyper.machine.write("/srv/foreign.xml", FOREIGN)
    hyper.virsh("define", "/srv/foreign.xml")
    before = hyper.everything()

    refused = run({**machines, "master-1": machine(1)}, *TEARDOWN)
    assert "machine master-0: it is not removed: whether it runs a node is not known" in refused.failures_of("master-0")[-1]
    assert "machine master-1: there is a virtual machine of this name that is not ours" in refused.failures_of("master-1")[-1]
    predicted = run(machines, *TEARDOWN, *NOT_JOINED, "--check")
    assert predicted.rc == 0, predicted.stdout[-6000:]
    assert "would remove the virtual machine: its disk /var/lib/libvirt/images/master-0.qcow2 is left" in predicted.stdout
    assert (hyper.everything(), hyper.state("master-0")) == (before, "running")

    done = run(machines, *TEARDOWN, "-e", "machine_boot_named=master-0,master-2")
    assert done.rc == 0, done.stdout[-6000:]
    assert hyper.virsh("list", "--all", "--name") == "master-1"
    assert hyper.machine.sh("ls /var/lib/libvirt/images").split() == ["master-0.qcow2", "master-2.qcow2"]
    again = run(machines, *TEARDOWN, *NOT_JOINED)
    assert (again.rc, again.changed()) == (0, 0), again.stdout[-6000:]


@pytest.mark.slow
def test_disks_are_made_once_and_go_with_their_machines_where_that_is_asked_for(hyper: Hypervisor, run: c.Callable[..., Run]) -> None:
    hyper.virsh("pool-create-as", "fast", "dir", "--target", "/var/lib/libvirt/images")
    machines = {"master-0": machine(0, hwaccel_vm_pool="fast"), "master-1": machine(1)}
    made = run(machines, "-e", "machine_boot_power=off")
    assert made.rc == 0, made.stdout[-6000:]
    assert "source pool='fast' volume='master-0.qcow2'" in hyper.virsh("dumpxml", "--inactive", "master-0")
    assert hyper.machine.sh("ls /var/lib/libvirt/images").split() == ["master-0.qcow2", "master-1.qcow2"]
    assert run(machines, "-e", "machine_boot_power=off").changed() == 0
    gone = run(machines, *TEARDOWN, *NOT_JOINED, "-e", "machine_boot_remove_disks=true")
    assert gone.rc == 0, gone.stdout[-6000:]
    assert hyper.machine.sh("ls /var/lib/libvirt/images").split() == []
    assert hyper.virsh("list", "--all", "--name") == ""
    hyper.virsh("pool-destroy", "fast")
