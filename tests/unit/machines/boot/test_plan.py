# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines are asked to do, what is done for it, and what is refused."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import request, run

BMC = {"address": "10.9.0.11:8443", "username": "admin", "has_password": True, "system": "", "verify": True}
GOOD: dict[str, t.Any] = {
    "name": "worker-1",
    "cluster": "ocp",
    "role": "worker",
    "address": "10.77.0.21",
    "mac": "52:54:00:77:00:21",
    "firmware": "uefi",
    "architecture": "x86_64",
    "provider": "redfish",
    "boot": "network",
    "power": "on",
    "named": False,
    "logs": True,
    "http": False,
    "media": "",
    "bmc": BMC,
    "distribution": "openshift",
    "nodes": ["worker-1", "worker-1.ocp.test"],
}
NOT_THERE = {"known": True, "names": ["worker-0"]}
THERE = {"known": True, "names": ["worker-0", "worker-1.ocp.test"]}
NOBODY_KNOWS = {"known": False, "why": "the API server of ocp does not answer"}
ALLOWED = ["Pxe", "Cd", "Hdd", "UefiHttp"]


def told(*entries: dict[str, t.Any]) -> list[str]:
    return [str(fault) for fault in request.faults(entries, {"community.general": "11.4.2"})]


def redfish(
    power: str,
    target: str = "None",
    enabled: str = "Disabled",
    mode: str = "UEFI",
    allowed: list[str] | None = None,
    system: str = "1",
) -> dict:
    override = {
        "BootSourceOverrideEnabled": enabled,
        "BootSourceOverrideTarget": target,
        "BootSourceOverrideMode": mode,
        "BootSourceOverrideTarget@Redfish.AllowableValues": ALLOWED if allowed is None else allowed,
    }
    where = {"system_uri": f"/redfish/v1/Systems/{system}"}
    read = {"system": {"PowerState": power}, "boot_override": override}
    return {"redfish_facts": {part: {"ret": True, "entries": [[where, entry]]} for part, entry in read.items()}}


def planned(
    looked: dict[str, t.Any], nodes: dict[str, t.Any] | None = None, booted: bool = False, **changed: t.Any
) -> dict[str, t.Any]:
    return run.planned({**GOOD, **changed}, looked, NOT_THERE if nodes is None else nodes, booted)


def commands(steps: list[dict[str, t.Any]]) -> list[str]:
    return [
        step["give"]["command"][0] + (f" {step['give']['bootdevice']}" if "bootdevice" in step["give"] else "")
        for step in steps
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            {"provider": "wakeonlan"},
            "its provider wakeonlan is unknown. Next: set machine_boot_provider to one of redfish, ipmi, libvirt",
        ),
        ({"provider": ""}, "it has no provider"),
        (
            {"boot": "floppy"},
            "its boot floppy is unknown. Next: set machine_boot_boot to one of network, disk, media",
        ),
        ({"power": "reboot"}, "its power reboot is unknown. Next: set machine_boot_power to one of on, off, cycle"),
        ({"bmc": {**BMC, "address": ""}}, "the address of its BMC is missing. Next: set hwaccel_bmc_address"),
        ({"bmc": {**BMC, "address": "https://bmc/"}}, "https://bmc/ is not the address of a BMC"),
        ({"bmc": {**BMC, "address": "bmc:port"}}, "bmc:port is not the address of a BMC"),
        (
            {"bmc": {**BMC, "has_password": False}},
            "credentials of its BMC are missing. Next: set hwaccel_bmc_password, the password",
        ),
        ({"bmc": {**BMC, "username": "", "has_password": False}}, "set hwaccel_bmc_username and hwaccel_bmc_password"),
        ({"boot": "media"}, "boot from media is requested without an image"),
        ({"provider": "ipmi", "http": True}, "IPMI does not support HTTP boot"),
        ({"provider": "ipmi", "boot": "media", "media": "http://a/b.iso"}, "IPMI does not support virtual media"),
    ],
)
def test_what_is_wrong_with_a_machine_is_told_with_the_next_step(changed: dict[str, t.Any], expected: str) -> None:
    (fault,) = told({**GOOD, **changed})
    assert fault.startswith("machine worker-1: ")
    assert expected in fault


