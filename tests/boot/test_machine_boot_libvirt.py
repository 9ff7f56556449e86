# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines by libvirt on a machine of the rig: made, switched, changed, left alone and removed; and one that this machine reaches by IPMI.

Each run has all machines that are due, as a start of ansible-playbook costs as much as several machines in it: what the role does with one is of no
other. Tests stand in the order of the runs, and each looks at what the run of its fixture has left.
"""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.computer import DISK
from ansible_collections.hwaccel.gpu.tests.boot.rig.hypervisor import BRIDGE, NAT, Hypervisor
from ansible_collections.hwaccel.gpu.tests.boot.rig.ipmi import DEAF, Chassis
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

Machines = dict[str, dict[str, t.Any]]

THEIRS = "/var/lib/libvirt/images/theirs.qcow2"
FOREIGN = f"""<domain type='qemu'><name>master-1</name><memory unit='MiB'>64</memory><os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='disk'><source file='{THEIRS}'/><target dev='vda'/></disk></devices></domain>"""
#: The cluster has answered, and has none of the machines.
NOT_JOINED = ("-e", json.dumps({"machine_boot_nodes": {"known": True, "names": []}}))
TEARDOWN = ("-e", "machine_boot_entry=teardown")
#: One that may have little memory is no master-3.
SMALL = [f"master-{number}" for number in (0, 1, 2, 4, 5, 6, 7)]
PASSWORD = "planted-0815-secret"
OFF = {"machine_boot_power": "off"}


def machine(number: int, **changed: t.Any) -> dict[str, t.Any]:
    own = {
        "hwaccel_mac": f"52:54:00:99:01:{number:02x}",
        "hwaccel_address": f"10.99.0.{160 + number}",
        "hwaccel_firmware": "bios",
    }
    virtual = {"hwaccel_power_provider": "libvirt", "hwaccel_hypervisor": "hyper", "hwaccel_vm_bridge": BRIDGE}
    small = {"hwaccel_vm_memory": 256, "hwaccel_vm_vcpus": 1, "hwaccel_vm_disk": 1, "machine_boot_vm_small": SMALL}
    return {**own, **virtual, **small, **changed}


@pytest.fixture(scope="module")
def hyper(rig: BootRig) -> c.Iterator[Hypervisor]:
    made = Hypervisor.of(rig, "hyper")
    yield made
    rig.remove(made.machine)


@pytest.fixture(scope="module")
def chassis(hyper: Hypervisor) -> Chassis:
    return Chassis(hyper.machine, PASSWORD)


@pytest.fixture(scope="module")
def run(rig: BootRig) -> c.Callable[..., Run]:
    def play(
        machines: Machines, *arguments: str, workers: Machines | None = None, hypervisors: Machines | None = None
    ) -> Run:
        groups = {
            "control_plane": machines,
            "workers": workers or {},
            "hypervisors": {"hyper": {}, **(hypervisors or {})},
        }
        return rig.play("machine_boot", groups, *arguments)

    return play


@pytest.fixture(scope="module")
def workers(chassis: Chassis) -> Machines:
    """By IPMI: the first one is as it is to be."""
    common = {
        "machine_boot_from": "hyper",
        "machine_boot_bmc_retries": 0,
        "machine_boot_bmc_timeout": 6,
        **chassis.variables(),
    }
    changed = (
        {},
        {"hwaccel_bmc_password": "wrong", "hwaccel_bmc_system": "1"},
        {"hwaccel_bmc_address": f"127.0.0.1:{DEAF}"},
    )
    return {
        f"worker-{number}": {
            **common,
            "hwaccel_mac": f"52:54:00:77:00:1{number}",
            "hwaccel_address": f"10.77.0.1{number}",
            **own,
        }
        for number, own in enumerate(changed)
    }


#: Their disks are made.
NEW = {"master-0": machine(0), "master-1": machine(1, hwaccel_firmware="uefi", hwaccel_vm_secure_boot=True)}
LARGER = {"master-2": machine(2, hwaccel_vm_memory=320, hwaccel_vm_disk=2)}
REMOVED = {"master-5": machine(5), "master-6": machine(6, hwaccel_firmware="uefi", **OFF)}


@pytest.fixture(scope="module")
def predicted(hyper: Hypervisor, workers: Machines, run: c.Callable[..., Run]) -> Run:
    return run(NEW, "--check", workers=first(workers))


@pytest.fixture(scope="module")
def made(predicted: Run, workers: Machines, run: c.Callable[..., Run]) -> Run:
    return run(NEW, "-vvv", workers=workers)


@pytest.fixture(scope="module")
def again(made: Run, workers: Machines, run: c.Callable[..., Run]) -> Run:
    return run(NEW, workers=first(workers))


@pytest.fixture(scope="module")
def halting(again: Run, hyper: Hypervisor, run: c.Callable[..., Run]) -> Run:
    """With disks from which they start, and halt: others take a processor each."""
    hyper.remove(*NEW)
    for name in ("master-2", "master-4", "master-5"):
        hyper.halting_disk(name)
    machines = {
        "master-2": machine(2),
        "master-4": machine(4),
        **REMOVED,
        "master-7": machine(7, hwaccel_hypervisor="gone"),
    }
    return run(machines, hypervisors={"gone": {"ansible_host": "10.99.0.251"}})


@pytest.fixture(scope="module")
def started(halting: Run, hyper: Hypervisor) -> str:
    """What master-2 is known by as long as it runs."""
    hyper.machine.wait("it starts from its disk", lambda: DISK in hyper.console("master-2"))
    return hyper.virsh("domid", "master-2")


@pytest.fixture(scope="module")
def switched(started: str, run: c.Callable[..., Run]) -> Run:
    machines = {
        "master-2": machine(2, machine_boot_power="cycle"),
        "master-4": machine(4, machine_boot_shutdown_timeout=5, **OFF),
    }
    return run(machines, "-e", "machine_boot_named=master-4")


@pytest.fixture(scope="module")
def changed(switched: Run, workers: Machines, run: c.Callable[..., Run]) -> Run:
    return run(LARGER, "-e", "machine_boot_named=worker-0", workers={"worker-0": {**workers["worker-0"], **OFF}})


def first(workers: Machines) -> Machines:
    return {"worker-0": workers["worker-0"]}


def failed(run: Run, *names: str) -> list[str]:
    return [failure for name in names for failure in run.failures_of(name)]


def test_check_mode_tells_what_would_be_made_and_makes_nothing(
    hyper: Hypervisor, chassis: Chassis, predicted: Run
) -> None:
    assert predicted.rc == 0, predicted.stdout[-6000:]
    assert (
        "would define the virtual machine: hypervisor hyper does not have it (256 MiB, 1 CPUs, 1 GiB, bridge br0)"
        in predicted.shown("master-0")
    )
    assert "would power on: it is off" in predicted.shown("master-0")
    assert predicted.changed("master-0") == 1
    assert hyper.virsh("list", "--all", "--name") == ""
    assert chassis.asked() == []


def test_machines_are_made_and_started(hyper: Hypervisor, made: Run) -> None:
    assert failed(made, *NEW) == [], made.stdout[-6000:]
    assert [hyper.state(name) for name in NEW] == ["running", "running"]
    definition = hyper.virsh("dumpxml", "--inactive", "master-0")
    for part in (
        "<domain type='qemu'>",
        "memory unit='KiB'>262144<",
        "52:54:00:99:01:00",
        "source bridge='br0'",
        "urn:hwaccel:gpu:machine_boot",
    ):
        assert part in definition
    assert "Autostart:      enable" in hyper.virsh("dominfo", "master-0")
    assert "1.00 GiB" in hyper.virsh("domblkinfo", "master-0", "vda", "--human").replace("1.000 GiB", "1.00 GiB")
    # Secure Boot is enforced by the firmware that really runs.
    assert "OVMF_CODE_4M.ms.fd" in hyper.machine.sh("tr '\\0' ' ' </proc/$(cat /run/libvirt/qemu/master-1.pid)/cmdline")


def test_a_machine_is_switched_by_ipmi_and_what_goes_wrong_is_told(chassis: Chassis, made: Run) -> None:
    assert PASSWORD not in made.stdout
    assert made.failures_of("worker-0") == []
    assert chassis.asked() == ["boot pxe", "power 1"]
    assert "its BMC refuses the credentials" in made.failures_of("worker-1")[-1]
    assert "its BMC does not answer in time" in made.failures_of("worker-2")[-1]


def test_the_second_run_changes_nothing(chassis: Chassis, again: Run) -> None:
    for name in (*NEW, "worker-0"):
        assert (again.failures_of(name), again.changed(name)) == ([], 0), again.stdout[-6000:]
    assert chassis.asked() == ["boot pxe", "power 1"]


def test_a_hypervisor_that_is_gone_costs_its_machines_a_verdict_and_others_nothing(
    hyper: Hypervisor, halting: Run
) -> None:
    # Ansible itself tells as well that it could not be reached.
    assert halting.rc == 4, halting.stdout[-6000:]
    assert "machine master-7: its hypervisor cannot be reached (gone)" in halting.failures_of("master-7")[-1]
    assert halting.failures_of("master-2") == []
    assert hyper.state("master-2") == "running"


def test_a_disk_that_is_there_is_taken_as_it_is(halting: Run) -> None:
    assert halting.failures_of("master-2") == [], halting.stdout[-6000:]
    assert "its disk /var/lib/libvirt/images/master-2.qcow2 exists already and is used unchanged" in halting.shown(
        "master-2"
    )


def test_a_machine_that_may_run_a_node_keeps_its_power(hyper: Hypervisor, started: str, switched: Run) -> None:
    assert "no power cycle: it is unknown whether it runs a node (hyper)" in switched.failures_of("master-2")[-1]
    assert hyper.virsh("domid", "master-2") == started


def test_a_machine_that_is_asked_to_end_and_does_not_has_its_time_before_its_power_is_cut(
    hyper: Hypervisor, switched: Run
) -> None:
    assert switched.failures_of("master-4") == [], switched.stdout[-6000:]
    assert hyper.state("master-4") == "shut off"
    told = switched.shown("master-4")
    assert told.index("shut down: off is requested, within 5 s") < told.index(
        "power off: only if it is still on after 5 s"
    )
    asked = [
        task["seconds"]
        for task in switched.tasks
        if task["host"] == "master-4" and task["name"].endswith("power | Observe the machine, act and confirm")
    ]
    assert max(asked) > 4


def test_a_machine_is_shut_down_by_ipmi(chassis: Chassis, changed: Run) -> None:
    assert changed.rc == 0, changed.stdout[-6000:]
    assert chassis.asked() == ["boot pxe", "power 1", "shutdown 1"], "its power was not cut"


def test_a_change_waits_for_the_next_start(
    hyper: Hypervisor, started: str, changed: Run, run: c.Callable[..., Run]
) -> None:
    assert changed.rc == 0, changed.stdout[-6000:]
    assert "change its definition: memory 256 to 320 MiB, effective at its next start" in changed.shown("master-2")
    assert "its disk has 1 GiB instead of 2: disks are not changed" in changed.shown("master-2")
    assert (hyper.virsh("domid", "master-2"), changed.changed("master-2") > 0) == (started, True)
    assert "Max memory:     262144 KiB" in hyper.virsh("dominfo", "master-2")
    assert run(LARGER).changed() == 0

    cycled = run(LARGER, "-e", "machine_boot_power=cycle", "-e", "machine_boot_named=master-2")
    assert cycled.rc == 0, cycled.stdout[-6000:]
    assert hyper.virsh("domid", "master-2") != started
    assert "Max memory:     327680 KiB" in hyper.virsh("dominfo", "master-2")


def test_teardown_removes_what_is_ours_and_nothing_else(
    hyper: Hypervisor, changed: Run, halting: Run, run: c.Callable[..., Run]
) -> None:
    hyper.remove("master-2", "master-4")
    assert failed(halting, *REMOVED) == []
    assert [hyper.state(name) for name in REMOVED] == ["running", "shut off"]
    hyper.machine.write("/srv/foreign.xml", FOREIGN)
    hyper.virsh("define", "/srv/foreign.xml")
    before = hyper.everything()

    refused = run({**REMOVED, "master-1": machine(1)}, *TEARDOWN)
    assert (
        "machine master-5: it cannot be removed: it is unknown whether it runs a node"
        in refused.failures_of("master-5")[-1]
    )
    assert (
        "machine master-1: a virtual machine of this name exists that does not belong to this machine"
        in refused.failures_of("master-1")[-1]
    )
    predicted = run(REMOVED, *TEARDOWN, *NOT_JOINED, "--check")
    assert predicted.rc == 0, predicted.stdout[-6000:]
    assert (
        "would remove the virtual machine: its disk /var/lib/libvirt/images/master-5.qcow2 is kept" in predicted.stdout
    )
    assert (hyper.everything(), hyper.state("master-5")) == (before, "running")

    done = run(REMOVED, *TEARDOWN, "-e", "machine_boot_named=master-5,master-6")
    assert done.rc == 0, done.stdout[-6000:]
    assert hyper.virsh("list", "--all", "--name") == "master-1"
    assert hyper.machine.sh("ls /var/lib/libvirt/images").split() == ["master-5.qcow2", "master-6.qcow2"]
    gone = run(REMOVED, *TEARDOWN, *NOT_JOINED)
    assert (gone.rc, gone.changed()) == (0, 0), gone.stdout[-6000:]


@pytest.fixture
def empty(hyper: Hypervisor) -> c.Iterator[Hypervisor]:
    """Without virtual machines."""
    hyper.clean()
    yield hyper
    hyper.clean()


def test_faults_of_all_machines_and_hypervisors_are_told_at_once_and_nothing_is_made(
    empty: Hypervisor, run: c.Callable[..., Run]
) -> None:
    empty.machine.write("/srv/nat.xml", NAT)
    empty.virsh("net-define", "/srv/nat.xml")
    empty.virsh("net-start", "inner")
    empty.machine.write("/srv/foreign.xml", FOREIGN)
    empty.virsh("define", "/srv/foreign.xml")
    before = empty.everything()
    machines = {
        "master-0": machine(0, hwaccel_vm_bridge="br9"),
        "master-1": machine(1),
        "master-2": machine(2, hwaccel_vm_bridge="virbr7", hwaccel_vm_pool="none"),
        "master-3": machine(3, hwaccel_vm_disk_path=THEIRS),
        "master-4": machine(4, hwaccel_mac="", hwaccel_hypervisor="lost"),
        "master-5": machine(5, hwaccel_vm_memory=4_000_000, hwaccel_vm_vcpus=4, hwaccel_vm_disk=1_000_000),
        "master-6": machine(6, hwaccel_vm_disk="big"),
    }
    done = run(machines)
    empty.virsh("net-destroy", "inner")
    empty.virsh("net-undefine", "inner")
    assert done.rc == 2
    told = "\n".join(done.failures)
    for expected in (
        "machine master-0: br9 is not a bridge of its hypervisor (hyper): its bridges are br0, virbr7",
        "machine master-1: a virtual machine of this name exists that does not belong to this machine (hyper)",
        "machine master-2: bridge virbr7 is not on the machine network (hyper): it belongs to libvirt's network inner (nat)",
        "machine master-2: its hypervisor has no pool none (hyper)",
        "machine master-3: 256 MiB of memory are not enough: a master needs 16384",
        f"machine master-3: its disk {THEIRS} belongs to master-1",
        "machine master-4: its hypervisor lost is not a host of the group hypervisors",
        "machine master-4: it has no mac",
        "'big' is not a whole number of 1 or more (machine_boot_vm_disk)",
        "hypervisor hyper has too little memory for",
        "hypervisor hyper has too little space in",
    ):
        assert expected in told, told
    assert empty.everything() == before


@pytest.mark.slow
def test_disks_are_made_once_and_go_with_their_machines_where_that_is_asked_for(
    empty: Hypervisor, run: c.Callable[..., Run]
) -> None:
    empty.virsh("pool-create-as", "fast", "dir", "--target", "/var/lib/libvirt/images")
    machines = {"master-0": machine(0, hwaccel_vm_pool="fast"), "master-1": machine(1)}
    made = run(machines, "-e", "machine_boot_power=off")
    assert made.rc == 0, made.stdout[-6000:]
    assert "source pool='fast' volume='master-0.qcow2'" in empty.virsh("dumpxml", "--inactive", "master-0")
    assert empty.machine.sh("ls /var/lib/libvirt/images").split() == ["master-0.qcow2", "master-1.qcow2"]
    assert run(machines, "-e", "machine_boot_power=off").changed() == 0
    gone = run(machines, *TEARDOWN, *NOT_JOINED, "-e", "machine_boot_remove_disks=true")
    assert gone.rc == 0, gone.stdout[-6000:]
    assert empty.machine.sh("ls /var/lib/libvirt/images").split() == []
    assert empty.virsh("list", "--all", "--name") == ""
    empty.virsh("pool-destroy", "fast")
