# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role machine_boot asks: results of its tasks in, plain data out. Pure. Private to the collection: it can change in any release."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._metal.machine_boot import asked as asking
from ansible_collections.hwaccel.gpu.plugins.module_utils._metal.machine_boot import ipmi, journal, plan, redfish, seen
from ansible_collections.hwaccel.gpu.plugins.module_utils._metal.machine_boot.asked import Asked
from ansible_collections.hwaccel.gpu.plugins.module_utils._metal.machine_boot.seen import Seen

_Data = c.Mapping[str, t.Any]


def planned(entry: _Data, looked: _Data, nodes: _Data, booted: bool, ended: bool = False) -> dict[str, t.Any]:
    """looked: result of the task that has asked the machine's BMC. nodes: what its cluster has said. booted, ended: what logs have said."""
    asked = asking.read(entry)
    joined = seen.joined(entry.get("nodes") or [asked.name], nodes)
    result = {"told": [], "faults": [], "steps": [], "back": [], "power": "", "started": False, "joined": joined.state}
    try:
        found = _seen(asked, looked)
    except redfish.NoSuchSystem as error:
        return {**result, "faults": [seen.refused(asked.name, asked.bmc.address, f"not found: {error}").as_dict()]}
    if found is None:
        said = str(looked.get("msg") or looked.get("stderr") or "")
        return {**result, "faults": [seen.refused(asked.name, asked.bmc.address, said).as_dict()]}
    made = plan.plan(asked, found, joined)
    back = plan.back(asked, found, joined, booted, ended)
    return {
        **result, "told": made.told, "faults": [fault.as_dict() for fault in made.faults], "steps": plan.done_by(asked, found, made.steps),
        "back": plan.done_by(asked, found, back), "power": found.power, "started": made.started,
    }  # fmt: skip


def _seen(asked: Asked, looked: _Data) -> Seen | None:
    """None where nothing could be read."""
    if asked.provider == asking.REDFISH:
        return redfish.read(looked["redfish_facts"], asked.bmc.system, looked.get("managers")) if looked.get("redfish_facts") else None
    return None if looked.get("rc") else ipmi.read(str(looked["stdout"]))


def judged(read: c.Sequence[_Data], entry: _Data, awaited: str, nodes: _Data | None = None) -> dict[str, t.Any]:
    """How far a machine has come. read: results of the task that has read logs, the last of a boot server counts. nodes: what its cluster has said since."""
    asked = asking.read(entry)
    logs = {one.get("item", ""): one["stdout_lines"] for one in read if "stdout_lines" in one}
    joined = seen.joined(entry.get("nodes") or [asked.name], nodes or {}).state == seen.YES
    media = asked.boot == asking.MEDIA
    found = journal.verdict(asked.machine, [line for lines in logs.values() for line in lines], joined, media)
    # A boot server that has sent a loader sends what comes after it; an address is offered by all of them.
    sending = [name for name, lines in logs.items() if journal.verdict(asked.machine, lines).at_least(journal.LOADER)]
    return {
        "stage": found.stage, "text": found.text, "next_step": found.next_step, "done": found.at_least(awaited), "sending": sending,
        "loaded": found.at_least(journal.ADDRESS if media else journal.KERNEL), "ended": found.at_least(journal.REPORTED),
    }  # fmt: skip
