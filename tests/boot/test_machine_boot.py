# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and boot device of machines by Redfish, on emulated BMCs with TLS and passwords; what machines would do then is played by lines in the logs."""

from __future__ import annotations

import collections.abc as c
import contextlib
import functools
import http.server
import os
import pathlib
import subprocess
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.api import Api
from ansible_collections.hwaccel.gpu.tests.boot.rig.bmc import HOST, Bmc, Proxy, free_port, opened
from ansible_collections.hwaccel.gpu.tests.boot.rig.sessions import Sessions
from ansible_collections.hwaccel.gpu.tests.live.support.site import Clusters, Run, playbook

PASSWORD = "planted-4711-secret"
TIMES = {"machine_boot_bmc_timeout": 4, "machine_boot_bmc_retries": 1, "machine_boot_interval": 2, "machine_boot_timeout": 15}


@pytest.fixture(scope="module", autouse=True)
def _loopback() -> None:
    """Namespaces of their own begin without it."""
    if os.environ.get("HWACCEL_ISOLATED"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)


@pytest.fixture
def eight(tmp_path: pathlib.Path) -> c.Iterator[list[Bmc]]:
    yield from opened(tmp_path, 8, PASSWORD)


@pytest.fixture
def one(tmp_path: pathlib.Path) -> c.Iterator[Bmc]:
    for made in opened(tmp_path, 1, PASSWORD):
        yield made[0]