def test_all_faults_of_all_machines_are_told_at_once() -> None:
    other = {**GOOD, "name": "worker-2", "address": "10.77.0.22", "mac": "52:54:00:77:00:22"}
    third = {**other, "name": "m", "address": "10.77.0.9", "mac": "52:54:00:77:00:09", "bmc": {**BMC, "address": ""}}
    found = told({**GOOD, "boot": "floppy"}, {**other, "provider": "x", "bmc": {**BMC, "system": "2"}}, third)
    assert [fault.partition(":")[0] for fault in found] == ["machine worker-1", "machine worker-2", "machine m"]


def test_machines_behind_one_bmc_are_told_apart_by_its_systems() -> None:
    other = {**GOOD, "name": "worker-2", "address": "10.77.0.22", "mac": "52:54:00:77:00:22"}
    (fault,) = told(GOOD, other)
    assert "2 machines have the BMC 10.9.0.11:8443: worker-1, worker-2" in fault
    assert told({**GOOD, "bmc": {**BMC, "system": "1"}}, {**other, "bmc": {**BMC, "system": "2"}}) == []


@pytest.mark.parametrize(
    ("version", "why"),
    [("", "it is not installed"), ("9.5.1", "version 9.5.1 is too old"), ("10.5.0", "too old"), ("10.6.0", "")],
)
def test_the_collection_that_redfish_needs_is_named(version: str, why: str) -> None:
    found = [str(fault) for fault in request.faults([GOOD], {"community.general": version})]
    assert bool(found) is bool(why)
    assert all(why in fault and "requirements-metal.yml" in fault for fault in found)
    assert request.faults([{**GOOD, "provider": "ipmi"}], {}) == []


def test_a_machine_that_is_off_is_told_where_to_start_from_and_started() -> None:
    made = planned(redfish("Off"))
    assert commands(made["steps"]) == ["SetOneTimeBoot Pxe", "PowerOn"]
    assert (made["started"], made["steps"][1]["until"], made["faults"]) == (True, "on", [])


def test_a_boot_device_that_is_told_already_is_not_written_again() -> None:
    assert commands(planned(redfish("Off", "Pxe", "Once"))["steps"]) == ["PowerOn"]
    assert commands(planned(redfish("Off", "Pxe", "Continuous"))["steps"]) == ["PowerOn"]
    assert commands(planned(redfish("Off", "Hdd", "Continuous"))["steps"]) == ["SetOneTimeBoot Pxe", "PowerOn"]


def test_a_target_that_is_named_while_nothing_is_told_counts_for_nothing() -> None:
    assert commands(planned(redfish("Off", "Pxe", "Disabled"))["steps"]) == ["SetOneTimeBoot Pxe", "PowerOn"]


@pytest.mark.parametrize(("changed", "first"), [({"http": True}, "UefiHttp"), ({"boot": "disk"}, "Hdd")])
def test_devices_have_the_names_of_redfish(changed: dict[str, t.Any], first: str) -> None:
    assert planned(redfish("Off"), **changed)["steps"][0]["give"]["bootdevice"] == first


ISO = "http://10.77.0.2/agent.iso"
MEDIA = {"boot": "media", "media": ISO}


def with_media(
    looked: dict[str, t.Any], inserted: str = "", *, manager: bool = False, name: str = "agent.iso"
) -> dict[str, t.Any]:
    """A BMC with two places for media, at its system or at its manager."""
    drives = [
        {"Image": inserted, "ImageName": name if inserted else "", "MediaTypes": ["CD", "DVD"]},
        {"Image": "", "MediaTypes": ["Floppy"]},
    ]
    where = {"resource_uri": "/redfish/v1/Managers/bmc" if manager else "/redfish/v1/Systems/1"}
    facts = {"virtual_media": {"ret": True, "entries": [[where, drives]]}}
    return {**looked, "managers": facts} if manager else {"redfish_facts": {**looked["redfish_facts"], **facts}}


@pytest.mark.parametrize(("manager", "category", "holder"), [(False, "Systems", "1"), (True, "Manager", "bmc")])
def test_media_are_inserted_where_the_bmc_has_them_before_the_machine_starts_from_them(
    manager: bool, category: str, holder: str
) -> None:
    made = planned(with_media(redfish("Off"), manager=manager), **MEDIA)
    assert commands(made["steps"]) == ["VirtualMediaInsert", "SetOneTimeBoot Cd", "PowerOn"]
    give = made["steps"][0]["give"]
    assert (give["virtual_media"]["image_url"], give["category"], give["resource_id"]) == (ISO, category, holder)
    assert made["steps"][0]["text"] == f"insert {ISO}: the machine starts from it"


