# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines: what is wrong with them, what is done with them, and what of their definitions is changed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t
from xml.etree import ElementTree

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import machines
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import domain, hypervisor, request, run, vm
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot.power import RESUMED, Power

VM: dict[str, t.Any] = {
    "hypervisor": "hyper",
    "known": True,
    "memory": "",
    "vcpus": "",
    "disk": "",
    "path": "",
    "pool": "",
    "bridge": "br0",
    "secure_boot": False,
    "small": False,
    "found": {},
}
GOOD: dict[str, t.Any] = {
    "name": "master-0",
    "cluster": "ocp",
    "role": "master",
    "address": "10.77.0.11",
    "mac": "52:54:00:77:00:11",
    "firmware": "bios",
    "architecture": "x86_64",
    "provider": "libvirt",
    "boot": "network",
    "power": "on",
    "named": False,
    "logs": True,
    "http": False,
    "media": "",
    "nodes": ["master-0"],
    "vm": VM,
    "bmc": {"address": "", "username": "", "has_password": False, "system": "", "verify": True},
}
CAPABILITIES = """<domainCapabilities><domain>{kind}</domain><os supported='yes'><enum name='firmware'>{efi}</enum><loader supported='yes'>
<enum name='secure'><value>no</value>{secure}</enum></loader></os><cpu><mode name='host-passthrough' supported='{passthrough}'/></cpu></domainCapabilities>"""
NETWORK = "<network><name>default</name><forward mode='nat'/><bridge name='virbr0'/></network>"
CLOSED = "<network><name>closed</name><bridge name='virbr1'/></network>"
LOGICAL = "<pool type='logical'><name>fast</name><available>500000000000</available></pool>"
SCRIPT = pathlib.Path(__file__).resolve().parents[4] / "roles" / "machine_boot" / "files" / "hypervisor.sh"
NOT_THERE = {"known": True, "names": []}
THERE = {"known": True, "names": ["master-0"]}
VERSIONS = {"community.libvirt": "2.0.0"}


def answer(
    definition: str = "",
    state: str = "",
    autostart: str = "enable",
    disk: int = 0,
    written: int | str = 0,
    kind: str = "kvm",
    efi: bool = True,
    secure: bool = True,
    memory: int = 64 * 1024,
    room: int = 500,
    users: str = "",
    pool: str = "",
    lacking: str = "",
    refused: str = "",
) -> dict[str, t.Any]:
    """What the script prints on a hypervisor."""
    told = CAPABILITIES.format(
        kind=kind,
        efi="<value>efi</value>" * efi,
        secure="<value>yes</value>" * secure,
        passthrough="yes" if kind == "kvm" else "no",
    )
    parts = {"lacking": lacking, "refused": refused}
    if not lacking and not refused:
        parts |= {
            "capabilities": told,
            "bridges": "br0\nvirbr0\nvirbr1",
            "network": NETWORK,
            "memory": str(memory * 1024),
            "users": users,
        }
        parts |= {"definition": definition, "state": state, "autostart": autostart} if definition else {}
        parts |= {"volume": "master-0.qcow2" if "'dir'" in pool else "master-0"} if pool else {}
        parts["pool" if pool else "room"] = pool or f"/dev/vda1 1000 500 {room * 1024**2} 50% /var/lib/libvirt"
        parts |= {"image": f'{{"virtual-size": {disk * 1024**3}}}', "written": str(written)} if disk else {}
    text = "".join(f"\n== {name}\n{content}\n" for name, content in parts.items())
    return {"rc": 0, "stdout": text + f"\n== network\n{CLOSED}\n"}


def entry(**changed: t.Any) -> dict[str, t.Any]:
    return {
        **GOOD,
        **{key: value for key, value in changed.items() if key not in VM},
        "vm": {**VM, **{key: changed[key] for key in changed if key in VM}},
    }


def told(*entries: dict[str, t.Any]) -> list[str]:
    return [str(fault) for fault in request.faults(entries, VERSIONS)]


def planned(looked: dict[str, t.Any], nodes: dict[str, t.Any] | None = None, **changed: t.Any) -> dict[str, t.Any]:
    return run.planned(entry(**changed), looked, NOT_THERE if nodes is None else nodes, False)


def defined(**changed: t.Any) -> str:
    """As libvirt would have it after it was made."""
    one = request.read(entry(**changed))
    assert one.vm
    return domain.made(one.machine, one.vm, hypervisor.read(answer()))


