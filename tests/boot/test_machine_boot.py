# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of machines by Redfish, on emulated BMCs with TLS and passwords; what machines would do then is played by lines in the logs."""

from __future__ import annotations

import collections.abc as c
import contextlib
import itertools
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.api import Api
from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import HOST, Bmc, Proxy, free_ports
from ansible_collections.hwaccel.gpu.tests.boot.rig.redfish import PASSWORD, Logs, machine, run, watched
from ansible_collections.hwaccel.gpu.tests.live.support.site import playbook


@pytest.fixture
def eight(unused_bmcs: c.Iterator[Bmc]) -> list[Bmc]:
    return list(itertools.islice(unused_bmcs, 8))


@pytest.fixture
def one(unused_bmcs: c.Iterator[Bmc]) -> Bmc:
    return next(unused_bmcs)


@pytest.fixture
def logs(tmp_path: pathlib.Path) -> c.Iterator[Logs]:
    with contextlib.closing(Logs(tmp_path)) as made:
        yield made


class Cluster(Api):
    """It lists nodes: none until the machine runs, and has asked for its address."""

    def __init__(self, name: str, bmc: Bmc) -> None:
        self.asked, self._name, self._bmc = 0, name, bmc
        super().__init__(HOST, self._answer)

    def _answer(self, path: str) -> tuple[int, dict[str, t.Any]]:
        answers: dict[str, dict[str, t.Any]] = {
            "/version": {"gitVersion": "v1.34.0", "major": "1", "minor": "34"},
            "/api/v1/namespaces/kube-system": {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": "kube-system", "uid": "1"},
            },
        }
        items = self._nodes() if path == "/api/v1/nodes" else []
        return 200, answers.get(
            path, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items, "groups": []}
        )

    def _nodes(self) -> list[dict[str, t.Any]]:
        if self._bmc.state()[0] != "On":
            return []
        self.asked += 1
        # Not at once: the machine is watched by then.
        return (
            [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": self._name, "uid": "2"}, "status": {}}]
            if self.asked > 2
            else []
        )


def test_each_of_eight_has_its_verdict_and_broken_bmcs_hold_nobody_up(eight: list[Bmc], logs: Logs) -> None:
    with (
        contextlib.closing(Proxy(eight[5], hangs=True)) as hung,
        contextlib.closing(Proxy(eight[6], delay=0.2)) as slow,
    ):
        changed: dict[int, dict[str, t.Any]] = {
            3: {"hwaccel_bmc_password": "wrong"},
            4: {"hwaccel_bmc_address": f"127.0.0.1:{free_ports(1)[0]}"},
            5: {"hwaccel_bmc_address": hung.address},
            6: {"hwaccel_bmc_address": slow.address},
            7: {"hwaccel_bmc_ca": ""},
        }
        machines = {
            f"machine{number}": machine(number, bmc, **changed.get(number, {})) for number, bmc in enumerate(eight)
        }
        for number, stages in ((0, 4), (1, 3), (2, 0), (6, 4)):
            logs.play(number, eight[number], stages)
        with watched() as seen:
            done = run(machines, "-vvv", logs=logs, pipelined=False)
        assert done.rc == 2, done.stdout[-6000:]
        assert PASSWORD not in done.stdout
        assert seen == []
        expected = {
            1: "it has downloaded its kernel (/images/rhcos-live-kernel.x86_64), but nothing after it. Next: inspect its console",
            2: "no DHCP request of 52:54:00:77:00:12 was logged. Next: verify that this is the MAC",
            3: "its BMC refuses the credentials",
            4: "its BMC cannot be reached",
            5: "its BMC does not answer in time",
            7: "its BMC has a certificate that is not trusted",
        }
        told = {number: done.failures_of(f"machine{number}") for number in range(8)}
        assert {number for number, failures in told.items() if failures} == set(expected)
        for number, text in expected.items():
            assert text in told[number][-1], (number, told[number])
        assert "machine machine0: start from the network once: " in done.stdout
        assert "its kernel is loaded; it has downloaded its ignition file (/ignition/worker.ign)" in done.stdout
        # The emulator knows no "once": who has its kernel starts from its disk from now on, who has not still tries the network.
        on, off, network = ("On", "Hdd"), ("Off", "Hdd"), ("On", "Pxe")
        assert [bmc.state() for bmc in eight] == [on, on, network, off, off, off, on, off]

        again = run(machines, logs=logs)
        assert again.changed() == 0
        assert {name for name, counts in again.recap.items() if counts["failures"]} == {
            f"machine{number}" for number in (3, 4, 5, 7)
        }


def test_a_machine_that_joins_while_it_is_watched_has_reported_in_without_a_line_in_any_log(
    one: Bmc, logs: Logs
) -> None:
    with Cluster("worker-0", one) as cluster:
        asked = {"worker-0": machine(0, one, machine_boot_wait_for="reported", machine_boot_timeout=120)}
        done = run(asked, logs=logs, clusters={"ocp": {"hwaccel_connection": cluster.connection}})
    assert done.rc == 0, done.stdout
    assert "its node has joined" in done.stdout
    assert cluster.asked == 3, "it is not looked at once it has joined"
    assert len([task for task in done.tasks if "stage | Keep the verdict" in task["name"]]) == 4, (
        "no other rounds follow"
    )
    assert one.state() == ("On", "Hdd"), "its BMC knows no once, and was told to take the disk"


def test_logs_of_all_boot_servers_are_read_together(one: Bmc, tmp_path: pathlib.Path) -> None:
    """Both offer an address; one of them sends the rest."""
    folders = [tmp_path / name for name in ("boot-a", "boot-b")]
    for folder in folders:
        folder.mkdir()
    with contextlib.closing(Logs(folders[0])) as first, contextlib.closing(Logs(folders[1])) as second:
        first.play(0, one, 1)
        second.play(0, one, 4)
        servers = {
            name: {**variables, **logs.variables()}
            for name, logs in (("boot-a", first), ("boot-b", second))
            for variables in logs.host(name).values()
        }
        done = playbook(
            "machine_boot",
            {},
            machines={"workers": {"worker-0": machine(0, one, machine_boot_timeout=60)}, "boot_servers": servers},
        )
    assert done.rc == 0, done.stdout
    assert "it has downloaded its ignition file (/ignition/worker.ign)" in done.stdout
    assert one.state() == ("On", "Hdd")


def test_faults_of_all_machines_are_told_at_once_and_no_bmc_is_spoken_to(one: Bmc) -> None:
    with contextlib.closing(Proxy(one)) as way:
        good = machine(0, one, hwaccel_bmc_address=way.address)
        broken = {
            "worker-1": {**machine(1, one), "hwaccel_bmc_address": ""},
            "worker-2": {**machine(2, one), "machine_boot_boot": "floppy"},
        }
        done = run({"worker-0": good, **broken})
        assert done.rc == 2
        told = {name: "\n".join(one["reasons"]) for name, one in done.summary.items()}
        assert "'floppy' is unknown (machine_boot_boot)" in told["worker-2"]
        assert "machine worker-1: the address of its BMC is missing" in told["worker-1"]
        assert told["worker-0"] == ""
        assert way.connections == 0
        assert one.state() == ("Off", "Hdd")