def test_media_that_are_inserted_already_are_not_inserted_again() -> None:
    assert commands(planned(with_media(redfish("Off"), ISO), **MEDIA)["steps"]) == ["SetOneTimeBoot Cd", "PowerOn"]
    assert (
        commands(planned(with_media(redfish("Off"), "http://other/x.iso"), **MEDIA)["steps"])[0] == "VirtualMediaInsert"
    )
    assert commands(planned(with_media(redfish("Off"), ISO, name=""), **MEDIA)["steps"])[0] == "VirtualMediaInsert", (
        "it was ejected"
    )


def test_a_bmc_without_media_is_a_fault_and_nothing_is_done() -> None:
    made = planned(redfish("Off"), **MEDIA)
    assert made["steps"] == []
    assert (
        "its BMC has no virtual media (10.9.0.11:8443): neither its system nor its managers have any. Next:"
        in made["faults"][0]["text"]
    )


@pytest.mark.parametrize(
    ("nodes", "ended", "changed", "expected"),
    [
        (NOT_THERE, True, {}, ["VirtualMediaEject"]),
        (THERE, False, {}, ["VirtualMediaEject"]),
        (NOT_THERE, False, {}, []),
        (THERE, False, {"named": True}, []),
        (THERE, False, {"boot": "network"}, ["VirtualMediaEject"]),
        (THERE, False, {"media": ""}, []),
    ],
)
def test_media_are_ejected_once_they_are_needed_no_more_also_by_a_later_run(
    nodes: dict, ended: bool, changed: dict, expected: list[str]
) -> None:
    """Not the old node of a machine that is installed anew by name says so."""
    made = run.planned({**GOOD, **MEDIA, **changed}, with_media(redfish("On"), ISO), nodes, False, ended)
    assert commands(made["back"]) == expected
    assert (
        commands(run.planned({**GOOD, **MEDIA, **changed}, with_media(redfish("On")), nodes, False, ended)["back"])
        == []
    )


def test_a_machine_that_is_named_is_not_put_back_to_its_disk_for_its_old_node() -> None:
    assert commands(planned(redfish("On", "Pxe", "Continuous"), THERE, named=True)["back"]) == []
    assert commands(planned(redfish("On", "Pxe", "Continuous"), THERE, True, named=True)["back"]) == [
        "SetOneTimeBoot Hdd"
    ]


def test_an_operating_system_is_asked_to_end_before_its_power_is_cut() -> None:
    made = planned(redfish("On"), power="off", shutdown=90)
    assert commands(made["steps"]) == ["PowerGracefulShutdown", "PowerForceOff"]
    assert [(step["until"], step["limit"], step["instead"]) for step in made["steps"]] == [
        ("off", 90, False),
        ("off", 0, True),
    ]
    assert [step["text"] for step in made["steps"]] == [
        "shut down: off is requested, within 90 s",
        "power off: only if it is still on after 90 s",
    ]
    assert commands(planned(redfish("On"), power="cycle", shutdown=90)["steps"])[-1] == "PowerForceRestart"
    by_ipmi = planned(ipmi("on"), provider="ipmi", power="off", shutdown=90)
    assert [" ".join(step["give"]["argv"]) for step in by_ipmi["steps"]] == ["chassis power soft", "chassis power off"]


def test_the_mode_is_named_only_where_it_changes() -> None:
    assert "boot_override_mode" not in planned(redfish("Off", mode="UEFI"))["steps"][0]["give"]
    assert planned(redfish("Off", mode="Legacy"))["steps"][0]["give"]["boot_override_mode"] == "UEFI"
    assert "boot_override_mode" not in planned(redfish("Off", mode="Legacy"), firmware="")["steps"][0]["give"]


