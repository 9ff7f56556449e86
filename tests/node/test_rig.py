# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig itself: its containers behave like machines."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.node.rig.cluster import Rig


def test_a_machine_keeps_disk_and_network_across_a_reboot_and_loses_the_contents_of_run(rig: Rig) -> None:
    machine = rig.machine("m1")
    machine.write("/etc/kept", "yes")
    machine.write("/run/lost", "yes")
    machine.plug_device("0000:01:00.0", "0x10de", "0x2330", "0x030200")
    before = machine.sh("cat /sys/bus/pci/devices/0000:01:00.0/vendor; hostname -I; uname -n")
    machine.reboot()
    assert machine.sh("cat /sys/bus/pci/devices/0000:01:00.0/vendor; hostname -I; uname -n") == before
    assert before.split() == ["0x10de", machine.address, "m1"]
    assert machine.read("/etc/kept") == "yes"
    assert machine.sh("test ! -e /run/lost && findmnt -no PROPAGATION /").strip() == "shared"