def texts(made: dict[str, t.Any]) -> list[str]:
    return [step["text"] for step in made["steps"]]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"hypervisor": ""}, "it has no hypervisor. Next: set hwaccel_hypervisor"),
        ({"known": False}, "its hypervisor hyper is not a host of the group hypervisors"),
        ({"mac": ""}, "it has no mac. Next: set hwaccel_mac"),
        ({"firmware": ""}, "it has no firmware. Next: set hwaccel_firmware"),
        ({"architecture": "aarch64"}, "virtual machines of aarch64 are not supported"),
        ({"secure_boot": True}, "Secure Boot needs UEFI"),
        ({"bridge": ""}, "it has no bridge. Next: set hwaccel_vm_bridge"),
        ({"path": "/a", "pool": "b"}, "its disk is both at a path and in a pool"),
        ({"path": "a.qcow2"}, "the path of its disk a.qcow2 is not absolute"),
        ({"boot": "media", "media": "http://a/b.iso"}, "virtual machines support only PXE boot"),
        ({"http": True}, "virtual machines support only PXE boot"),
        (
            {"memory": "lots"},
            "its memory lots is not a size. Next: set hwaccel_vm_memory to a whole number, MiB of memory",
        ),
        (
            {"memory": 16383},
            "16383 MiB of memory are not enough: a master needs 16384. Next: set hwaccel_vm_memory to 16384 or more, or",
        ),
        ({"vcpus": "3"}, "3 virtual CPUs are not enough: a master needs 4"),
        ({"disk": 99}, "99 GiB of disk are not enough: a master needs 100"),
        ({"found": answer(lacking="virsh\npython3-lxml")}, "hypervisor hyper lacks virsh, python3-lxml"),
        (
            {"found": answer(), "bridge": "eth0"},
            "eth0 is not a bridge of its hypervisor (hyper): its bridges are br0, virbr0, virbr1",
        ),
        (
            {"found": answer(), "bridge": "virbr0"},
            "bridge virbr0 is not on the machine network (hyper): it belongs to libvirt's network default (nat)",
        ),
        ({"found": answer(), "bridge": "virbr1"}, "it belongs to libvirt's network closed (isolated)"),
        ({"found": answer(efi=False), "firmware": "uefi"}, "its hypervisor has no UEFI (hyper)"),
        (
            {"found": answer(secure=False), "firmware": "uefi", "secure_boot": True},
            "its hypervisor has no UEFI with Secure Boot",
        ),
        (
            {"found": answer("<domain><name>master-0</name></domain>")},
            "a virtual machine of this name exists that does not belong to this machine (hyper): this collection has not created it, so it is not changed",
        ),
        (
            {"found": answer(defined(cluster="other"))},
            "that does not belong to this machine (hyper): it belongs to cluster other, so it is not changed",
        ),
        ({"found": answer(defined(firmware="uefi"))}, "its firmware is uefi, which cannot be changed"),
        (
            {"found": answer(users="/var/lib/libvirt/images/master-0.qcow2\tweb server")},
            "its disk /var/lib/libvirt/images/master-0.qcow2 belongs to web",
        ),
        (
            {"found": {**answer(), "stdout": answer()["stdout"].replace("/dev/vda1", "")}, "pool": "fast"},
            "its hypervisor has no pool fast (hyper)",
        ),
        (
            {"found": answer(memory=16000)},
            "hypervisor hyper has too little memory for master-0: they need 16384 MiB, and 16000 MiB are free",
        ),
        (
            {"found": answer(room=99)},
            "too little space in /var/lib/libvirt for the disks of master-0: they need 100 GiB, and 99 GiB are free",
        ),
    ],
)
def test_what_is_wrong_with_a_virtual_machine_is_told_with_the_next_step(
    changed: dict[str, t.Any], expected: str
) -> None:
    (fault,) = told(entry(**changed))
    assert expected in fault
    assert ". Next: " in fault


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"found": answer()},
        {"memory": 512, "small": True},
        {"memory": 8192, "vcpus": 2, "role": "worker"},
        {"memory": 16384, "role": "bootstrap"},
        {"found": {"unreachable": True, "msg": "no route"}},
        {"found": answer(refused="error: Failed to connect socket")},
        {"found": answer(memory=10), "power": "off"},
        {"found": answer(defined(), "running", memory=10, disk=100, room=1)},
        {"found": answer(users="/var/lib/libvirt/images/master-0.qcow2\tmaster-0")},
    ],
)
def test_nothing_is_wrong_with(changed: dict[str, t.Any]) -> None:
    assert told(entry(**changed)) == []


