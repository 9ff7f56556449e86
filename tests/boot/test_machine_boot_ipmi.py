# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of a virtual machine by IPMI: ipmitool on a machine that reaches its BMC, which is simulated."""

from __future__ import annotations

import collections.abc as c
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.boot.rig.ipmi import VirtualBmc
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run

pytestmark = pytest.mark.slow
PASSWORD = "planted-0815-secret"


@pytest.fixture
def virtual(rig: BootRig) -> c.Iterator[VirtualBmc]:
    made = VirtualBmc(rig, "worker-0", PASSWORD)
    yield made
    rig.remove(made.hypervisor.machine)


def test_virtualbmc_switches_the_virtual_machine_that_it_is_before(rig: BootRig, virtual: VirtualBmc) -> None:
    common = {
        "machine_boot_from": "hyper",
        "machine_boot_bmc_retries": 0,
        "machine_boot_shutdown_timeout": 5,
        **virtual.variables(),
    }
    wrong = {"hwaccel_bmc_password": "wrong", "hwaccel_bmc_system": "1"}
    workers = {
        f"worker-{number}": {
            **common,
            "hwaccel_mac": f"52:54:00:77:00:2{number}",
            "hwaccel_address": f"10.77.0.2{number}",
            "hwaccel_firmware": "bios",
            **own,
        }
        for number, own in enumerate(({}, wrong))
    }

    def play(*arguments: str, among: t.Sequence[str] = ("worker-0",)) -> Run:
        return rig.play(
            "machine_boot",
            {"workers": {name: workers[name] for name in among}, "hypervisors": {"hyper": {}}},
            *arguments,
        )

    assert virtual.state() == ("shut off", ["hd"])
    done = play("-vvv", among=list(workers))
    assert PASSWORD not in done.stdout
    assert done.failures_of("worker-0") == []
    assert virtual.state() == ("running", ["network"])
    assert "its BMC refuses the credentials" in done.failures_of("worker-1")[-1]
    again = play()
    assert (again.rc, again.changed()) == (0, 0), again.stdout[-6000:]

    off = play("-e", "machine_boot_named=worker-0", "-e", "machine_boot_power=off")
    assert off.rc == 0, off.stdout[-6000:]
    assert virtual.state() == ("shut off", ["network"])
    assert off.stdout.index("shut down: off is requested, within 5 s") < off.stdout.index(
        "power off: only if it is still on after 5 s"
    )
