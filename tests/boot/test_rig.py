# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig itself: machines install packages without a network, and hosts can connect to them."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig


def test_machines_install_services_to_which_hosts_can_connect(rig: BootRig) -> None:
    machine, client = rig.machine("m1"), rig.host("c1")
    machine.sh("apt-get -qq update && apt-get -qq install --yes --no-install-recommends nginx", seconds=300)
    assert machine.sh("systemctl is-active nginx").strip() == "active"
    assert "200 OK" in client.run("busybox", "wget", "-S", "-O", "/dev/null", f"http://{machine.address}/").stderr