def test_faults_of_machines_of_one_hypervisor_are_told_together() -> None:
    found = answer(memory=40000, room=250)
    others = [
        entry(name=f"master-{n}", address=f"10.77.0.2{n}", mac=f"52:54:00:77:00:2{n}", found=found) for n in range(3)
    ]
    assert [fault.partition(" has ")[2].partition(". Next")[0] for fault in told(*others)] == [
        "too little memory for master-0, master-1, master-2: they need 49152 MiB, and 40000 MiB are free",
        "too little space in /var/lib/libvirt for the disks of master-0, master-1, master-2: they need 300 GiB, and 250 GiB are free",
    ]
    same = [
        entry(
            name=f"master-{n}",
            address=f"10.77.0.2{n}",
            mac=f"52:54:00:77:00:2{n}",
            found=answer(),
            path="/srv/one.qcow2",
        )
        for n in range(2)
    ]
    assert "2 machines have the disk /srv/one.qcow2 (hyper): master-0, master-1" in told(*same)[0]
    lacking = [{**one, "vm": {**one["vm"], "found": answer(lacking="virsh")}} for one in others]
    assert len(told(*lacking)) == 1


def test_what_a_hypervisor_has_against_a_machine_is_told_with_what_its_variables_have() -> None:
    found = told(
        entry(memory=512, bridge="br7", disk="big", found=answer(users="/var/lib/libvirt/images/master-0.qcow2\tweb"))
    )
    expected = (
        "512 MiB of memory are not enough",
        "its disk big is not a size",
        "br7 is not a bridge",
        "master-0.qcow2 belongs to web",
    )
    assert len(found) == len(expected) and all(part in fault for part, fault in zip(expected, found, strict=True)), (
        found
    )


def test_the_collection_is_asked_for_by_virtual_machines_alone() -> None:
    assert "need the collection community.libvirt: it is not installed" in str(request.faults([GOOD], {})[0])
    bmc = {"address": "10.9.0.11", "username": "admin", "has_password": True, "system": "", "verify": True}
    assert request.faults([{**GOOD, "provider": "ipmi", "bmc": bmc}], {}) == []


@pytest.mark.parametrize(
    ("changed", "kind", "cpu", "form"),
    [
        ({}, "kvm", "host-passthrough", "qcow2"),
        ({"firmware": "uefi", "secure_boot": True, "pool": "fast"}, "qemu", "maximum", "raw"),
    ],
)
def test_a_definition_has_what_is_wanted(changed: dict[str, t.Any], kind: str, cpu: str, form: str) -> None:
    made = planned(answer(kind=kind, pool=LOGICAL if changed else ""), **changed)
    assert texts(made) == [
        "define the virtual machine: hypervisor hyper does not have it (16384 MiB, 4 CPUs, 100 GiB, bridge br0)",
        "power on: it is off",
    ]
    assert made["messages"] == ["it starts from the network once"]
    top = ElementTree.fromstring(made["steps"][0]["give"]["xml"])
    assert (top.get("type"), top.find("cpu").get("mode"), top.findtext("memory"), top.findtext("vcpu")) == (
        kind,
        cpu,
        "16384",
        "4",
    )
    assert (top.find("os").get("firmware"), top.find("features/smm") is not None) == (
        ("efi", True) if changed else (None, False)
    )
    assert (top.find("devices/interface/rom") is not None) == bool(changed)
    assert [top.find(f"devices/{device}/boot").get("order") for device in ("disk", "interface")] == ["1", "2"]
    assert top.find("devices/disk/driver").get("type") == form
    assert top.find("devices/interface").get("type") == "bridge"
    create = made["steps"][0]["give"]["create"]
    assert create == (
        ["virsh", "-c", "qemu:///system", "vol-create-as", "fast", "master-0", "100G", "--format", "raw"]
        if changed
        else ["qemu-img", "create", "-q", "-f", "qcow2", "/var/lib/libvirt/images/master-0.qcow2", "100G"]
    )
    assert planned(answer(made["steps"][0]["give"]["xml"], "shut off", disk=100), **changed)["faults"] == []
    assert defined() == defined()


