# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a sandbox to its desired state: the module's logic, without Ansible."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import fleet as fleets
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import fleet_file, process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.client import ControlPlane
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import COMPONENTS, command
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import Components
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import (
    Layout,
    locked,
    read_json,
    write_if_changed,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.supervisor import Run, Steps, Supervisor

EMPTY_FLEET: dict[str, t.Any] = {"time_scale": 0.1, "seed": 1, "images": [], "nodes": {}}


@dataclasses.dataclass(frozen=True)
class FleetAsk:
    """The desired fleet; None leaves a part unchanged."""

    #: Content of a fleet file.
    declared: t.Any = None
    faults: list[dict[str, t.Any]] | None = None
    reboot: list[dict[str, t.Any]] | None = None


def plan_fleet(layout: Layout, ask: FleetAsk) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    """(the desired fleet, its record). Raises ManyFaults. Writes nothing."""
    record = read_json(layout.record)
    before = read_json(layout.fleet)
    declared = fleet_file.parse(ask.declared) if ask.declared is not None else record.get("declared", EMPTY_FLEET)
    requested = (
        ask.faults
        if ask.faults is not None
        else [one for one in record.get("faults", []) if _still_there(one, declared)]
    )
    reboots = fleets.check_reboots(ask.reboot, declared["nodes"])
    after = fleets.advance(before, fleets.with_faults(declared, requested), reboots)
    return after, {"declared": declared, "faults": requested}


def _still_there(fault: dict[str, t.Any], declared: dict[str, t.Any]) -> bool:
    nodes = declared["nodes"]
    return fault.get("node") in nodes or any(node["pool"] == fault.get("pool") for node in nodes.values())


def write_fleet(layout: Layout, run: Run, ask: FleetAsk) -> dict[str, t.Any]:
    """Determines the fleet and writes it for the agent. A reboot is done once a run, regardless of the number of slices."""
    before = read_json(layout.fleet)
    after, kept = plan_fleet(layout, ask)
    layout.make_folders()
    record = read_json(layout.record)
    # The record is written first, so that after an interruption the next run still finds the old fleet.json and continues.
    write_if_changed(layout.record, json.dumps({**record, **kept}, indent=1) + "\n")
    write_if_changed(layout.fleet, json.dumps(after, indent=1) + "\n")
    for line in fleet_changes(before, after):
        run.did(line)
    return after


def rebooted(before: dict[str, t.Any], after: dict[str, t.Any]) -> list[str]:
    old = before.get("nodes", {})
    return [name for name, node in after["nodes"].items() if name in old and node["boot"] != old[name]["boot"]]


count_by_pool = fleets.count_by_pool


def fleet_changes(before: dict[str, t.Any], after: dict[str, t.Any]) -> list[str]:
    """Changes of the fleet, one line for each kind of change."""
    old, new = before.get("nodes", {}), after["nodes"]
    restarts = rebooted(before, after)
    altered = [name for name in new if name in old and name not in restarts and new[name] != old[name]]
    groups = [
        ("added", [name for name in new if name not in old]),
        ("removed", [name for name in old if name not in new]),
        ("rebooted", restarts),
        ("changed", altered),
    ]
    lines = [f"nodes {verb}: {_listed(names)}" for verb, names in groups if names]
    moved = [key for key in ("time_scale", "seed", "images") if before and before.get(key) != after[key]]
    return lines + [f"{key} is now {after[key]}" for key in moved]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def start(supervisor: Supervisor, ask: FleetAsk, limit: float) -> Steps:
    """Starts the sandbox with its fleet. Yields progress lines."""
    layout, run = supervisor.layout, supervisor.run
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(layout.root):
        restarts = rebooted(read_json(layout.fleet), plan_fleet(layout, ask)[0])
        run.boot_ids |= supervisor.boot_ids(restarts)
        after = write_fleet(layout, run, ask)
        yield from supervisor.bring_up()
        if supervisor.has_agent:
            yield from supervisor.wait_for_nodes(after["nodes"], limit)


def stop(layout: Layout, run: Run) -> None:
    """Stops the processes and keeps the data."""
    if layout.root.is_dir():
        with locked(layout.root):
            _halt(layout, run, 8)


def remove(layout: Layout, run: Run) -> None:
    """Stops the processes and deletes everything."""
    if not layout.root.exists():
        return
    if any(layout.root.iterdir()) and not (layout.record.exists() or layout.pki.exists() or layout.bin.exists()):
        why = "it contains neither a record nor certificates of a sandbox"
        raise HwaccelError(
            "this folder is not a sandbox and is not deleted",
            str(layout.root),
            why,
            "correct state_dir, or delete it manually",
        )
    with locked(layout.root):
        _halt(layout, run, 0)
        run.did(f"deleted {layout.root}")
        shutil.rmtree(layout.root)


def _halt(layout: Layout, run: Run, patience: float) -> None:
    Supervisor(layout, {}, {}, None, "", run).halt(patience)


def predict_start(supervisor: Supervisor, ask: FleetAsk) -> Run:
    """What `start` would do, without any change."""
    layout, run = supervisor.layout, Run()
    after, _kept = plan_fleet(layout, ask)
    for line in fleet_changes(read_json(layout.fleet), after):
        run.did(line)
    for name in supervisor.components:
        now = process.known(layout.pid_file(name))
        if not process.running(now):
            run.did(f"start {name}" + (", it has died" if now else ""))
        elif now and supervisor.programs and command(supervisor.plan(), name).digest != now.digest:
            run.did(f"restart {name}: its program or configuration has changed")
    return run


def predict_stop(layout: Layout, *, absent: bool) -> Run:
    run = Run()
    for name in COMPONENTS:
        if process.running(process.known(layout.pid_file(name))):
            run.did(f"stop {name}")
    if absent and layout.root.exists():
        run.did(f"delete {layout.root}")
    return run


def describe(layout: Layout, components: Components | None = None) -> dict[str, t.Any]:
    """The sandbox in the format of results."""
    rows = []
    for name in COMPONENTS:
        now = process.known(layout.pid_file(name))
        if process.running(now) and now:
            rows.append({"component": name, "pid": now.pid, "log": str(layout.log(name))})
    fleet = read_json(layout.fleet)
    values: dict[str, t.Any] = {
        "kubeconfig": str(layout.kubeconfig),
        "audit_log": str(layout.audit_log),
        "state_dir": str(layout.root),
        "processes": rows,
        "pools": fleets.count_by_pool(fleet),
        "nodes": len(fleet.get("nodes", {})),
    }
    if components:
        values["components"] = {
            "source": components.source,
            "folder": components.folder,
            "verified": components.verified,
        }
    return values


def version(layout: Layout) -> str:
    return ControlPlane(layout.pki, read_json(layout.record)["ports"]).version()


def supervisor_for(
    layout: Layout, components: Components, sources: pathlib.Path | None, python: str, run: Run
) -> Supervisor:
    return Supervisor(layout, components.paths(), components.digests, sources, python, run)
