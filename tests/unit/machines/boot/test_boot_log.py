# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a machine has come is read from lines as dnsmasq and nginx write them."""

from __future__ import annotations

import ipaddress
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import boot_log, request, watch
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine
from ansible_collections.hwaccel.gpu.tests.unit.machines.boot.test_plan import GOOD

MACHINE = Machine("worker-1", "ocp", "worker", ipaddress.ip_address("10.77.0.1"), "52:54:00:77:00:21")


def dhcp(said: str) -> str:
    return f"1763868000.123456 boot dnsmasq-dhcp[812]: 2773209571 {said}"


def tftp(said: str) -> str:
    return f"1763868000.123456 boot dnsmasq-tftp[812]: {said}"


def http(path: str, status: int = 200, address: str = "10.77.0.1") -> str:
    return f'{address} - - [23/Nov/2026:03:41:10 +0000] "GET {path} HTTP/1.1" {status} 1234 "-" "curl/8"'


REQUEST = [dhcp("DHCPDISCOVER(eth0) 52:54:00:77:00:21")]
OFFER = [
    *REQUEST,
    dhcp("DHCPOFFER(eth0) 10.77.0.1 52:54:00:77:00:21"),
    dhcp("DHCPACK(eth0) 10.77.0.1 52:54:00:77:00:21 worker-1"),
]
LOADER = [
    *OFFER,
    tftp("error 8 User aborted the transfer received from 10.77.0.1"),
    tftp("sent /srv/tftp/shimx64.efi to 10.77.0.1"),
]
KERNEL = [*LOADER, tftp("sent /srv/tftp/images/rhcos-live-kernel.x86_64 to 10.77.0.1")]
IGNITION = [*KERNEL, http("/images/rhcos-live-rootfs.x86_64.img"), http("/ignition/worker.ign")]


@pytest.mark.parametrize(
    ("lines", "stage", "text"),
    [
        ([], "nothing", "no DHCP request of 52:54:00:77:00:21 was logged"),
        (REQUEST, "requested", "were logged, but not answered"),
        (
            [dhcp("DHCPDISCOVER(eth0) 52:54:00:77:00:21 no address available")],
            "requested",
            "its DHCP request was not answered: no address available",
        ),
        ([dhcp("DHCPDISCOVER(eth0) 52:54:00:77:00:21 ignored")], "requested", "was not answered: ignored"),
        (OFFER, "address", "it has the address 10.77.0.1, but has not downloaded its boot file"),
        (
            [*OFFER, tftp("file /srv/tftp/shimx64.efi not found for 10.77.0.1")],
            "address",
            "the boot file /srv/tftp/shimx64.efi does not exist",
        ),
        (
            [*OFFER, tftp("failed sending /srv/tftp/shimx64.efi to 10.77.0.1")],
            "address",
            "the boot file /srv/tftp/shimx64.efi was not sent completely",
        ),
        ([*OFFER, http("/efi/grub.efi", 404)], "address", "the boot file /efi/grub.efi was refused with status 404"),
        (LOADER, "loader", "it has downloaded its boot file (/srv/tftp/shimx64.efi), but no kernel"),
        ([*LOADER, http("/images/kernel", 404)], "loader", "the kernel /images/kernel was refused with status 404"),
        (
            KERNEL,
            "kernel",
            "it has downloaded its kernel (/srv/tftp/images/rhcos-live-kernel.x86_64), but nothing after it",
        ),
        (
            [*KERNEL, http("/images/rhcos-live-rootfs.x86_64.img", 404)],
            "kernel",
            "the file /images/rhcos-live-rootfs.x86_64.img was refused with status 404",
        ),
        ([*KERNEL, http("/linux/initrd.img", 403)], "kernel", "the file /linux/initrd.img was refused with status 403"),
        (
            [*KERNEL, tftp("file /srv/tftp/images/main not found for 10.77.0.1")],
            "kernel",
            "the file /srv/tftp/images/main does not exist",
        ),
        (
            [*KERNEL, http("/ignition/worker.ign", 403)],
            "kernel",
            "the ignition file /ignition/worker.ign was refused with status 403",
        ),
        (IGNITION, "ignition", "it has downloaded its ignition file (/ignition/worker.ign), but has not reported yet"),
        (
            [*KERNEL, http("/secret/edge/initramfs")],
            "ignition",
            "it has downloaded its initramfs with an ignition file (/secret/edge/initramfs), but has not reported yet",
        ),
        (
            [*KERNEL, http("/secret/edge/initramfs", 403)],
            "kernel",
            "the initramfs with an ignition file /secret/edge/initramfs was refused with status 403",
        ),
        ([*IGNITION, http("/report/worker-1?state=up")], "reported", "reported in"),
    ],
)
def test_each_stage_has_its_words_and_its_next_step(lines: list[str], stage: str, text: str) -> None:
    found = boot_log.verdict(MACHINE, lines)
    assert (found.stage, text in found.text) == (stage, True), found
    assert bool(found.next_step) is (stage != "reported")


def test_lines_of_others_say_nothing_of_a_machine() -> None:
    others = [line.replace("10.77.0.1", "10.77.0.11").replace("00:21", "00:22") for line in IGNITION]
    assert (
        boot_log.verdict(MACHINE, [*others, http("/report/x", address="110.77.0.1"), "not a line of any service"]).stage
        == "nothing"
    )


