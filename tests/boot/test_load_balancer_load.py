# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests through a load balancer while it changes: none is lost but those that a dying member had in its hands.

A new connection for each request, all the time. What is lost is counted by the client.
"""

from __future__ import annotations

import re
import time

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import Balanced, load
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host

RATE = 600
#: So many connections a client has at a time: client.py.
OPEN = 400
MASTERS = {f"master-{number}": "UP" for number in range(3)}


@pytest.fixture(scope="module")
def client(rig: BootRig) -> Host:
    return rig.host("client")


@pytest.fixture(scope="module")
def serving(balanced: Balanced) -> Balanced:
    """With bootstrap among its members."""
    balanced.api.status = "progressing"
    balanced.done()
    balanced.machine.wait("members are up", lambda: balanced.servers("ocp-load") == {"bootstrap-0": "UP", **MASTERS})
    return balanced


def reload(balanced: Balanced) -> None:
    """As `systemctl reload` has it, until another process answers."""
    before = balanced.worker()
    balanced.machine.sh("systemctl reload haproxy")
    balanced.machine.wait("another worker serves", lambda: balanced.worker() != before)


def bootstrap_goes_and_comes(balanced: Balanced) -> None:
    """By the role itself, as the cluster says how far it is."""
    balanced.api.status = "complete"
    told = balanced.done().stdout
    assert "ocp-load: bootstrap-0 is drained before it is removed" in told
    assert balanced.servers("ocp-load") == MASTERS
    balanced.api.status = "progressing"
    balanced.done()
    balanced.machine.wait(
        "bootstrap is a member again", lambda: balanced.servers("ocp-load") == {"bootstrap-0": "UP", **MASTERS}
    )


def test_nothing_is_lost_while_bootstrap_goes_and_comes_and_haproxy_is_reloaded(
    serving: Balanced, client: Host
) -> None:
    with load(client, serving.machine.address, RATE) as end:
        bootstrap_goes_and_comes(serving)
        for _reload in range(5):
            reload(serving)
        done = end()
    print(f"{done.asked} requests in {done.seconds:.0f} s, lost: {done.lost}")
    assert done.lost == []
    # On a busy machine the client comes to less than it wants.
    assert done.asked > RATE / 4 * done.seconds
    assert set(done.answers) == {"bootstrap-0", *MASTERS}


def test_a_dying_member_loses_only_what_it_has_in_its_hands(serving: Balanced, client: Host) -> None:
    serving.hosts["master-1"].stop_programs()
    process = serving.serve("master-1")
    serving.machine.wait("it is a member", lambda: serving.servers("ocp-load")["master-1"] == "UP")
    with load(client, serving.machine.address, RATE) as end:
        serving.machine.wait("it has had requests", lambda: requests(serving, "master-1") > 100)
        killed = time.time()
        process.kill()
        serving.machine.wait("it is no member any more", lambda: serving.servers("ocp-load")["master-1"] == "DOWN")
        noticed = time.time()
        done = end()
    serving.serve("master-1")
    serving.machine.wait("it is a member again", lambda: serving.servers("ocp-load")["master-1"] == "UP")
    print(f"{done.asked} requests in {done.seconds:.0f} s, lost: {done.lost}")
    # What cannot be connected goes to another member: lost is what the dead one had, and that is a part of what a client has open at a time.
    assert all(killed - 0.5 < when < noticed + 0.5 for when, _how in done.lost), done.lost
    assert len(done.lost) < OPEN / len(serving.servers("ocp-load"))


def requests(balanced: Balanced, member: str) -> int:
    row = re.search(rf"^ocp-load,{member},(?:[^,]*,){{5}}(\d+),", balanced.told("show stat"), re.MULTILINE)
    assert row
    return int(row[1])


def test_a_restart_instead_of_a_reload_loses_requests(serving: Balanced, client: Host) -> None:
    """That the client sees what is lost."""
    with load(client, serving.machine.address, RATE) as end:
        for _restart in range(3):
            serving.machine.sh("systemctl kill --signal KILL haproxy; systemctl restart haproxy")
        done = end()
    serving.machine.wait("members are up", lambda: serving.servers("ocp-load") == {"bootstrap-0": "UP", **MASTERS})
    print(f"{done.asked} requests in {done.seconds:.0f} s, {len(done.lost)} lost")
    assert done.lost


@pytest.mark.slow
def test_nothing_is_lost_of_a_hundred_thousand_requests_over_forty_reloads(serving: Balanced, client: Host) -> None:
    reloads = 0
    with load(client, serving.machine.address, 800) as end:
        began = time.monotonic()
        while time.monotonic() - began < 180 or reloads < 40:
            bootstrap_goes_and_comes(serving)
            for _reload in range(10):
                reload(serving)
            reloads += 12
        done = end()
    print(
        f"{done.asked} requests in {done.seconds:.0f} s, {done.asked / done.seconds:.0f}/s, {reloads} reloads, lost: {done.lost}"
    )
    assert done.lost == []
    assert done.asked >= 100_000
    assert done.asked >= 500 * done.seconds
