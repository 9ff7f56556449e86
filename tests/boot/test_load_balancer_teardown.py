# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Teardown of a load balancer: the last test, because the others need the service."""

from __future__ import annotations

from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import Balanced

EXISTING = "frontend theirs\n    bind *:7443\n    mode tcp\n    timeout client 1m\n"


def test_the_service_uses_its_own_file_again_and_installed_packages_are_removed(balanced: Balanced) -> None:
    machine = balanced.machine
    balanced.done()
    before = machine.read("/etc/haproxy/haproxy.cfg")
    assert balanced.done(load_balancer_entry="teardown").changed() > 0
    assert (
        machine.sh(
            "ls /etc/hwaccel-gpu/load_balancer /var/lib/hwaccel-gpu/load_balancer /etc/systemd/system/haproxy.service.d/* 2>/dev/null || :"
        )
        == ""
    )
    assert machine.sh("systemctl is-active haproxy || :").strip() == "inactive"
    assert machine.sh("dpkg -l haproxy | tail -1").split()[0] == "rc"
    assert machine.read("/etc/haproxy/haproxy.cfg") == before
    assert balanced.done(load_balancer_entry="teardown").changed() == 0


def test_an_existing_haproxy_is_replaced_only_when_requested_and_restored_also_after_a_kill(
    balanced: Balanced,
) -> None:
    machine = balanced.machine
    machine.sh("apt-get -qq install --yes --no-install-recommends haproxy", seconds=300)
    theirs = machine.read("/etc/haproxy/haproxy.cfg") + EXISTING
    machine.write("/etc/haproxy/haproxy.cfg", theirs)
    machine.sh("systemctl restart haproxy")
    assert "HAProxy serves with an existing configuration" in balanced.refused()
    balanced.done(load_balancer_replace=True)
    assert machine.sh("ss -Hlnt 'sport = :7443'") == ""
    # Between this and the restart of the service, only the record on disk shows what remains to be done.
    balanced.killed_before("restart", load_balancer_entry="teardown")
    assert machine.sh("ls /etc/systemd/system/haproxy.service.d/hwaccel-gpu.conf 2>/dev/null || :") == ""
    assert machine.sh("ss -Hlnt 'sport = :7443'") == ""
    balanced.done(load_balancer_entry="teardown")
    assert "7443" in machine.sh("ss -Hlnt 'sport = :7443'")
    assert machine.read("/etc/haproxy/haproxy.cfg") == theirs
