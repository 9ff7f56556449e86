# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the role, from a machine's variables to what its BMC is told."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.api import Api
from ansible_collections.hwaccel.gpu.tests.unit.metal.machine_boot.role import LOCAL, boot

NOT_THERE: dict[str, t.Any] = {"known": True, "names": []}


class Cluster(Api):
    """It has these nodes."""

    def __init__(self, *names: str) -> None:
        nodes = [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": name}, "status": {}} for name in names]
        answers: dict[str, dict[str, t.Any]] = {
            "/version": {"gitVersion": "v1.34.0", "major": "1", "minor": "34"},
            "/api/v1/namespaces/kube-system": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "1"}},
            "/api/v1/nodes": {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": nodes},
        }
        empty: dict[str, t.Any] = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [], "groups": []}
        super().__init__("127.0.0.1", lambda path: (200, answers.get(path, empty)))


@pytest.mark.parametrize(
    ("variables", "nodes"),
    [
        ({}, ["worker-1"]), ({"hwaccel_domain": "ocp.test"}, ["worker-1", "worker-1.ocp.test"]),
        ({"hwaccel_node_name": "gpu-7", "hwaccel_domain": "ocp.test"}, ["gpu-7", "gpu-7.ocp.test"]),
    ],
)  # fmt: skip
def test_a_machine_is_known_as_a_node_by_the_name_of_its_node(tmp_path: pathlib.Path, variables: dict[str, t.Any], nodes: list[str]) -> None:
    found = boot(tmp_path, entry="preflight", **variables)
    assert found.asked["nodes"] == nodes
    assert found.asked["name"] == "worker-1"


def test_a_machine_that_runs_a_node_of_another_name_keeps_its_power(tmp_path: pathlib.Path) -> None:
    nodes = {"known": True, "names": ["gpu-7"]}
    found = boot(tmp_path, power="on", hwaccel_node_name="gpu-7", machine_boot_power="cycle", machine_boot_nodes=nodes)
    assert "it runs a node of cluster ocp" in found.outcome["text"]
    assert (found.outcome["failed"], found.told) == (True, [])


@pytest.mark.parametrize(("names", "told"), [(("worker-1",), []), ((), ["power cycle"])])
def test_a_machine_that_joins_between_the_first_question_and_its_turn_keeps_its_power(tmp_path: pathlib.Path, names: tuple[str, ...], told: list[str]) -> None:
    with Cluster(*names) as cluster:
        asked = {"machine_boot_power": "cycle", "machine_boot_boot": "disk", "machine_boot_nodes": NOT_THERE, "machine_boot_connection": cluster.connection}
        found = boot(tmp_path, power="on", **asked)
    assert [line for line in found.told if "power" in line] == told, found.output
    assert ("it runs a node of cluster ocp" in found.outcome["text"]) is bool(names)


def test_a_cluster_that_does_not_answer_any_more_says_nothing_of_its_nodes(tmp_path: pathlib.Path) -> None:
    with Cluster() as gone:
        pass
    found = boot(tmp_path, power="on", machine_boot_power="off", machine_boot_nodes=NOT_THERE, machine_boot_connection=gone.connection)
    assert "whether it runs a node is not known" in found.outcome["text"]
    assert found.told == []


def logs(folder: pathlib.Path) -> dict[str, t.Any]:
    """Variables of a boot server with logs in a folder, and nothing in them."""
    folder.mkdir(exist_ok=True)
    for name in ("dhcp.log", "web.log"):
        (folder / name).touch()
    where = {"machine_boot_dhcp_log": f"{folder}/dhcp.log", "machine_boot_web_log": f"{folder}/web.log"}
    return {**where, **LOCAL}


def add(folder: pathlib.Path, path: str) -> None:
    with open(folder / "web.log", "a", encoding="ascii") as web:
        web.write(f'10.77.0.21 - - [23/Nov/2026:03:41:13 +0000] "GET {path} HTTP/1.1" 200 9 "-" "x"\n')


