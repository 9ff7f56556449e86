# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two load balancers with one address: which of them has it, and how long clients wait when that changes."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import subprocess
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.load_balancer import places
from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import LOAD_PORT, Balanced, answers, load
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip

ADDRESS = "10.99.0.250"
#: Seconds, of the issue that asked for it.
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
        # As a cluster's services listen that has an address of its own: both are bound to it, whoever has it.
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
        """The one that has the address, as soon as one has it."""
        self.machines[0].wait("one has the address", lambda: len(self.holders()) == 1)
        return self.holders()[0]


@pytest.fixture(scope="module")
def pair(rig: BootRig, balanced: Balanced) -> Pair:
    made = Pair(rig, (rig.machine("lb-a"), rig.machine("lb-b")), balanced.hosts)
    made.done()
    return made


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


def test_a_reload_of_haproxy_loses_nothing_and_moves_no_address(pair: Pair, client: Host) -> None:
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


def taken_over(pair: Pair, client: Host, fail: c.Callable[[Machine], c.Callable[[], None]]) -> float:
    """How long clients were not answered, in seconds."""
    holder = pair.holder()
    taker = other(pair, holder)
    with answers(client, ADDRESS, LOAD_PORT) as times:
        holder.wait("clients are served", lambda: len(times) > 10)
        repair = fail(holder)
        try:
            failed = time.time()
            taker.wait("the other has the address", lambda: holds(taker))
            count = len(times)
            taker.wait("clients are served by the other", lambda: len(times) > count + 10)
        finally:
            repair()
    # One that comes back does not take the address from one that works.
    holder.wait(
        "it looks at itself again",
        lambda: "Entering BACKUP STATE" in holder.sh("journalctl -u keepalived --no-pager | tail -3"),
    )
    assert pair.holders() == [taker]
    return max(later - earlier for earlier, later in itertools.pairwise(time for time in times if time > failed - 5))


@pytest.mark.parametrize("fail", [stop_haproxy, lose_power, hang_haproxy], ids=["stopped", "lost", "hangs"])
def test_the_other_takes_over_and_keeps_the_address(
    pair: Pair, client: Host, fail: c.Callable[[Machine], c.Callable[[], None]]
) -> None:
    print(f"no answer for {taken_over(pair, client, fail):.2f} s")


@pytest.mark.slow
@pytest.mark.parametrize("fail", [stop_haproxy, lose_power], ids=["stopped", "lost"])
def test_clients_wait_less_than_two_seconds(
    pair: Pair, client: Host, fail: c.Callable[[Machine], c.Callable[[], None]]
) -> None:
    """On a machine that has nothing else to do, five times in a row."""
    silences = [taken_over(pair, client, fail) for _turn in range(5)]
    print("no answer for " + ", ".join(f"{silence:.2f} s" for silence in silences))
    assert max(silences) < FAILOVER


def deafen(pair: Pair, verb: str) -> None:
    """Whether they hear what is sent to all routers of VRRP (RFC 5798, 5.1.1.2)."""
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
def test_by_multicast_they_know_of_each_other_as_well(pair: Pair, client: Host) -> None:
    """Who hears nobody takes the address: of two that do not hear each other, both."""
    pair.done(load_balancer_unicast=False)
    assert not any("unicast" in machine.read(places.KEEPALIVED) for machine in pair.machines)
    taken_over(pair, client, stop_haproxy)
    deafen(pair, "--insert")
    try:
        pair.machines[0].wait(
            "both have the address: it was by multicast that they knew", lambda: len(pair.holders()) == 2
        )
    finally:
        deafen(pair, "--delete")
    pair.done()
    pair.holder()