class Logs:
    """Logs of a boot server. Each machine goes through its lines once its BMC says that it is on."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.dhcp, self.web, self.marks = folder / "dnsmasq.log", folder / "access.log", folder / "marks"
        for path in (self.dhcp, self.web):
            path.write_text("", encoding="ascii")
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def host(self, name: str = "boot") -> dict[str, dict[str, t.Any]]:
        return {name: {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}}

    def variables(self) -> dict[str, t.Any]:
        return {"machine_boot_dhcp_log": str(self.dhcp), "machine_boot_web_log": str(self.web), "machine_boot_marks": str(self.marks)}

    def play(self, number: int, bmc: Bmc, stages: int, since: int = 0) -> None:
        """Lines of a boot, of all stages from one to another."""
        mac, address = f"52:54:00:77:00:{10 + number}", f"10.77.0.{10 + number}"
        lines: list[tuple[pathlib.Path, str]] = [
            (self.dhcp, f"Nov 23 03:41:10 dnsmasq-dhcp[8]: 77 DHCPACK(eth0) {address} {mac} machine{number}"),
            (self.dhcp, f"Nov 23 03:41:11 dnsmasq-tftp[8]: sent /srv/tftp/shimx64.efi to {address}"),
            (self.web, f'{address} - - [23/Nov/2026:03:41:12 +0000] "GET /images/rhcos-live-kernel.x86_64 HTTP/1.1" 200 99 "-" "GRUB"'),
            (self.web, f'{address} - - [23/Nov/2026:03:41:13 +0000] "GET /ignition/worker.ign HTTP/1.1" 200 99 "-" "coreos-installer"'),
        ]
        thread = threading.Thread(target=self._play, args=(bmc, lines[since:stages]))
        self._threads.append(thread)
        thread.start()

    def _play(self, bmc: Bmc, lines: list[tuple[pathlib.Path, str]]) -> None:
        while not self._ended.wait(0.3):
            if bmc.state()[0] == "On":
                break
        else:
            return
        for path, line in lines:
            with open(path, "a", encoding="ascii") as log:
                log.write(f"{line}\n")
            self._ended.wait(0.3)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def logs(tmp_path: pathlib.Path) -> c.Iterator[Logs]:
    with contextlib.closing(Logs(tmp_path)) as made:
        yield made


def machine(number: int, bmc: Bmc, **changed: t.Any) -> dict[str, t.Any]:
    own = {"hwaccel_mac": f"52:54:00:77:00:{10 + number}", "hwaccel_address": f"10.77.0.{10 + number}", "hwaccel_firmware": "uefi"}
    return {**own, **bmc.variables(), **TIMES, **changed}


def run(machines: dict[str, dict[str, t.Any]], *arguments: str, logs: Logs | None = None, clusters: Clusters | None = None, pipelined: bool = True) -> Run:
    """pipelined: modules without files, which a third of the processor time goes into; what a user has who says nothing is not."""
    boot = {"boot_servers": logs.host()} if logs else {}
    told = {name: {**variables, **(logs.variables() if logs else {})} for name, variables in machines.items()}
    return playbook("machine_boot", clusters or {}, *arguments, machines={"workers": told, **boot}, environment={"ANSIBLE_PIPELINING": str(pipelined)})


def powered(bmc: Bmc) -> None:
    """Its machine runs."""
    bmc.request("POST", f"/redfish/v1/Systems/{bmc.system}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    deadline = time.monotonic() + 30
    while bmc.state()[0] != "On":
        assert time.monotonic() < deadline
        time.sleep(0.2)


class Cluster(Api):
    """It lists nodes: none until the machine runs, and has asked for its address."""

    def __init__(self, name: str, bmc: Bmc) -> None:
        self.asked, self._name, self._bmc = 0, name, bmc
        super().__init__(HOST, self._answer)

    def _answer(self, path: str) -> tuple[int, dict[str, t.Any]]:
        answers: dict[str, dict[str, t.Any]] = {
            "/version": {"gitVersion": "v1.34.0", "major": "1", "minor": "34"},
            "/api/v1/namespaces/kube-system": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "1"}},
        }
        items = self._nodes() if path == "/api/v1/nodes" else []
        return 200, answers.get(path, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items, "groups": []})

    def _nodes(self) -> list[dict[str, t.Any]]:
        if self._bmc.state()[0] != "On":
            return []
        self.asked += 1
        # Not at once: the machine is watched by then.
        return [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": self._name, "uid": "2"}, "status": {}}] if self.asked > 2 else []


@contextlib.contextmanager
def image(folder: pathlib.Path) -> c.Iterator[str]:
    """Address of an image that BMCs can fetch."""
    (folder / "agent.iso").write_bytes(b"image")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer((HOST, 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/agent.iso"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def watched() -> c.Iterator[list[str]]:
    """Arguments of processes that have the password in them, meanwhile."""
    ended, found = threading.Event(), []

    def watch() -> None:
        while not ended.wait(0.1):
            for process in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    if PASSWORD.encode() in (content := pathlib.Path(f"/proc/{process}/cmdline").read_bytes()):
                        found.append(content.replace(b"\0", b" ").decode()[:300])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def test_each_of_eight_has_its_verdict_and_broken_bmcs_hold_nobody_up(eight: list[Bmc], logs: Logs) -> None:
    with contextlib.closing(Proxy(eight[5], hangs=True)) as hung, contextlib.closing(Proxy(eight[6], delay=0.2)) as slow:
        changed: dict[int, dict[str, t.Any]] = {
            3: {"hwaccel_bmc_password": "wrong"}, 4: {"hwaccel_bmc_address": f"127.0.0.1:{free_port()}"}, 5: {"hwaccel_bmc_address": hung.address},
            6: {"hwaccel_bmc_address": slow.address}, 7: {"hwaccel_bmc_ca": ""},
        }  # fmt: skip
        machines = {f"machine{number}": machine(number, bmc, **changed.get(number, {})) for number, bmc in enumerate(eight)}
        for number, stages in ((0, 4), (1, 3), (2, 0), (6, 4)):
            logs.play(number, eight[number], stages)
        with watched() as seen:
            done = run(machines, "-vvv", logs=logs, pipelined=False)
        assert done.rc == 2, done.stdout[-6000:]
        assert PASSWORD not in done.stdout
        assert seen == []
        expected = {
            1: "the kernel is fetched (/images/rhcos-live-kernel.x86_64), and nothing after it. Next: look at its console",
            2: "no DHCP request of 52:54:00:77:00:12 was seen. Next: see that this is the MAC",
            3: "its BMC refuses the credentials", 4: "its BMC cannot be reached", 5: "its BMC does not answer in time",
            7: "its BMC has a certificate that is not trusted",
        }  # fmt: skip
        told = {number: done.failures_of(f"machine{number}") for number in range(8)}
        assert {number for number, failures in told.items() if failures} == set(expected)
        for number, text in expected.items():
            assert text in told[number][-1], (number, told[number])
        assert "machine machine0: start from the network once: " in done.stdout
        assert "its kernel is loaded; ignition is fetched (/ignition/worker.ign)" in done.stdout
        # The emulator knows no "once": who has its kernel starts from its disk from now on, who has not still tries the network.
        assert [bmc.state() for bmc in eight] == [
            ("On", "Hdd"), ("On", "Hdd"), ("On", "Pxe"), ("Off", "Hdd"), ("Off", "Hdd"), ("Off", "Hdd"), ("On", "Hdd"), ("Off", "Hdd"),
        ]  # fmt: skip

        again = run(machines, logs=logs)
        assert again.changed() == 0
        assert {name for name, counts in again.recap.items() if counts["failures"]} == {f"machine{number}" for number in (3, 4, 5, 7)}


def test_check_mode_tells_what_would_be_done_and_does_nothing_by_a_bmc_that_breaks_its_first_connection(one: Bmc) -> None:
    with contextlib.closing(Proxy(one, failures=1)) as shaky:
        done = run({"worker-0": machine(0, one, hwaccel_bmc_address=shaky.address)}, "--check")
        assert shaky.connections > 1
    assert done.rc == 0, done.stdout
    assert "would start from the network once" in done.stdout
    assert "would power on: it is off" in done.stdout
    assert done.changed("worker-0") > 0
    assert one.state() == ("Off", "Hdd")


def test_a_machine_that_may_run_a_node_keeps_its_power_until_it_is_named(one: Bmc) -> None:
    powered(one)
    asked = {"worker-0": machine(0, one, machine_boot_power="off")}
    refused = run(asked)
    assert "no power off: whether it runs a node is not known" in refused.failures_of("worker-0")[-1]
    assert one.state() == ("On", "Hdd")
    cycled = run(asked, "-e", "machine_boot_named=worker-0", "-e", "machine_boot_power=cycle")
    assert cycled.rc == 0, cycled.stdout
    assert "power cycle: it is to start anew" in cycled.stdout
    assert one.state() == ("On", "Pxe")
    done = run(asked, "-e", "machine_boot_named=worker-0")
    assert done.rc == 0, done.stdout
    assert one.state()[0] == "Off"
    assert one.asked() == ["On", "ForceRestart", "GracefulShutdown"], "its power was not cut"


def test_power_is_cut_only_where_the_operating_system_does_not_end_in_time(one: Bmc) -> None:
    powered(one)
    (one.folder / "deaf").touch()
    asked = {"worker-0": machine(0, one, machine_boot_power="off", machine_boot_named="worker-0", machine_boot_shutdown_timeout=4)}
    foreseen = run(asked, "--check")
    assert "would shut down: it is to be off, and has 4 s for it" in foreseen.stdout
    assert "would power off: only where it still runs after 4 s" in foreseen.stdout
    assert one.asked() == ["On"]
    done = run(asked)
    assert done.rc == 0, done.stdout
    assert one.state()[0] == "Off"
    assert one.asked() == ["On", "GracefulShutdown", "ForceOff"]
    assert run(asked).changed() == 0


def test_media_are_inserted_for_one_start_and_ejected_once_the_machine_has_reported_also_by_a_later_run(one: Bmc, logs: Logs, tmp_path: pathlib.Path) -> None:
    with image(tmp_path) as url:
        asked = {"worker-0": machine(0, one, machine_boot_boot="media", machine_boot_media_url=url, machine_boot_wait_for="address")}
        assert f"would insert {url}: it is to start from it" in run(asked, "--check", logs=logs).stdout
        assert (one.state(), one.inserted()) == (("Off", "Hdd"), "")
        logs.play(0, one, 1)
        done = run(asked, logs=logs)
        assert done.rc == 0, done.stdout
        assert "start from media once" in done.stdout
        # The emulator knows no "once"; the machine has its media until it says that it needs them no more.
        assert (one.state(), one.inserted()) == (("On", "Hdd"), url)
        assert run(asked, logs=logs).changed() == 0
        with open(logs.web, "a", encoding="ascii") as web:
            web.write('10.77.0.10 - - [23/Nov/2026:03:51:13 +0000] "GET /report/worker-0 HTTP/1.1" 200 9 "-" "curl"\n')
        foreseen = run(asked, "--check", logs=logs)
        assert (f"would eject {url}: it has reported in" in foreseen.stdout, one.inserted()) == (True, url)
        ejected = run(asked, logs=logs)
        assert (ejected.rc, one.inserted()) == (0, ""), ejected.stdout
        assert run(asked, logs=logs).changed() == 0


def test_a_machine_that_joins_while_it_is_watched_has_reported_in_without_a_line_in_any_log(one: Bmc, logs: Logs) -> None:
    with Cluster("worker-0", one) as cluster:
        asked = {"worker-0": machine(0, one, machine_boot_wait_for="reported", machine_boot_timeout=120)}
        done = run(asked, logs=logs, clusters={"ocp": {"hwaccel_connection": cluster.connection}})
    assert done.rc == 0, done.stdout
    assert "its node has joined" in done.stdout
    assert len([task for task in done.tasks if "stage | Keep what was shown" in task["name"]]) == 5, "it is not looked at once it has joined"
    assert one.state() == ("On", "Hdd"), "its BMC knows no once, and was told to take the disk"


def test_logs_of_all_boot_servers_are_read_together(one: Bmc, tmp_path: pathlib.Path) -> None:
    """Both offer an address; one of them sends the rest."""
    folders = [tmp_path / name for name in ("boot-a", "boot-b")]
    for folder in folders:
        folder.mkdir()
    with contextlib.closing(Logs(folders[0])) as first, contextlib.closing(Logs(folders[1])) as second:
        first.play(0, one, 1)
        second.play(0, one, 4)
        servers = {name: {**variables, **logs.variables()} for name, logs in (("boot-a", first), ("boot-b", second)) for variables in logs.host(name).values()}
        done = playbook("machine_boot", {}, machines={"workers": {"worker-0": machine(0, one, machine_boot_timeout=60)}, "boot_servers": servers})
    assert done.rc == 0, done.stdout
    assert "ignition is fetched (/ignition/worker.ign)" in done.stdout
    assert one.state() == ("On", "Hdd")


def test_a_bmc_that_has_sessions_is_asked_by_them_and_none_is_left(one: Bmc) -> None:
    with contextlib.closing(Sessions(one)) as way:
        asked = machine(0, one, hwaccel_bmc_address=way.address)
        foreseen = run({"worker-0": asked}, "--check")
        assert "would power on" in foreseen.stdout, foreseen.stdout
        with watched() as seen:
            done = run({"worker-0": asked}, "-vvv", pipelined=False)
        assert (done.rc, one.state()) == (0, ("On", "Pxe")), done.stdout
        assert PASSWORD not in done.stdout and seen == []
        assert (way.begun > 2, way.open) == (True, {}), "it has one at a time, and nobody could log in any more"
        begun = way.begun
        refused = run({"worker-0": {**asked, "hwaccel_bmc_password": "wrong"}})
        assert "its BMC refuses the credentials" in refused.failures_of("worker-0")[-1]
        assert way.begun == begun


def test_faults_of_all_machines_are_told_at_once_and_no_bmc_is_spoken_to(one: Bmc) -> None:
    with contextlib.closing(Proxy(one)) as way:
        good = machine(0, one, hwaccel_bmc_address=way.address)
        broken = {"worker-1": {**machine(1, one), "hwaccel_bmc_address": ""}, "worker-2": {**machine(2, one), "machine_boot_boot": "floppy"}}
        done = run({"worker-0": good, **broken})
        assert done.rc == 2
        told = "\n".join(done.failures)
        assert "'floppy' is unknown (machine_boot_boot)" in "\n".join(done.failures_of("worker-2"))
        assert "machine worker-1: the address of its BMC is missing" in told
        assert way.connections == 0
        assert one.state() == ("Off", "Hdd")