def test_a_device_that_the_bmc_does_not_offer_is_a_fault_and_nothing_is_done() -> None:
    made = planned(redfish("Off", allowed=["Pxe", "Hdd"]), http=True)
    assert made["steps"] == []
    assert (
        "its BMC cannot start it from UefiHttp (10.9.0.11:8443): it supports Pxe, Hdd. Next:"
        in made["faults"][0]["text"]
    )


@pytest.mark.parametrize("nodes", [THERE, NOT_THERE, NOBODY_KNOWS])
def test_a_machine_that_runs_keeps_running(nodes: dict[str, t.Any]) -> None:
    made = planned(redfish("On"), nodes)
    assert (made["steps"], made["faults"], made["started"]) == ([], [], False)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (THERE, "it runs a node of cluster ocp"),
        (NOBODY_KNOWS, "it is unknown whether it runs a node (10.9.0.11:8443): the API server of ocp"),
    ],
)
@pytest.mark.parametrize("power", ["off", "cycle"])
def test_no_power_action_on_a_machine_that_runs_a_node_or_may_run_one(
    power: str, nodes: dict[str, t.Any], why: str
) -> None:
    made = planned(redfish("On"), nodes, power=power)
    assert made["steps"] == []
    assert why in made["faults"][0]["text"]
    assert "-e machine_boot_named=worker-1" in made["faults"][0]["text"]


@pytest.mark.parametrize(
    ("power", "expected"), [("off", ["PowerForceOff"]), ("cycle", ["SetOneTimeBoot Pxe", "PowerForceRestart"])]
)
def test_who_is_asked_for_by_name_or_runs_no_node_is_switched(power: str, expected: list[str]) -> None:
    assert commands(planned(redfish("On"), THERE, power=power, named=True)["steps"]) == expected
    assert commands(planned(redfish("On"), NOT_THERE, power=power)["steps"]) == expected


def test_a_machine_whose_node_has_joined_starts_from_its_disk_unless_named() -> None:
    made = planned(redfish("Off"), THERE)
    assert commands(made["steps"]) == ["SetOneTimeBoot Hdd", "PowerOn"]
    assert any("starts from its disk" in line for line in made["messages"])
    assert commands(planned(redfish("Off"), THERE, named=True)["steps"]) == ["SetOneTimeBoot Pxe", "PowerOn"]


def test_where_nobody_knows_a_machine_that_is_off_is_started() -> None:
    assert commands(planned(redfish("Off"), NOBODY_KNOWS)["steps"]) == ["SetOneTimeBoot Pxe", "PowerOn"]


@pytest.mark.parametrize(
    ("looked", "nodes", "booted", "expected"),
    [
        (redfish("On", "Pxe", "Continuous"), NOT_THERE, True, ["SetOneTimeBoot Hdd"]),
        (redfish("On", "Pxe", "Continuous"), THERE, False, ["SetOneTimeBoot Hdd"]),
        (redfish("On", "Pxe", "Continuous"), NOT_THERE, False, []),
        (redfish("On", "Pxe", "Once"), NOT_THERE, True, []),
        (redfish("On", "Pxe", "Disabled"), NOT_THERE, True, []),
        (redfish("On", "Hdd", "Continuous"), THERE, True, []),
        (redfish("Off", "Pxe", "Continuous"), THERE, True, []),
    ],
)
def test_a_bmc_without_once_is_put_back_to_disk_when_the_kernel_is_loaded(
    looked: dict, nodes: dict, booted: bool, expected: list[str]
) -> None:
    assert commands(planned(looked, nodes, booted)["back"]) == expected


def test_a_machine_that_is_off_and_is_to_be_is_left_alone() -> None:
    assert planned(redfish("Off"), power="off")["steps"] == []


@pytest.mark.parametrize("power", ["PoweringOn", ""])
def test_a_power_state_between_states_is_a_fault(power: str) -> None:
    made = planned(redfish(power))
    assert made["steps"] == []
    assert "run this again in a minute" in made["faults"][0]["text"]


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (
            "HTTP Error 401 on GET request to 'https://b/redfish/v1/Systems', extended message: '[{'x'}]'",
            "its BMC refuses the credentials",
        ),
        (
            "URL Error on GET request to 'https://b/': '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed'",
            "has a certificate that is not trusted",
        ),
        ("Failed GET request to 'https://b/': 'The read operation timed out'", "does not answer in time"),
        ("URL Error on GET request to 'https://b/': '[Errno 111] Connection refused'", "cannot be reached"),
        ("HTTP Error 500 on GET request to 'https://b/'", "has an internal error"),
        ("something else", "its BMC refuses the request"),
    ],
)
def test_why_a_bmc_says_no_is_told_apart(message: str, what: str) -> None:
    made = planned({"msg": message})
    assert made["steps"] == []
    (fault,) = made["faults"]
    assert what in fault["what"]
    assert "extended message" not in fault["text"]
    assert fault["next_step"]