def test_a_report_of_an_earlier_boot_does_not_end_the_present_one_and_one_since_its_start_does_also_in_a_later_run(tmp_path: pathlib.Path) -> None:
    """A BMC that would take the network at each start is put back to the disk by a later run, but not in the middle of the boot."""
    server, asked = tmp_path / "boot", {"machine_boot_servers": ["boot"], "machine_boot_marks": str(tmp_path / "marks")}
    hosts = {"boot": logs(server)}
    add(server, "/report/worker-1")
    unknown = boot(tmp_path, power="on", network=True, hosts=hosts, **asked)
    assert (unknown.told, "reported in, in this boot or an earlier one" in unknown.outcome["text"]) == ([], True), unknown.output
    started = boot(tmp_path, power="off", hosts=hosts, **asked)
    assert started.told[-1] == "power on"
    assert boot(tmp_path, power="on", network=True, hosts=hosts, **asked).told == []
    add(server, "/images/live-kernel.x86_64")
    later = boot(tmp_path, power="on", network=True, hosts=hosts, **asked)
    assert later.told == ["bootdev disk options=efiboot"], later.output


#: Nobody listens there.
GONE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}


@pytest.mark.parametrize("power", ["off", "on"])
def test_a_boot_server_that_is_gone_costs_the_machine_its_verdict_before_it_is_told_anything(tmp_path: pathlib.Path, power: str) -> None:
    found = boot(tmp_path, power=power, hosts={"boot": GONE}, machine_boot_servers=["boot"])
    assert found.outcome["failed"] is True, found.output
    assert "machine worker-1: the boot server boot cannot be reached (" in found.outcome["text"]
    assert ". Next: " in found.outcome["text"]
    assert found.told == []


def test_a_host_that_asks_the_cluster_and_is_gone_says_nothing_of_its_nodes(tmp_path: pathlib.Path) -> None:
    asked = {"machine_boot_power": "cycle", "machine_boot_nodes": NOT_THERE, "machine_boot_connection": {"host": "http://127.0.0.1:1"}}
    found = boot(tmp_path, power="on", hosts={"ocp": GONE}, **asked)
    assert "whether it runs a node is not known" in found.outcome["text"], found.output
    assert found.told == []


@pytest.mark.parametrize("mac", ["52-54-00-77-00-AB", "52:54:00:77:00:AB"])
def test_a_machines_lines_are_found_however_its_mac_is_written(tmp_path: pathlib.Path, mac: str) -> None:
    server = tmp_path / "boot"
    hosts = {"boot": logs(server)}
    (server / "dhcp.log").write_text("Nov 23 03:41:10 dnsmasq-dhcp[8]: 77 DHCPDISCOVER(eth0) 52:54:00:77:00:ab no address available\n", encoding="ascii")
    found = boot(tmp_path, power="on", hosts=hosts, machine_boot_servers=["boot"], machine_boot_marks=str(tmp_path / "marks"), hwaccel_mac=mac)
    assert "its DHCP request was not answered: no address available" in found.outcome["text"], found.output


def test_a_run_that_only_looks_reads_the_logs_of_all_boot_servers(tmp_path: pathlib.Path) -> None:
    """Both offer an address, and the second one sends the kernel."""
    asked = {"machine_boot_servers": ["boot-a", "boot-b"], "machine_boot_marks": str(tmp_path / "marks")}
    hosts = {name: {**logs(tmp_path / name), "machine_boot_marks": f"{tmp_path}/{name}/marks"} for name in asked["machine_boot_servers"]}
    boot(tmp_path, power="off", hosts=hosts, **asked)
    with open(tmp_path / "boot-a" / "dhcp.log", "a", encoding="ascii") as dhcp:
        dhcp.write("Nov 23 03:41:10 dnsmasq-dhcp[8]: 77 DHCPACK(eth0) 10.77.0.21 52:54:00:77:00:21 worker-1\n")
    add(tmp_path / "boot-b", "/images/live-kernel.x86_64")
    assert boot(tmp_path, power="on", network=True, hosts=hosts, **asked).told == ["bootdev disk options=efiboot"]
