# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a host role's changes, also in the formats of earlier versions."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines import record
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.record import FileBefore, Record, Service

OPENING = {"port": 80, "source": "10.0.0.0/24", "protocol": "tcp"}
#: By role, the text that 0.1.0 wrote, and its content.
EARLIER: dict[str, tuple[dict[str, t.Any], Record]] = {
    "load_balancer": (
        {"packages": ["haproxy"], "active": ["haproxy"], "enabled": [], "openings": [OPENING]},
        Record(("haproxy",), {"haproxy": Service(active=True)}, (OPENING,)),
    ),
    "dns_pxe": (
        {"packages": ["nginx"], "services": {"nginx": {"active": False, "enabled": True}}},
        Record(("nginx",), {"nginx": Service(enabled=True)}),
    ),
    "node_runtime": (
        {
            "files": {"/a": {"existed": True, "written": "00"}},
            "packages": [],
            "settings": {"container_use_devices": "off"},
        },
        Record(files={"/a": FileBefore(existed=True, written="00")}, settings={"container_use_devices": "off"}),
    ),
}


def having(role: str, text: str) -> Host:
    path = record.path(role)
    return Host(files={path: File(path, text)})


@pytest.mark.parametrize("role", EARLIER)
def test_records_of_earlier_versions_are_read_and_not_converted(role: str) -> None:
    written, expected = EARLIER[role]
    machine = having(role, json.dumps(written))
    assert record.read(machine, role) == expected
    assert record.changed(machine, role, expected) == ""


@pytest.mark.parametrize("role", EARLIER)
def test_a_written_record_can_be_read(role: str) -> None:
    _written, expected = EARLIER[role]
    assert record.read(having(role, record.changed(Host(), role, expected)), role) == expected


def test_without_a_run_there_is_no_record() -> None:
    assert record.read(Host(), "dns_pxe") is None
    assert record.faults(Host(), "dns_pxe") == []


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"packages": 1}', '{"packages": [], "services": {"a": {"b": 1}}}'])
def test_a_damaged_record_stops_the_run_with_its_path(text: str) -> None:
    machine = having("dns_pxe", text)
    with pytest.raises(
        HwaccelError, match=r"damaged \(/var/lib/hwaccel-gpu/dns_pxe/record.json\): .*Next: restore it from a backup"
    ):
        record.read(machine, "dns_pxe")
    assert [fault.where for fault in record.faults(machine, "dns_pxe")] == [record.path("dns_pxe")]
