# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Teardown of a host role that configures services to use its own files."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record, restoring
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host, Unit
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import Record, Service

ROLE, FOLDER = "load_balancer", "/etc/systemd/system/haproxy.service.d"
DROP_IN = f"{FOLDER}/hwaccel-gpu.conf"
KEPT = Record(packages=("keepalived",), services={"haproxy": Service(active=True, enabled=True)})


def machine(*paths: str, kept: Record = KEPT, unit: Unit | None = None) -> Host:
    texts = {record.path(ROLE): kept.as_text(), **dict.fromkeys(paths, "")}
    files = {path: File(path, text) for path, text in texts.items()}
    return Host(files=files, units={"haproxy": unit or Unit(loaded=True, active=True)})


def restored(host: Host) -> dict[str, t.Any]:
    return restoring.restored(host, ROLE, {"haproxy": DROP_IN}, removed=["/etc/ours"])


def actions(host: Host) -> list[tuple[str, str, bool]]:
    return [(one["unit"], one["state"], one["enabled"]) for one in restored(host)["actions"]]


def test_the_previous_state_of_a_service_is_restored() -> None:
    assert actions(machine(DROP_IN)) == [("haproxy", "restarted", True)]
    assert actions(machine(DROP_IN, kept=Record())) == [("haproxy", "stopped", False)]


def test_a_teardown_that_was_interrupted_before_a_service_was_restored_is_completed_by_the_next() -> None:
    host = machine(DROP_IN)
    first_record = restored(host)["record"]
    del host.files[DROP_IN]
    assert actions(host) == [], "there is no trace of it"
    host.files[record.path(ROLE)] = File(record.path(ROLE), first_record)
    assert actions(host) == [("haproxy", "restarted", True)]
    assert restored(host)["record"] == "", "it is recorded"


def test_a_service_without_a_package_needs_no_action() -> None:
    host = machine(DROP_IN, unit=Unit())
    assert (actions(host), restored(host)["record"], restored(host)["reload_units"]) == ([], "", False)
    assert restored(host)["absent"] == [FOLDER]


def test_the_folder_of_a_drop_in_stays_if_it_has_another_file() -> None:
    host = machine(DROP_IN)
    assert restored(host)["absent"] == [FOLDER]
    with_other_file = dataclasses.replace(
        host, files={**host.files, f"{FOLDER}/limits.conf": File(f"{FOLDER}/limits.conf", "")}
    )
    assert restored(with_other_file)["absent"] == [DROP_IN]
    assert restoring.beside([DROP_IN]) == (f"{FOLDER}/*",), "which must be part of the observation"


def test_the_record_is_removed_last_after_the_packages() -> None:
    result = restored(machine(DROP_IN))
    assert result["packages"] == ["keepalived"]
    assert result["removed"] == ["/etc/ours", record.folder(ROLE)]


def test_without_a_run_nothing_is_removed() -> None:
    result = restored(Host())
    assert [result[key] for key in ("absent", "actions", "packages", "firewall", "record")] == [[], [], [], [], ""]