def test_a_disk_that_is_there_is_taken_and_not_made() -> None:
    made = planned(answer(disk=100, written=1))
    assert "create" not in made["steps"][0]["give"]
    assert "exists already and is used unchanged" in made["messages"][0]


@pytest.mark.parametrize(
    ("written", "started", "told"),
    [
        ("0", True, "it starts from the network once"),
        ("512", False, "its disk is not empty"),
        ("unknown", False, "it is unknown whether its disk is empty"),
    ],
)
def test_a_volume_that_is_no_file_is_found_again(written: str, started: bool, told: str) -> None:
    before = answer(pool=LOGICAL)
    (define, _power) = planned(before, pool="fast")["steps"]
    after = answer(define["give"]["xml"], "shut off", pool=LOGICAL, disk=100, written=written)
    made = planned(after, pool="fast")
    assert (texts(made), made["started"]) == (["power on: it is off"], started)
    assert told in made["messages"][0]
    # Its room is taken already.
    full = LOGICAL.replace("500000000000", "0")
    assert "too little space in pool fast" in str(
        request.faults([entry(pool="fast", found=answer(pool=full))], VERSIONS)
    )
    assert (
        request.faults(
            [entry(pool="fast", found=answer(define["give"]["xml"], "shut off", pool=full, disk=100, written=written))],
            VERSIONS,
        )
        == []
    )


#: In the place of virsh: a pool, and a volume in it whose path is a device, a file, or none that can be read here.
VIRSH = """#!/bin/sh
case "$*" in
"uri" | "domcapabilities"* | "net-list"* | "list"*) ;;
"dominfo"*) exit 1 ;;
"pool-dumpxml fast") printf "<pool type='%s'>\n  <name>fast</name>\n</pool>\n" "$TYPE" ;;
"vol-dumpxml --pool fast $VOLUME") printf "<volume>\n  <capacity unit='bytes'>107374182400</capacity>\n</volume>\n" ;;
"vol-path --pool fast $VOLUME") echo "$DISK" ;;
*) exit 1 ;;
esac
"""
IMAGE_TOOL = """#!/bin/sh
echo '[{ "start": 0, "data": true}]'
"""