def test_what_was_refused_and_given_later_is_no_fault() -> None:
    assert boot_log.verdict(MACHINE, [*OFFER, http("/images/kernel", 503), http("/images/kernel")]).text.startswith(
        "it has downloaded its kernel"
    )
    missing = tftp("file /srv/tftp/other.efi not found for 10.77.0.1")
    assert boot_log.verdict(MACHINE, [*OFFER, missing, LOADER[-1]]).text.startswith("it has downloaded its boot file")
    assert boot_log.verdict(MACHINE, [*LOADER, missing]).text == "the boot file /srv/tftp/other.efi does not exist"


def test_a_file_that_was_refused_before_the_kernel_or_given_since_is_no_fault() -> None:
    initramfs = "/images/rhcos-live-initramfs.x86_64.img"
    assert boot_log.verdict(MACHINE, [*KERNEL, http(initramfs, 503), http(initramfs)]).text.startswith(
        "it has downloaded its kernel"
    )
    assert boot_log.verdict(MACHINE, [*LOADER, http(initramfs, 404), http("/images/kernel")]).text.startswith(
        "it has downloaded its kernel"
    )
    # The web log is read behind that of TFTP, and says nothing of which was first.
    assert boot_log.verdict(MACHINE, [*KERNEL, http("/efi/grub.efi", 404)]).text.startswith(
        "it has downloaded its kernel"
    )
    assert boot_log.verdict(MACHINE, [*IGNITION, http("/images/other", 404)]).text.startswith(
        "it has downloaded its ignition file"
    )


def test_names_of_configurations_that_loaders_try_are_no_faults() -> None:
    tried = [
        tftp("file /srv/tftp/pxelinux.cfg/0A4D0001 not found for 10.77.0.1"),
        tftp("file /srv/tftp/grub/x86_64-efi/command.lst not found for 10.77.0.1"),
    ]
    assert boot_log.verdict(MACHINE, [*LOADER, *tried]).text.startswith("it has downloaded its boot file")


def test_a_mac_in_capitals_is_the_same() -> None:
    assert (
        boot_log.verdict(
            MACHINE, [line.replace("52:54:00:77:00:21", "52:54:00:77:00:21".upper()) for line in OFFER]
        ).stage
        == "address"
    )


def test_who_has_joined_its_cluster_has_reported() -> None:
    assert boot_log.verdict(MACHINE, [], joined=True).stage == "reported"


def test_who_starts_from_media_fetches_nothing_that_would_tell_more() -> None:
    assert boot_log.verdict(MACHINE, OFFER, media=True).text == "it runs from its media"
    assert "its BMC must be able to download" in boot_log.verdict(MACHINE, [], media=True).next_step
    assert boot_log.verdict(MACHINE, REQUEST, media=True).text == boot_log.verdict(MACHINE, REQUEST).text
    assert boot_log.verdict(MACHINE, IGNITION, media=True).stage == "ignition"


def judged(*read: dict[str, t.Any], awaited: str = "ignition", **changed: t.Any) -> watch.Verdict:
    entry = {**GOOD, "address": "10.77.0.1", **changed}
    return watch.judged(read, request.read(entry), awaited, {}, {})


def test_logs_of_several_boot_servers_are_one() -> None:
    one, other = {"item": "boot-a", "stdout_lines": OFFER}, {"item": "boot-b", "stdout_lines": IGNITION}
    found = judged(one, other)
    assert (found["stage"], found["done"], found["sending"]) == ("ignition", True, ["boot-b"])
    assert judged(one)["sending"] == [], "all of them offer addresses"
    assert judged(other, {"item": "boot-b", "stdout_lines": OFFER})["stage"] == "address", "it was read again"
    assert judged(other, {"item": "boot-b", "skipped": True})["stage"] == "ignition"


def test_a_node_that_was_seen_after_the_start_ends_the_watch() -> None:
    found = watch.judged([], request.read(GOOD), "reported", {"known": True, "names": ["worker-1.ocp.test"]}, {})
    assert (found["stage"], found["text"], found["done"], found["ended"]) == (
        "reported",
        "its node has joined",
        True,
        True,
    )
    assert watch.judged([], request.read(GOOD), "reported", {"known": False, "names": []}, {})["done"] is False


def test_what_is_loaded_depends_on_what_the_machine_starts_from() -> None:
    assert (judged({"stdout_lines": OFFER})["loaded"], judged({"stdout_lines": KERNEL})["loaded"]) == (False, True)
    assert judged({"stdout_lines": OFFER}, boot="media")["loaded"] is True
    assert judged({"stdout_lines": IGNITION})["ended"] is False


def test_lines_of_an_earlier_boot_are_told_and_end_nothing() -> None:
    old = {"stdout_lines": ["earlier", *IGNITION, http("/report/worker-1")]}
    found = judged(old)
    assert (found["stage"], found["text"]) == ("reported", "reported in, in this boot or an earlier one")
    assert (found["loaded"], found["ended"]) == (False, False)
    assert judged({"item": "a", **old}, {"item": "b", "stdout_lines": KERNEL})["loaded"] is True
    assert judged(old, boot="media")["loaded"] is False


def test_stages_are_in_their_order() -> None:
    found = boot_log.verdict(MACHINE, KERNEL)
    assert [found.at_least(stage) for stage in boot_log.STAGES] == [True] * 5 + [False] * 2


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("/images/fedora-coreos-43-live-kernel.x86_64", "kernel"),
        ("/images/vmlinuz", "kernel"),
        ("/linux/initrd.img", "loader"),
        ("/images/rhcos-live-initramfs.x86_64.img", "loader"),
        ("/pxelinux.0", "loader"),
        ("/bootstrap.ign", "ignition"),
        ("/reporter", "loader"),
    ],
)
def test_a_file_is_known_by_its_path(path: str, stage: str) -> None:
    assert boot_log.verdict(MACHINE, [http(path)]).stage == stage
