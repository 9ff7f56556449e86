# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of a machine by IPMI: ipmitool on a machine that reaches the BMC, and a BMC that is simulated."""

from __future__ import annotations

import typing as t

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.ipmi import DEAF, Chassis
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

PASSWORD = "planted-0815-secret"


def test_a_machine_is_switched_by_ipmi_and_what_goes_wrong_is_told(rig: BootRig) -> None:
    chassis = Chassis(rig.machine("bastion"), PASSWORD)
    common = {"machine_boot_from": "bastion", "machine_boot_bmc_retries": 0, "machine_boot_bmc_timeout": 6, **chassis.variables()}
    changed = ({}, {"hwaccel_bmc_password": "wrong", "hwaccel_bmc_system": "1"}, {"hwaccel_bmc_address": f"127.0.0.1:{DEAF}"})
    workers = {
        f"worker-{number}": {**common, "hwaccel_mac": f"52:54:00:77:00:1{number}", "hwaccel_address": f"10.77.0.1{number}", **own}
        for number, own in enumerate(changed)
    }

    def play(*arguments: str, among: t.Sequence[str] = ("worker-0",)) -> Run:
        return rig.play("machine_boot", {"workers": {name: workers[name] for name in among}, "hypervisors": {"bastion": {}}}, *arguments)

    first = play("--check")
    assert first.rc == 0, first.stdout
    assert chassis.asked() == []

    done = play("-vvv", among=list(workers))
    assert PASSWORD not in done.stdout
    assert done.failures_of("worker-0") == []
    assert chassis.asked() == ["boot pxe", "power 1"]
    assert "its BMC refuses the credentials" in done.failures_of("worker-1")[-1]
    assert "its BMC does not answer in time" in done.failures_of("worker-2")[-1]

    again = play()
    assert (again.rc, again.changed()) == (0, 0)
    assert chassis.asked() == ["boot pxe", "power 1"]

    off = play("-e", "machine_boot_named=worker-0", "-e", "machine_boot_power=off")
    assert off.rc == 0, off.stdout
    assert chassis.asked() == ["boot pxe", "power 1", "shutdown 1"], "its power was not cut"