@pytest.mark.parametrize(
    ("kind", "volume", "disk", "written"),
    [
        ("logical", "master-0", "/dev/zero", "0"),
        ("logical", "master-0", "/dev/urandom", "4"),
        ("rbd", "master-0", "images/master-0", "unknown"),
        ("dir", "master-0.qcow2", __file__, "1"),
        ("logical", "other", "/dev/zero", ""),
        ("dir", "master-0", __file__, ""),
    ],
)
def test_the_script_finds_the_volume_that_would_be_made(
    tmp_path: pathlib.Path, kind: str, volume: str, disk: str, written: str
) -> None:
    for name, text in (("virsh", VIRSH), ("qemu-img", IMAGE_TOOL)):
        (tmp_path / name).write_text(text, encoding="ascii")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TYPE": kind, "VOLUME": volume, "DISK": disk}
    command = ["sh", str(SCRIPT), "true", "master-0", "/no/matter", "fast"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"== volume\nmaster-0{'.qcow2' if kind == 'dir' else ''}\n" in said
    assert ('== image\n{"virtual-size": 107374182400}\n' in said) is bool(written)
    told = said.partition("== written\n")[2].strip()
    assert told.startswith(written) if written == "4" else told == written


def test_a_change_keeps_what_somebody_has_added_and_applies_at_the_next_start() -> None:
    added = (
        defined()
        .replace("<devices>", "<devices><watchdog model='itco'/>")
        .replace("</metadata>", "<x:y xmlns:x='urn:x'/></metadata>")
    )
    running = answer(added, "running", disk=100, written=1, autostart="disable")
    made = planned(running, memory=32768, vcpus=8, bridge="br1")
    assert texts(made) == [
        "change its definition: memory 16384 to 32768 MiB, virtual CPUs 4 to 8, bridge br0 to br1, "
        "it does not start with its hypervisor, effective at its next start",
    ]
    (give,) = [step["give"] for step in made["steps"]]
    assert set(give) == {"xml"}
    top = ElementTree.fromstring(give["xml"])
    assert top.find("devices/watchdog") is not None and top.find("metadata/{urn:x}y") is not None
    after = answer(give["xml"], "running", disk=100, written=1)
    assert texts(planned(after, memory=32768, vcpus=8, bridge="br1")) == []


def test_a_disk_is_never_made_anew_nor_smaller() -> None:
    made = planned(answer(defined(), "running", disk=100, written=1), disk=200)
    assert (made["steps"], made["messages"][0]) == ([], "its disk has 100 GiB instead of 200: disks are not changed")
    made = planned(answer(defined(), "running", disk=0), path="/srv/other.qcow2")
    assert made["steps"] == [] and "instead of /srv/other.qcow2: disks are not changed" in made["messages"][0]


def test_after_its_installation_a_machine_starts_from_its_disk_until_it_is_named() -> None:
    empty, full = answer(defined(), "shut off", disk=100), answer(defined(), "shut off", disk=100, written=7)
    assert texts(planned(empty)) == ["power on: it is off"]
    made = planned(full)
    # Logs of the network tell nothing of a start from the disk.
    assert (planned(empty)["started"], made["started"], planned(full, named=True)["started"]) == (True, False, True)
    assert texts(made) == ["power on: it is off"]
    assert "its disk is not empty: it starts from its disk" in made["messages"][0]
    assert "-e machine_boot_named=master-0" in made["messages"][0]

    named = planned(full, named=True)
    assert texts(named) == [
        "start from the network once: network is requested, before it was disk",
        "power on: it is off",
    ]
    # By whom it was started from the network, it is started from its disk afterwards.
    assert (named["ends"], made["ends"], planned(empty)["ends"]) == (True, False, False)
    once = named["steps"][0]["give"]["xml"]
    assert domain.begins_by_network(once) and "<on_reboot>destroy</on_reboot>" in once
    # The run that told it may have been killed before it has taken it back.
    (back,) = planned(answer(once, "running", disk=100, written=7))["back"]
    assert not domain.begins_by_network(back["give"]["xml"]) and "<on_reboot>restart</on_reboot>" in back["give"]["xml"]
    assert texts(planned(answer(once, "shut off", disk=100, written=7))) == [
        "start from its disk: disk is requested, before it was network",
        "power on: it is off",
    ]
    assert planned(answer(defined(), "running", disk=100, written=7))["back"] == []


class Hypervisor:
    """Of a machine that is off after a while. Nothing waits for its clock."""

    retries, time = 0, 0.0

    def __init__(self, definition: str, ends: float) -> None:
        self.definition, self.ends, self.taken = definition, ends, []

    def open(self) -> str:
        return ""

    def close(self) -> None:
        pass

    def transient(self, _observed: dict[str, t.Any]) -> bool:
        return False

    def observe(self) -> dict[str, t.Any]:
        runs = self.taken[-1:] == [["running"]] or self.time < self.ends
        return answer(self.definition, "running" if runs else "shut off", disk=100, written=7)

    def take(self, planned: dict[str, t.Any]) -> None:
        give = planned["give"]
        self.definition = give.get("xml", self.definition)
        self.taken.append(give.get("states") or ["disk"])

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_a_machine_that_has_ended_with_its_installation_is_started_from_its_disk() -> None:
    def resumed(host: Hypervisor) -> dict[str, t.Any]:
        return Power(entry(), NOT_THERE, host, host, str, timeout=600).ensure(RESUMED, False)

    host = Hypervisor(defined(), 100)
    done = resumed(host)
    assert (texts(done), done["power"]) == (["power on: its installation has ended, it starts from its disk"], "on")
    assert (host.taken, host.time) == ([["running"]], 100)
    # The run that started it may have been killed before it has set the boot order back.
    host = Hypervisor(domain.ordered(defined(), by_network=True), 0)
    assert resumed(host)["changed"] and host.taken == [["disk"], ["running"]]
    assert not domain.begins_by_network(host.definition)
    # One that goes on longer than somebody waits is left to itself.
    host = Hypervisor(defined(), 10000)
    done = resumed(host)
    assert (done["changed"], done["steps"], host.taken) == (False, [], [])
    assert done["messages"] == [
        "its installation has not ended yet: once it is off, the next run starts it from its disk"
    ]


@pytest.mark.parametrize(
    ("state", "power", "states"),
    [
        ("shut off", "on", ["running"]),
        ("crashed", "on", ["running"]),
        ("running", "off", ["destroyed"]),
        ("running", "cycle", ["destroyed", "running"]),
    ],
)
def test_power_is_that_of_the_plan(state: str, power: str, states: list[str]) -> None:
    assert [step["give"] for step in planned(answer(defined(), state, disk=100), power=power)["steps"]] == [
        {"states": states}
    ]


def test_an_operating_system_is_asked_to_end_before_its_power_is_cut() -> None:
    made = planned(answer(defined(), "running", disk=100), power="off", shutdown=90)
    assert [(step["give"]["states"], step["limit"], step["instead"]) for step in made["steps"]] == [
        (["shutdown"], 90, False),
        (["destroyed"], 0, True),
    ]


def test_a_machine_that_may_run_a_node_keeps_its_power_and_one_that_is_paused_is_left() -> None:
    (fault,) = planned(answer(defined(), "running", disk=100), THERE, power="off")["faults"]
    assert "no power off: it runs a node of cluster ocp (hyper)" in fault["text"]
    (fault,) = planned(answer(defined(), "paused", disk=100))["faults"]
    assert "its power is paused (hyper)" in fault["text"]


@pytest.mark.parametrize(
    ("looked", "expected"),
    [
        (
            {"unreachable": True, "msg": "Failed to connect:\n no route"},
            "its hypervisor cannot be reached (hyper): Failed to connect: no route",
        ),
        (
            {"rc": 1, "stderr": "sudo: a password is required"},
            "its hypervisor cannot be reached (hyper): sudo: a password",
        ),
        (
            answer(refused="error: Failed to connect socket"),
            "libvirt does not answer on its hypervisor (hyper): Failed to connect socket",
        ),
        (answer(lacking="virsh"), "its hypervisor lacks virsh (hyper)"),
        (
            answer("<domain><name>master-0</name></domain>"),
            "a virtual machine of this name exists that does not belong to this machine (hyper)",
        ),
    ],
)
def test_a_hypervisor_that_says_no_is_a_verdict(looked: dict[str, t.Any], expected: str) -> None:
    for made in (planned(looked), run.removed(entry(), looked, NOT_THERE, True)):
        assert made["steps"] == []
        assert expected in made["faults"][0]["text"]


def removed(
    looked: dict[str, t.Any], nodes: dict[str, t.Any] | None = None, disks: bool = False, **changed: t.Any
) -> dict[str, t.Any]:
    return run.removed(entry(**changed), looked, NOT_THERE if nodes is None else nodes, disks)


def test_teardown_removes_the_machine_and_its_disk_only_where_that_is_asked_for() -> None:
    running = answer(defined(), "running", disk=100)
    made = removed(running)
    assert texts(made) == [
        "power off: it has to be off for its removal",
        "remove the virtual machine: its disk /var/lib/libvirt/images/master-0.qcow2 is kept",
    ]
    assert made["steps"][1]["give"] == {"undefine": True, "disk": ""}
    assert removed(running, disks=True)["steps"][1]["give"] == {
        "undefine": True,
        "disk": "/var/lib/libvirt/images/master-0.qcow2",
    }
    assert texts(removed(answer(defined(), "shut off", disk=100)))[0].startswith("remove the virtual machine")
    assert removed(answer(disk=100)) == {
        "messages": ["its hypervisor does not have it; its disk /var/lib/libvirt/images/master-0.qcow2 is kept"],
        "faults": [],
        "steps": [],
    }


def test_teardown_leaves_nodes_until_they_are_named_and_machines_with_bmcs() -> None:
    for state in ("running", "shut off"):
        looked = answer(defined(), state, disk=100)
        assert "it runs a node of cluster ocp" in removed(looked, THERE)["faults"][0]["text"]
        assert (
            "it is unknown whether it runs a node"
            in removed(looked, {"known": False, "why": "no answer"})["faults"][0]["text"]
        )
        assert removed(looked, THERE, named=True)["steps"]
    assert run.removed({**GOOD, "provider": "redfish"}, {}, THERE, True)["steps"] == []


def test_sizes_that_are_not_set_are_those_that_a_role_needs() -> None:
    for role, expected in (
        ("bootstrap", (16384, 4, 100)),
        ("master", (16384, 4, 100)),
        ("worker", (8192, 2, 100)),
        ("storage", (8192, 2, 100)),
    ):
        found, _wrong = machines.read([entry(role=role)], "x")
        wanted = vm.read(found[0], found[0].more["vm"])
        assert (wanted.memory, wanted.vcpus, wanted.disk) == expected
