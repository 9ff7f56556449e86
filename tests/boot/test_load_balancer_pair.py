# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two load balancers with one virtual address: which of them has it, and how long clients wait during a failover."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import subprocess
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import places
from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import LOAD_PORT, Balanced, load, response_times
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip

ADDRESS = "10.99.0.250"
#: Maximum duration of a failover in seconds, as required.
FAILOVER = 2.0


@dataclasses.dataclass(frozen=True)
class Pair:
    rig: BootRig
    machines: tuple[Machine, Machine]
    members: dict[str, Host]

    def done(self, **changed: t.Any) -> Run:
        members = [
            {"name": name, "address": host.address} for name, host in self.members.items() if name.startswith("master")
        ]
        # Services of a cluster with its own address are bound to it on both machines, although only one has it.
        service = {
            "name": "load",
            "port": LOAD_PORT,
            "address": ADDRESS,
            "members": members,
            "check": {"type": "http", "interval": "500ms"},
        }
        variables = {"load_balancer_services": [service], "load_balancer_virtual_addresses": f"{ADDRESS}/24", **changed}
        run = self.rig.play("load_balancer", {"load_balancers": {machine.name: variables for machine in self.machines}})
        assert run.rc == 0, run.stdout
        return run

    def holders(self) -> list[Machine]:
        return [machine for machine in self.machines if holds(machine)]

    def holder(self) -> Machine:
        """Waits until exactly one machine has the address, and returns that."""
        self.machines[0].wait("one machine has the address", lambda: len(self.holders()) == 1)
        return self.holders()[0]


@pytest.fixture(scope="module")
def pair(rig: BootRig, balanced: Balanced) -> Pair:
    pair = Pair(rig, (rig.machine("lb-a"), rig.machine("lb-b")), balanced.hosts)
    pair.done()
    return pair


@pytest.fixture(scope="module")
def client(rig: BootRig) -> Host:
    return rig.host("visitor")


def holds(machine: Machine) -> bool:
    return f" {ADDRESS}/" in machine.sh("ip -o address show dev eth0")


def other(pair: Pair, machine: Machine) -> Machine:
    return next(one for one in pair.machines if one is not machine)


def test_a_second_run_changes_nothing(pair: Pair) -> None:
    pair.holder()
    assert pair.done().changed() == 0


def test_a_reload_of_haproxy_loses_no_request_and_does_not_move_the_address(pair: Pair, client: Host) -> None:
    holder = pair.holder()
    with load(client, ADDRESS, 200) as end:
        for _reload in range(3):
            holder.sh("systemctl reload haproxy")
            assert pair.holders() == [holder]
        done = end()
    assert done.lost == []
    assert pair.holders() == [holder]


def stop_haproxy(machine: Machine) -> c.Callable[[], None]:
    machine.sh("systemctl stop haproxy")
    return lambda: machine.sh("systemctl start haproxy") and None


def hang_haproxy(machine: Machine) -> c.Callable[[], None]:
    machine.sh("systemctl kill --signal STOP haproxy")
    return lambda: machine.sh("systemctl kill --signal CONT haproxy") and None


def lose_power(machine: Machine) -> c.Callable[[], None]:
    ip("link", "set", machine.port.cable, "down")
    return lambda: ip("link", "set", machine.port.cable, "up")


def fail_over(pair: Pair, client: Host, fail: c.Callable[[Machine], c.Callable[[], None]]) -> float:
    """Seconds in which clients got no response."""
    holder = pair.holder()
    taker = other(pair, holder)
    with response_times(client, ADDRESS, LOAD_PORT) as times:
        holder.wait("clients get responses", lambda: len(times) > 10)
        repair = fail(holder)
        try:
            failed = time.time()
            taker.wait("the other machine has the address", lambda: holds(taker))
            count = len(times)
            taker.wait("clients get responses from the other machine", lambda: len(times) > count + 10)
        finally:
            repair()
    # A recovered machine does not take the address from a healthy one.
    holder.wait(
        "the recovered machine is a backup",
        lambda: "Entering BACKUP STATE" in holder.sh("journalctl -u keepalived --no-pager | tail -3"),
    )
    assert pair.holders() == [taker]
    return max(later - earlier for earlier, later in itertools.pairwise(time for time in times if time > failed - 5))


@pytest.mark.parametrize("fail", [stop_haproxy, lose_power, hang_haproxy], ids=["stopped", "lost", "hangs"])
def test_the_other_machine_takes_over_and_keeps_the_address(
    pair: Pair, client: Host, fail: c.Callable[[Machine], c.Callable[[], None]]
) -> None:
    print(f"no response for {fail_over(pair, client, fail):.2f} s")


@pytest.mark.slow
@pytest.mark.parametrize("fail", [stop_haproxy, lose_power], ids=["stopped", "lost"])
def test_clients_wait_less_than_two_seconds(
    pair: Pair, client: Host, fail: c.Callable[[Machine], c.Callable[[], None]]
) -> None:
    """On an idle machine, five times in a row."""
    outages = [fail_over(pair, client, fail) for _turn in range(5)]
    print("no response for " + ", ".join(f"{outage:.2f} s" for outage in outages))
    assert max(outages) < FAILOVER


def filter_multicast(pair: Pair, verb: str) -> None:
    """Inserts or deletes a firewall rule that drops packets to all VRRP routers (RFC 5798, 5.1.1.2)."""
    for machine in pair.machines:
        inside = (
            "nsenter",
            f"--net={machine.port.namespace}",
            "iptables",
            verb,
            "INPUT",
            "--destination",
            "224.0.0.18",
            "--jump",
            "DROP",
        )
        subprocess.run(inside, check=True, capture_output=True, text=True, timeout=240)


@pytest.mark.slow
def test_failover_works_with_multicast_as_well(pair: Pair, client: Host) -> None:
    """A machine that receives no advertisements takes the address, so without multicast both have it."""
    pair.done(load_balancer_unicast=False)
    assert not any("unicast" in machine.read(places.KEEPALIVED) for machine in pair.machines)
    fail_over(pair, client, stop_haproxy)
    filter_multicast(pair, "--insert")
    try:
        pair.machines[0].wait("both machines have the address without multicast", lambda: len(pair.holders()) == 2)
    finally:
        filter_multicast(pair, "--delete")
    pair.done()
    pair.holder()
