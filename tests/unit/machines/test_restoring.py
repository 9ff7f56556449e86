# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Teardown of a host role that points services to its own files."""

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


def test_a_service_is_as_it_was_before() -> None:
    assert actions(machine(DROP_IN)) == [("haproxy", "restarted", True)]
    assert actions(machine(DROP_IN, kept=Record())) == [("haproxy", "stopped", False)]


def test_a_teardown_that_was_cut_off_before_a_service_was_given_back_is_made_up_for_by_the_next() -> None:
    host = machine(DROP_IN)
    begun = restored(host)["record"]
    del host.files[DROP_IN]
    assert actions(host) == [], "nothing tells of it"
    host.files[record.path(ROLE)] = File(record.path(ROLE), begun)
    assert actions(host) == [("haproxy", "restarted", True)]
    assert restored(host)["record"] == "", "it is recorded"


def test_a_service_whose_package_is_gone_has_nothing_to_become() -> None:
    host = machine(DROP_IN, unit=Unit())
    assert (actions(host), restored(host)["record"], restored(host)["reload_units"]) == ([], "", False)
    assert restored(host)["absent"] == [FOLDER]


def test_the_folder_of_a_drop_in_stays_where_somebody_has_put_another_one_beside_it() -> None:
    host = machine(DROP_IN)
    assert restored(host)["absent"] == [FOLDER]
    theirs = dataclasses.replace(host, files={**host.files, f"{FOLDER}/limits.conf": File(f"{FOLDER}/limits.conf", "")})
    assert restored(theirs)["absent"] == [DROP_IN]
    assert restoring.beside([DROP_IN]) == (f"{FOLDER}/*",), "which the look has to ask for"


def test_the_record_goes_last_with_the_packages_before_it() -> None:
    made = restored(machine(DROP_IN))
    assert made["packages"] == ["keepalived"]
    assert made["removed"] == ["/etc/ours", record.folder(ROLE)]


def test_where_the_role_has_not_run_nothing_goes() -> None:
    made = restored(Host())
    assert [made[key] for key in ("absent", "actions", "packages", "firewall", "record")] == [[], [], [], [], ""]
