# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Load balancers with a firewall: the role opens the ports of its services for their clients, and no others."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import Balanced
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig

#: Commands that start a firewall which allows ssh only, and that show its rules.
FIREWALLS = {
    "firewalld": ("systemctl enable --now firewalld", "firewall-cmd --permanent --list-all"),
    "ufw": ("ufw allow 22/tcp && ufw --force enable", "ufw status"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FIREWALLS))
def test_clients_have_access_to_their_services_only(rig: BootRig, balanced: Balanced, name: str) -> None:
    start, show = FIREWALLS[name]
    machine, hosts = rig.machine(f"lb-{name}"), balanced.hosts
    machine.sh(
        f"apt-get -qq update && apt-get -qq install --yes --no-install-recommends {name} && {start}", seconds=300
    )
    members: list[dict[str, t.Any]] = [{"name": "master-0", "address": hosts["master-0"].address}]
    services = [
        {"name": "open", "port": 8081, "member_port": 8080, "members": members},
        {
            "name": "inside",
            "port": 8082,
            "member_port": 8080,
            "members": members,
            "sources": [f"{hosts['master-1'].address}/32"],
        },
    ]
    group = {"load_balancers": {machine.name: {"load_balancer_services": services}}}
    before = machine.sh(show)
    run = rig.play("load_balancer", group)
    assert run.rc == 0, run.stdout
    assert rig.play("load_balancer", group).changed() == 0

    def request(client: str, port: int) -> int:
        """The exit status of curl."""
        return (
            hosts[client]
            .run("curl", "--silent", "--max-time", "3", f"http://{machine.address}:{port}/", check=False)
            .returncode
        )

    assert [request("master-1", 8081), request("worker-1", 8081), request("master-1", 8082)] == [0, 0, 0]
    assert request("worker-1", 8082) != 0
    services.pop()
    assert rig.play("load_balancer", group).changed() > 0
    assert "8082" not in machine.sh(show)
    assert rig.play("load_balancer", {"load_balancers": {machine.name: {"load_balancer_entry": "teardown"}}}).rc == 0
    assert machine.sh(show) == before
