# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a machine's boot, from the logs of its boot servers. Pure."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import re

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

#: The stages of a boot, in their order.
NOTHING, REQUESTED, ADDRESS, LOADER, KERNEL, IGNITION, REPORTED = STAGES = (
    "nothing",
    "requested",
    "address",
    "loader",
    "kernel",
    "ignition",
    "reported",
)

_DHCP = re.compile(r"dnsmasq-dhcp\[\d+\]: (?:\d+ )?(DHCP\w+)\(([^)]*)\) ?(.*)$")
_TFTP_SENT = re.compile(r"dnsmasq-tftp\[\d+\]: sent (\S+) to (\S+)")
_TFTP_FAILED = re.compile(r"dnsmasq-tftp\[\d+\]: (?:file (\S+) not found for (\S+)|failed sending (\S+) to (\S+))")
#: nginx's format "combined", and formats that extend it.
_REQUEST = re.compile(r'^(\S+) \S+ \S+ \[[^\]]*\] "(?:GET|HEAD|POST|PUT) (\S+)[^"]*" (\d{3}) ')
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_KERNEL = re.compile(r"(^|[/._-])(kernel|vmlinuz|linux|bzImage)([._-][^/]*)?$")
#: Files that are fetched after the kernel and before ignition.
_OF_KERNEL = re.compile(r"(^|/)images/|initrd|initramfs|rootfs")
#: Or an initramfs that holds one.
_IGNITION = re.compile(r"^/ignition/|\.ign$|^/answers/|^/secret/")
_REPORT = re.compile(r"^/report(/|$|\?)")


@dataclasses.dataclass(frozen=True)
class Event:
    """refused: why the service refused the request, empty if it did not. what: the requested path, or the assigned address."""

    stage: str
    what: str = ""
    refused: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """text: the progress, or what is missing. next_step: empty if nothing has to be done."""

    stage: str
    text: str
    next_step: str = ""
    refused: str = ""

    def at_least(self, stage: str) -> bool:
        return STAGES.index(self.stage) >= STAGES.index(stage)


def events(lines: c.Iterable[str], machine: Machine) -> list[Event]:
    """Those of one machine, in the order of the lines."""
    address = str(machine.address)
    return [event for line in lines if (event := _dhcp(line, machine) or _tftp(line, address) or _http(line, address))]


def _dhcp(line: str, machine: Machine) -> Event | None:
    found = _DHCP.search(line)
    if not found or not machine.mac or machine.mac not in _MAC.findall(found.group(3).lower()):
        return None
    kind, said = found.group(1), found.group(3)
    words = said.split()
    after = " ".join(words[words.index(next(word for word in words if _MAC.fullmatch(word.lower()))) + 1 :])
    if kind in ("DHCPOFFER", "DHCPACK"):
        return Event(ADDRESS, words[0])
    if kind == "DHCPNAK":
        return Event(REQUESTED, refused=after or "it was refused")
    # dnsmasq logs the reason after the MAC address if it does not answer a request.
    return Event(
        REQUESTED, refused=after if re.search(r"no address|ignored|not using|unknown|wrong|refused", after) else ""
    )


def _tftp(line: str, address: str) -> Event | None:
    if (found := _TFTP_SENT.search(line)) and found.group(2) == address:
        return Event(_stage_of(found.group(1)), found.group(1))
    if found := _TFTP_FAILED.search(line):
        path, to = next(((found.group(i), found.group(i + 1)) for i in (1, 3) if found.group(i)), ("", ""))
        if to == address:
            # Boot loaders try many names for their configuration, so missing ones are expected.
            return Event(
                LOADER, path, "" if _tried(path) else "does not exist" if found.group(1) else "was not sent completely"
            )
    return None


def _http(line: str, address: str) -> Event | None:
    found = _REQUEST.match(line)
    if not found or found.group(1) != address:
        return None
    path, status = found.group(2).partition("?")[0], int(found.group(3))
    return Event(_stage_of(path), path, "" if status < 400 or _tried(path) else f"was refused with status {status}")


def _tried(path: str) -> bool:
    return (
        re.search(
            r"pxelinux\.cfg/|/grub(x64|aa64)?/|grub\.cfg|\.mod$|\.lst$|/revocations|boot\.cfg$|\.c32$|ldlinux", path
        )
        is not None
    )


def _stage_of(path: str) -> str:
    if _REPORT.search(path):
        return REPORTED
    if _IGNITION.search(path):
        return IGNITION
    return KERNEL if _KERNEL.search(path) else LOADER


