# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests through a load balancer while it changes: only those that a failing member is processing are lost.

The client continuously opens a new connection for each request, and counts lost requests.
"""

from __future__ import annotations

import re
import time

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.balanced import Balanced, load
from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig, Host

RATE = 600
#: Maximum number of open connections of the client (client.py).
OPEN = 400
MASTERS = {f"master-{number}": "UP" for number in range(3)}


@pytest.fixture(scope="module")
def client(rig: BootRig) -> Host:
    return rig.host("client")


@pytest.fixture(scope="module")
def serving(balanced: Balanced) -> Balanced:
    """The load balancer, with bootstrap among its members."""
    balanced.api.status = "progressing"
    balanced.done()
    balanced.machine.wait(
        "all members are UP", lambda: balanced.servers("ocp-load") == {"bootstrap-0": "UP", **MASTERS}
    )
    return balanced


def reload(balanced: Balanced) -> None:
    """Reloads HAProxy, and waits until another worker runs."""
    before = balanced.worker()
    balanced.machine.sh("systemctl reload haproxy")
    balanced.machine.wait("another worker runs", lambda: balanced.worker() != before)


def remove_and_add_bootstrap(balanced: Balanced) -> None:
    """Runs the role while bootstrap is complete, and again while it is in progress."""
    balanced.api.status = "complete"
    output = balanced.done().stdout
    assert "ocp-load: bootstrap-0 is drained before it is removed" in output
    assert balanced.servers("ocp-load") == MASTERS
    balanced.api.status = "progressing"
    balanced.done()
    balanced.machine.wait(
        "bootstrap is a member again", lambda: balanced.servers("ocp-load") == {"bootstrap-0": "UP", **MASTERS}
    )


def test_no_request_is_lost_while_bootstrap_is_removed_and_added_and_haproxy_is_reloaded(
    serving: Balanced, client: Host
) -> None:
    with load(client, serving.machine.address, RATE) as end:
        remove_and_add_bootstrap(serving)
        for _reload in range(5):
            reload(serving)
        done = end()
    print(f"{done.requests} requests in {done.seconds:.0f} s, lost: {done.lost}")
    assert done.lost == []
    # On a busy machine, the client does not reach its rate.
    assert done.requests > RATE / 4 * done.seconds
    assert set(done.answers) == {"bootstrap-0", *MASTERS}


def test_a_failing_member_loses_only_the_requests_that_it_processes(serving: Balanced, client: Host) -> None:
    serving.hosts["master-1"].stop_programs()
    process = serving.serve("master-1")
    serving.machine.wait("the member is UP", lambda: serving.servers("ocp-load")["master-1"] == "UP")
    with load(client, serving.machine.address, RATE) as end:
        serving.machine.wait("the member gets requests", lambda: requests(serving, "master-1") > 100)
        killed = time.time()
        process.kill()
        serving.machine.wait("the member is DOWN", lambda: serving.servers("ocp-load")["master-1"] == "DOWN")
        noticed = time.time()
        done = end()
    serving.serve("master-1")
    serving.machine.wait("the member is UP again", lambda: serving.servers("ocp-load")["master-1"] == "UP")
    print(f"{done.requests} requests in {done.seconds:.0f} s, lost: {done.lost}")
    # Connections that are refused are redispatched to another member. Only requests within the failed member are lost, which are a part of the open ones.
    assert all(killed - 0.5 < when < noticed + 0.5 for when, _how in done.lost), done.lost
    assert len(done.lost) < OPEN / len(serving.servers("ocp-load"))


def requests(balanced: Balanced, member: str) -> int:
    row = re.search(rf"^ocp-load,{member},(?:[^,]*,){{5}}(\d+),", balanced.runtime_api("show stat"), re.MULTILINE)
    assert row
    return int(row[1])


def test_a_restart_instead_of_a_reload_loses_requests(serving: Balanced, client: Host) -> None:
    """This verifies that the client notices lost requests."""
    with load(client, serving.machine.address, RATE) as end:
        for _restart in range(3):
            serving.machine.sh("systemctl kill --signal KILL haproxy; systemctl restart haproxy")
        done = end()
    serving.machine.wait("all members are UP", lambda: serving.servers("ocp-load") == {"bootstrap-0": "UP", **MASTERS})
    print(f"{done.requests} requests in {done.seconds:.0f} s, {len(done.lost)} lost")
    assert done.lost


@pytest.mark.slow
def test_no_request_of_a_hundred_thousand_is_lost_during_forty_reloads(serving: Balanced, client: Host) -> None:
    reloads = 0
    with load(client, serving.machine.address, 800) as end:
        start = time.monotonic()
        while time.monotonic() - start < 180 or reloads < 40:
            remove_and_add_bootstrap(serving)
            for _reload in range(10):
                reload(serving)
            reloads += 12
        done = end()
    print(
        f"{done.requests} requests in {done.seconds:.0f} s, {done.requests / done.seconds:.0f}/s, {reloads} reloads, lost: {done.lost}"
    )
    assert done.lost == []
    assert done.requests >= 100_000
    assert done.requests >= 500 * done.seconds