def test_one_of_several_systems_is_taken_by_its_name_and_never_by_chance() -> None:
    both = redfish("Off", system="DGX")
    for part, entry in (("system", {"PowerState": "On"}), ("boot_override", {})):
        both["redfish_facts"][part]["entries"].append([{"system_uri": "/redfish/v1/Systems/HGX_Baseboard_0"}, entry])
    assert planned(both, bmc={**BMC, "system": "DGX"})["power"] == "off"
    (fault,) = planned(both)["faults"]
    assert "several systems; it lists DGX, HGX_Baseboard_0. Next: set hwaccel_bmc_system" in fault["text"]
    (fault,) = planned(both, bmc={**BMC, "system": "GX"})["faults"]
    assert "no system GX" in fault["text"]


IPMI_PRINTED = """Chassis Power is {power}
Boot parameter version: 1
Boot parameter 5 is valid/unlocked
Boot parameter data: 8004000000
 Boot Flags :
   - Boot Flag {valid}
   - Options apply to {how}
   - BIOS PC Compatible (legacy) boot
   - Boot Device Selector : {device}
   - Console Redirection control : System Default
"""


def ipmi(
    power: str, device: str = "No override", how: str = "only next boot", valid: str = "Valid"
) -> dict[str, t.Any]:
    return {"rc": 0, "stdout": IPMI_PRINTED.format(power=power, device=device, how=how, valid=valid)}


@pytest.mark.parametrize(
    ("looked", "changed", "expected"),
    [
        (ipmi("off"), {}, ["chassis bootdev pxe options=efiboot", "chassis power on"]),
        (ipmi("off"), {"firmware": "bios"}, ["chassis bootdev pxe", "chassis power on"]),
        (ipmi("off", "Force PXE"), {}, ["chassis power on"]),
        (ipmi("off", "Force PXE", valid="Invalid"), {}, ["chassis bootdev pxe options=efiboot", "chassis power on"]),
        (ipmi("off", "Force PXE"), {"boot": "disk"}, ["chassis bootdev disk options=efiboot", "chassis power on"]),
        (ipmi("on"), {}, []),
        (ipmi("on"), {"power": "off"}, ["chassis power off"]),
        (ipmi("on", "Force PXE"), {"power": "cycle"}, ["chassis power cycle"]),
    ],
)
def test_ipmi_does_the_same_by_ipmitool(looked: dict, changed: dict[str, t.Any], expected: list[str]) -> None:
    made = planned(looked, provider="ipmi", **changed)
    assert [" ".join(step["give"]["argv"]) for step in made["steps"]] == expected


def test_a_bmc_of_ipmi_that_boots_from_the_network_for_ever_is_put_back() -> None:
    made = planned(ipmi("on", "Force PXE", how="all future boots"), provider="ipmi", booted=True)
    assert [step["give"]["argv"][2] for step in made["back"]] == ["disk"]


def test_what_ipmitool_fails_with_is_told() -> None:
    (fault,) = planned(
        {"rc": 1, "stdout": "", "stderr": "Error: Unable to establish IPMI v2 / RMCP+ session"}, provider="ipmi"
    )["faults"]
    assert "its BMC does not answer in time" in fault["text"]


def test_numbers_are_read_where_ansible_core_has_made_texts_of_them() -> None:
    made = planned({**ipmi("on"), "rc": "0"}, provider="ipmi", power="off", shutdown="0")
    assert (made["faults"], made["power"]) == ([], "on")
    assert [" ".join(step["give"]["argv"]) for step in made["steps"]] == ["chassis power off"]
    assert planned({"rc": "1", "stdout": "", "stderr": "x"}, provider="ipmi")["faults"]
    assert planned(ipmi("on"), provider="ipmi", power="off", shutdown="90")["steps"][0]["limit"] == 90