def verdict(machine: Machine, lines: c.Iterable[str], joined: bool = False, media: bool = False) -> Verdict:
    """Progress of a machine since its power came on. joined: its node is in the cluster. media: it starts from media and not from the network."""
    observed = events(lines, machine)
    passed = [event.stage for event in observed if not event.refused]
    stage = REPORTED if joined else max(passed, key=STAGES.index, default=REQUESTED if observed else NOTHING)
    if joined:
        return Verdict(stage, "its node has joined")
    if refused := _last_refusal(observed, stage):
        return _refused(stage, refused)
    if media and stage in (NOTHING, ADDRESS):
        return Verdict(stage, *_FROM_MEDIA[stage])
    last = next((event.what for event in reversed(observed) if event.stage == stage and not event.refused), "")
    return Verdict(stage, *_MESSAGES[stage](machine, last))


def _last_refusal(observed: c.Sequence[Event], stage: str) -> Event | None:
    """The refusal that blocks the machine: after it, neither the same file was sent, nor any of the same or a later stage."""
    given: set[str] = set()
    for event in reversed(observed):
        as_far = STAGES.index(event.stage) >= STAGES.index(stage)
        if not event.refused:
            if as_far:
                return None
            given.add(event.what)
        elif as_far or (
            stage == KERNEL and event.stage == LOADER and _OF_KERNEL.search(event.what) and event.what not in given
        ):
            return event
    return None


def _refused(stage: str, event: Event) -> Verdict:
    if event.stage == REQUESTED:
        next_step = "set hwaccel_mac to the machine's MAC address, and run hwaccel.gpu.dns_pxe"
        return Verdict(stage, f"its DHCP request was not answered: {event.refused}", next_step, event.refused)
    what = {IGNITION: _answers(event.what), KERNEL: "kernel", LOADER: "file" if stage == KERNEL else "boot file"}.get(
        event.stage, "file"
    )
    next_step = "set hwaccel_install of this machine to true if it has to be installed, and run hwaccel.gpu.dns_pxe"
    return Verdict(stage, f"the {what} {event.what} {event.refused}", next_step, f"{event.what} {event.refused}")


def _answers(path: str) -> str:
    """What an installer has downloaded."""
    if path.startswith("/secret/"):
        return "initramfs with an ignition file"
    return "answer file" if path.startswith("/answers/") else "ignition file"


_FROM_MEDIA = {
    NOTHING: (
        "no DHCP request of it was logged",
        "inspect its console: it may not start from its media, which its BMC must be able to download",
    ),
    ADDRESS: (
        "it runs from its media",
        "the logs show no further progress, as it downloads nothing from here; verify that it joins, or inspect its console",
    ),
}
_MESSAGES: dict[str, c.Callable[[Machine, str], tuple[str, str]]] = {
    NOTHING: lambda machine, _last: (
        f"no DHCP request of {machine.mac or 'it'} was logged",
        "verify that this is the MAC address of its boot port, that its firmware boots from this port, and that the port is in the boot server's segment",
    ),
    REQUESTED: lambda machine, _last: (
        f"DHCP requests of {machine.mac} were logged, but not answered",
        "verify that this MAC address is in hwaccel_mac, and run hwaccel.gpu.dns_pxe",
    ),
    ADDRESS: lambda _machine, last: (
        f"it has the address {last}, but has not downloaded its boot file",
        "verify that TFTP (UDP 69 and high ports) and HTTP reach the boot server, that no other DHCP server answers, "
        "and that hwaccel_firmware is the mode of its firmware",
    ),
    LOADER: lambda _machine, last: (
        f"it has downloaded its boot file ({last}), but no kernel",
        "a machine without hwaccel_install, or that was written already, starts from its disk now; "
        "otherwise inspect its console: Secure Boot may have refused the boot loader",
    ),
    KERNEL: lambda _machine, last: (
        f"it has downloaded its kernel ({last}), but nothing after it",
        "inspect its console: common causes are too little memory, wrong kernel arguments, or addresses of rootfs and ignition that it cannot reach",
    ),
    IGNITION: lambda _machine, last: (
        f"it has downloaded its {_answers(last)} ({last}), but has not reported yet",
        "wait for its installation; inspect its console if this takes more than half an hour",
    ),
    REPORTED: lambda _machine, _last: ("reported in", ""),
}
