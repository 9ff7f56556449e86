# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many sites in one inventory, each a cluster of one machine by K3s: one that is silent, one that refuses, and slow ones cost the others nothing.

Forty are looked at and planned. Making them would need more memory than a machine of the tests has, so that is shown on two of them.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_site import K3sSite
from ansible_collections.hwaccel.gpu.tests.live.support.site import Run
from ansible_collections.hwaccel.gpu.tests.node.rig.machine import Machine
from ansible_collections.hwaccel.gpu.tests.node.rig.network import GATEWAY

pytestmark = pytest.mark.slow
SITES = 40
#: Seconds by which a slow site delays whatever is asked of it. Few kernels can delay packets (netem).
DELAY = 0.6
#: Seconds in which Ansible gives up a machine that does not answer. Far more than the five that the endpoint of its cluster has, with 40 processes at once.
PATIENCE = 40
_SETTINGS = {"ANSIBLE_FORKS": str(SITES), "ANSIBLE_TIMEOUT": str(PATIENCE)}


class Sites:
    """Machines by the number of their site."""

    def __init__(self, rig: K3sRig) -> None:
        self._rig = rig
        # For the variables of a cluster.
        self._site = K3sSite(rig, ("site0",))
        self.machines = {0: self._site.machines["site0"]}

    def more(self, total: int) -> None:
        for number in range(len(self.machines), total):
            self.machines[number] = self._rig.machine(f"site{number}")

    def play(self, playbook: str, numbers: t.Iterable[int], *arguments: str) -> tuple[Run, float]:
        """A run for these sites, and its seconds."""
        numbers = list(numbers)
        clusters = {f"edge{number}": self._site.cluster() for number in numbers}
        servers = {f"site{number}": {"hwaccel_cluster": f"edge{number}"} for number in numbers}
        began = time.monotonic()
        run = self._rig.play(
            playbook, {"control_plane": servers}, *arguments, clusters=clusters, environment=_SETTINGS, timeout=2400
        )
        return run, time.monotonic() - began


@pytest.fixture(scope="module")
def sites(k3s_rig: K3sRig) -> Sites:
    return Sites(k3s_rig)


@contextlib.contextmanager
def silent(machine: Machine) -> t.Iterator[None]:
    """Its answers get lost, so that whoever asks waits."""
    route = ("route", "add", "blackhole", f"{GATEWAY}/32")
    inside = ["nsenter", f"--net={machine.port.namespace}", "ip"]
    subprocess.run([*inside, *route], check=True, capture_output=True, timeout=60)
    try:
        yield
    finally:
        subprocess.run([*inside, "route", "delete", *route[2:]], check=True, capture_output=True, timeout=60)


def waits(run: Run, *hosts: str) -> list[str]:
    """Tasks that have waited for a machine that does not answer."""
    return [task["name"] for task in run.tasks if task["host"] in hosts and task["seconds"] >= PATIENCE]


def slow(machine: Machine) -> None:
    machine.write("/etc/ssh/sshd_config.d/slow.conf", f'ForceCommand sleep {DELAY}; eval "$SSH_ORIGINAL_COMMAND"\n')
    machine.sh("systemctl reload ssh")


def refusing(machine: Machine) -> None:
    """Another distribution has made it a node."""
    machine.write("/etc/systemd/system/rke2-agent.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n")
    machine.sh("systemctl daemon-reload && systemctl start rke2-agent")


def test_two_sites_are_made_while_a_third_one_is_silent(sites: Sites, capsys: pytest.CaptureFixture[str]) -> None:
    sites.more(3)
    _run, alone = sites.play("cluster_k3s", [0])
    assert _run.rc == 0, _run.stdout[-6000:]
    with silent(sites.machines[2]):
        run, together = sites.play("cluster_k3s", [0, 1, 2])
    assert run.rc != 0
    assert {name: one["state"] for name, one in run.summary.items() if name.startswith("edge")}["edge1"] == "done"
    assert sites.machines[1].sh("k3s kubectl get nodes --output=name").split() == ["node/site1"]
    with capsys.disabled():
        print(f"\none site: {alone:.0f} s; another one beside a silent one: {together:.0f} s")
    # Once in a run, so that the others do not wait longer at the end of a play.
    assert len(waits(run, "site2", "edge2")) == 1, waits(run, "site2", "edge2")
    second, _seconds = sites.play("cluster_k3s", [0, 1])
    assert (second.rc, second.changed()) == (0, 0), second.stdout[-6000:]


def test_forty_sites_are_planned_in_the_time_of_the_slowest(sites: Sites, capsys: pytest.CaptureFixture[str]) -> None:
    sites.more(SITES)
    slow(sites.machines[3])
    slow(sites.machines[4])
    refusing(sites.machines[5])
    _run, slowest = sites.play("site", [3, 4], "--check")
    _run, good = sites.play("site", range(6, SITES), "--check")
    assert _run.rc == 0, _run.stdout[-6000:]
    with silent(sites.machines[2]):
        run, together = sites.play("site", range(2, SITES), "--check")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    with capsys.disabled():
        print(
            f"\n{len(range(6, SITES))} sites: {good:.0f} s; two slow ones: {slowest:.0f} s; all with one silent and one that refuses: {together:.0f} s; "
            f"memory of the controller: {peak:.0f} MiB"
        )
    told = {name: json.dumps(one) for name, one in run.summary.items() if name.startswith("edge")}
    assert {name for name in told if not run.summary[name]["succeeded"]} == {"edge2", "edge5"}, told
    assert "site2" in told["edge2"] and "rke2-agent" in told["edge5"], told
    assert len(waits(run, "site2", "edge2")) == 1, waits(run, "site2", "edge2")
