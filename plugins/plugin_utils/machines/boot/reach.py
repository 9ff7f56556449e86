# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an installed machine answers by SSH with the expected host key, operating system and disk, and otherwise what is missing. Pure."""

from __future__ import annotations

import base64
import collections.abc as c
import dataclasses
import hashlib
import re
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.machines import Machine

#: In requests below /report: by it the installed system tells its host key. nginx logs it as it was sent.
_REPORTED = re.compile(r'^(\S+) \S+ \S+ \[[^\]]*\] "GET /report/\S*[?&]host_key=(SHA256:[A-Za-z0-9+/]{43})[ &]')
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclasses.dataclass(frozen=True)
class Expected:
    """host_key: its fingerprint, empty if it is unknown. system: ID of os-release, and the beginning of its version, such as "rocky 9"; empty for any.

    device: path of the disk, empty for any. user: who logs in.
    """

    host_key: str = ""
    system: str = ""
    device: str = ""
    user: str = ""


class Reached(t.TypedDict):
    """done: whether it answers as expected. settled: whether nobody has to wait for another answer. text, next_step: as of watch.Verdict. lines: the text if it
    is new.
    """

    done: bool
    settled: bool
    text: str
    next_step: str
    lines: list[str]


def fingerprint(key: str) -> str:
    """Of a public key in the form of a .pub or known_hosts file; a fingerprint is returned as it is. Empty for anything else."""
    if _FINGERPRINT.fullmatch(key.strip()):
        return key.strip()
    blob = next((word for word in key.split() if word.startswith("AAAA")), "")
    try:
        digest = hashlib.sha256(base64.b64decode(blob, validate=True)).digest()
    except ValueError:
        return ""
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}" if blob else ""


def reported(machine: Machine, lines: c.Iterable[str]) -> str:
    """Fingerprint of the host key that the machine has reported last, empty if it has reported none. lines: of nginx, since its start."""
    found = [match for line in lines if (match := _REPORTED.match(line))]
    return next((one.group(2) for one in reversed(found) if one.group(1) == str(machine.address)), "")


def judged(
    printed: c.Sequence[str], expected: Expected, progress: c.Mapping[str, t.Any], before: str, over: bool
) -> Reached:
    """printed: lines of reach.sh. progress: verdict of the logs, empty if they are not read. before: the text of the last verdict. over: whether the timeout is
    over.
    """
    facts = [line.split(" ", 1) for line in printed if " " in line]
    values = {
        name: [value for key, value in facts if key == name] for name in ("key", "refused", "os", "disk", "device")
    }
    done, final, text, next_step = _verdict(values, expected, progress)
    settled = final or over
    return {
        "done": done,
        "settled": settled,
        "text": text,
        "next_step": next_step,
        "lines": [text] if text != before else [],
    }


def _verdict(
    values: c.Mapping[str, list[str]], expected: Expected, progress: c.Mapping[str, t.Any]
) -> tuple[bool, bool, str, str]:
    """Whether it is as expected, whether this will not change, text and next step. An installer does not let this user in."""
    keys, systems = values["key"], values["os"]
    if not keys:
        so_far = f"; {progress['text']}" if progress.get("text") else ""
        return False, False, f"it does not answer by SSH{so_far}", _INSTALLING
    if expected.host_key and expected.host_key not in keys:
        text = f"it answers by SSH with another host key than {expected.host_key}: {', '.join(keys)}"
        return False, False, text, _OTHER_KEY
    if not systems:
        why = next(iter(values["refused"]), "no reason is known")
        return False, False, f"it answers by SSH, but {expected.user} cannot log in: {why}", _REFUSED
    if expected.system and not _is(systems[0], expected.system):
        return False, True, f"it runs {systems[0]} instead of {expected.system}", _OTHER_DISK
    disks, device = values["disk"], next(iter(values["device"]), "")
    if device and disks and device not in disks:
        text = f"it has started from the disk {', '.join(disks)} instead of {device} ({expected.device})"
        return False, True, text, _OTHER_DISK
    key = "with the expected host key" if expected.host_key else f"with the host key {keys[0]}, which was not verified"
    where = f" on {', '.join(disks)}" if disks else ""
    return True, True, f"it answers by SSH, {key}: {systems[0]}{where}", ""


def _is(found: str, expected: str) -> bool:
    """Whether rocky 9.4 is rocky 9."""
    name, _blank, version = found.partition(" ")
    expected_name, _blank, begin = expected.partition(" ")
    return name == expected_name and (not begin or version == begin or version.startswith(f"{begin}."))


_INSTALLING = "wait for its installation, or inspect its console; raise machine_boot_ssh_timeout if it needs more time"
_OTHER_KEY = (
    "inspect its console: it may still run its installer, or have started an earlier system from another disk; "
    "correct hwaccel_host_key if the machine is right"
)
_REFUSED = "correct machine_boot_ssh_user and machine_boot_ssh_key; the installer may not have finished either"
_OTHER_DISK = (
    "correct the order of disks in its firmware, or hwaccel_install_device; then install it again by its name "
    "(machine_boot_power=cycle, machine_boot_named)"
)
