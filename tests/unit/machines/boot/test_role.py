# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the role, from a machine's variables to what its BMC is told."""

from __future__ import annotations

import contextlib
import pathlib
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.boot import reach
from ansible_collections.hwaccel.gpu.tests.boot.rig.api import Api
from ansible_collections.hwaccel.gpu.tests.unit.machines.boot.role import HOST_KEY, LOCAL, Boot, Machine, boots

NOT_THERE: dict[str, t.Any] = {"known": True, "names": []}


class Cluster(Api):
    """It has these nodes, and thinks for so many seconds before it says which."""

    def __init__(self, *names: str, thinks: float = 0) -> None:
        nodes = [
            {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": name}, "status": {}}
            for name in names
        ]
        answers: dict[str, dict[str, t.Any]] = {
            "/version": {"gitVersion": "v1.34.0", "major": "1", "minor": "34"},
            "/api/v1/namespaces/kube-system": {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": "kube-system", "uid": "1"},
            },
            "/api/v1/nodes": {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": nodes},
        }
        empty: dict[str, t.Any] = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [], "groups": []}

        def answer(path: str) -> tuple[int, dict[str, t.Any]]:
            # Nobody waits for something by it: this is what a machine's time goes by on.
            time.sleep(thinks if path == "/api/v1/nodes" else 0)
            return 200, answers.get(path, empty)

        super().__init__("127.0.0.1", answer)


def logs(folder: pathlib.Path) -> dict[str, t.Any]:
    """Variables of a boot server with logs in a folder, and nothing in them."""
    folder.mkdir()
    for name in ("dhcp.log", "web.log"):
        (folder / name).touch()
    where = {
        "machine_boot_dhcp_log": f"{folder}/dhcp.log",
        "machine_boot_web_log": f"{folder}/web.log",
        "machine_boot_marks": f"{folder}/marks",
    }
    return {**where, **LOCAL}


def fetched(folder: pathlib.Path, path: str) -> tuple[pathlib.Path, str]:
    """A line of the web server."""
    return folder / "web.log", f'10.77.0.21 - - [23/Nov/2026:03:41:13 +0000] "GET {path} HTTP/1.1" 200 9 "-" "x"'


def said(folder: pathlib.Path, text: str) -> tuple[pathlib.Path, str]:
    """A line of dnsmasq."""
    return folder / "dhcp.log", f"Nov 23 03:41:10 dnsmasq-dhcp[8]: 77 {text}"


#: Nobody listens there.
GONE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}
KERNEL = "/images/live-kernel.x86_64"
MACS = {"dashes": "52-54-00-77-00-AB", "capitals": "52:54:00:77:00:AB"}
NODES = {
    "plain": {},
    "in-a-domain": {"hwaccel_domain": "ocp.test"},
    "named": {"hwaccel_node_name": "gpu-7", "hwaccel_domain": "ocp.test"},
}


def before_clusters(members: dict[str, Cluster]) -> dict[str, Machine]:
    """Machines whose power is asked for, by what their clusters say of them."""
    cycled = {"machine_boot_power": "cycle", "machine_boot_nodes": NOT_THERE}
    lost = {"host": "http://127.0.0.1:1"}
    runs = {
        "machine_boot_nodes": {"known": True, "names": ["gpu-7"]},
        "hwaccel_node_name": "gpu-7",
        "machine_boot_power": "cycle",
    }
    return {
        **{name: Machine(variables, entry="preflight") for name, variables in NODES.items()},
        "runs-a-node": Machine(runs, power="on"),
        "kept": Machine(entry="teardown", power="on"),
        "on-no-hypervisor": Machine({"hwaccel_power_provider": "libvirt"}, entry="teardown"),
        "joins": Machine(
            {**cycled, "machine_boot_boot": "disk", "machine_boot_connection": members["joins"].connection}, power="on"
        ),
        "stays-out": Machine(
            {**cycled, "machine_boot_boot": "disk", "machine_boot_connection": members["stays-out"].connection},
            power="on",
        ),
        "asked-slowly": Machine(
            {
                "machine_boot_nodes": NOT_THERE,
                "machine_boot_servers": ["unanswered"],
                "machine_boot_connection": members["asked-slowly"].connection,
            }
        ),
        "of-no-answer": Machine(
            {**cycled, "machine_boot_power": "off", "machine_boot_connection": members["of-no-answer"].connection},
            power="on",
        ),
        "of-a-lost-host": Machine(
            {**cycled, "hwaccel_lone_cluster": "lost", "machine_boot_connection": lost}, power="on"
        ),
    }


def before_boot_servers(earlier: pathlib.Path, first: pathlib.Path, second: pathlib.Path) -> dict[str, Machine]:
    """Machines whose way is read from logs. Those with a number are one machine, again and again."""
    met = {"machine_boot_name": "worker-1", "machine_boot_servers": [earlier.name]}
    both = {
        "machine_boot_name": "worker-2",
        "machine_boot_servers": [first.name, second.name],
        "machine_boot_wait_for": "",
    }
    served = (said(first, "DHCPACK(eth0) 10.77.0.21 52:54:00:77:00:21 worker-2"), fetched(second, KERNEL))
    return {
        "earlier-1": Machine(met, power="on", network=True, written=(fetched(earlier, "/report/worker-1"),)),
        "earlier-2": Machine(met, turn=1),
        "earlier-3": Machine(met, power="on", network=True, turn=2),
        "earlier-4": Machine(met, power="on", network=True, turn=3, written=(fetched(earlier, KERNEL),)),
        "of-two-1": Machine(both),
        "of-two-2": Machine(both, power="on", network=True, turn=1, written=served),
        "in-no-time": Machine({"machine_boot_servers": ["unanswered"]}),
        **{f"gone-{power}": Machine({"machine_boot_servers": ["gone"]}, power=power) for power in ("on", "off")},
        **{
            f"with-{name}": Machine({"machine_boot_servers": ["unanswered"], "hwaccel_mac": mac}, power="on")
            for name, mac in MACS.items()
        },
    }


def before_installations(servers: pathlib.Path) -> dict[str, Machine]:
    """Machines that are waited for until they answer by SSH. Each is started, and met by a later run."""
    started = {"machine_boot_servers": [servers.name], "machine_boot_wait_for": ""}
    waits = {**started, "machine_boot_ssh_user": "operator", "machine_boot_ssh_timeout": 1}
    report = fetched(servers, f"/report/one?host_key={reach.fingerprint(HOST_KEY)}")
    expected = {"machine_boot_system": "rocky 9", "machine_boot_device": "/dev/disk/by-id/one"}
    silent = {"hwaccel_address": "10.77.0.62", "hwaccel_mac": "52:54:00:77:00:62"}
    return {
        "installed-1": Machine(started),
        "installed-2": Machine({**waits, **expected}, power="on", turn=1, written=(report,)),
        "other-key": Machine({**waits, "hwaccel_host_key": f"SHA256:{'b' * 43}"}, power="on", turn=1),
        "other-system": Machine({**waits, "machine_boot_system": "debian"}, power="on", turn=2),
        "silent": Machine({**waits, **silent}),
        "goes-off": Machine({**waits, "machine_boot_power": "off", "machine_boot_nodes": NOT_THERE}, power="on"),
    }


@pytest.fixture(scope="module", name="found")
def _found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Boot]:
    """Of one run with all of them."""
    folder = tmp_path_factory.mktemp("machine_boot")
    names = ("earlier", "first", "second", "installing", "unanswered")
    servers = {name: logs(folder / name) for name in names}
    path, line = said(folder / "unanswered", "DHCPDISCOVER(eth0) 52:54:00:77:00:ab no address available")
    path.write_text(f"{line}\n", encoding="ascii")
    with contextlib.ExitStack() as running:
        clusters = {"joins": running.enter_context(Cluster("joins")), "stays-out": running.enter_context(Cluster())}
        clusters["asked-slowly"] = running.enter_context(Cluster(thinks=1.5))
        # The last one to come: none of the others gets its port.
        with Cluster() as gone:
            clusters["of-no-answer"] = gone
        machines = before_clusters(clusters) | before_boot_servers(*(folder / name for name in names[:3]))
        machines |= before_installations(folder / "installing")
        return boots(folder, machines, {**servers, "gone": GONE, "lost": GONE})


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("plain", ["plain"]),
        ("in-a-domain", ["in-a-domain", "in-a-domain.ocp.test"]),
        ("named", ["gpu-7", "gpu-7.ocp.test"]),
    ],
)
def test_a_machine_is_known_as_a_node_by_the_name_of_its_node(
    found: dict[str, Boot], name: str, nodes: list[str]
) -> None:
    assert found[name].asked["nodes"] == nodes
    assert found[name].asked["name"] == name


def test_a_machine_that_runs_a_node_of_another_name_keeps_its_power(found: dict[str, Boot]) -> None:
    outcome = found["runs-a-node"].outcome
    assert "it runs a node of cluster ocp" in outcome["text"]
    assert (outcome["failed"], found["runs-a-node"].told) == (True, [])


def test_teardown_changes_no_machine_with_a_bmc_and_reports_why_it_cannot_remove_another(
    found: dict[str, Boot],
) -> None:
    kept, other = found["kept"], found["on-no-hypervisor"]
    text = "machine kept: it is not a virtual machine, and is not changed"
    assert (kept.outcome, kept.told) == ({"failed": False, "text": text}, []), kept.output
    assert other.outcome["failed"] is True, other.output
    assert other.outcome["text"].startswith("machine on-no-hypervisor: "), other.outcome


@pytest.mark.parametrize(("name", "told"), [("joins", []), ("stays-out", ["power cycle"])])
def test_a_machine_that_joins_between_the_first_question_and_its_turn_keeps_its_power(
    found: dict[str, Boot], name: str, told: list[str]
) -> None:
    assert [line for line in found[name].told if "power" in line] == told, found[name].output
    assert ("it runs a node of cluster ocp" in found[name].outcome["text"]) is (name == "joins")


def test_a_cluster_that_does_not_answer_any_more_says_nothing_of_its_nodes(found: dict[str, Boot]) -> None:
    assert "it is unknown whether it runs a node" in found["of-no-answer"].outcome["text"]
    assert found["of-no-answer"].told == []


def test_a_report_of_an_earlier_boot_does_not_end_the_present_one_and_one_since_its_start_does_also_in_a_later_run(
    found: dict[str, Boot],
) -> None:
    """A BMC that would take the network at each start is put back to the disk by a later run, but not in the middle of the boot."""
    unknown, started, still, later = (found[f"earlier-{number}"] for number in (1, 2, 3, 4))
    assert (unknown.told, "reported in, in this boot or an earlier one" in unknown.outcome["text"]) == ([], True), (
        unknown.output
    )
    assert started.told[-1] == "power on"
    assert still.told == []
    assert later.told == ["bootdev disk options=efiboot"], later.output


@pytest.mark.parametrize("power", ["off", "on"])
def test_a_boot_server_that_is_gone_costs_the_machine_its_verdict_before_it_is_told_anything(
    found: dict[str, Boot], power: str
) -> None:
    one = found[f"gone-{power}"]
    assert one.outcome["failed"] is True, one.output
    assert f"machine gone-{power}: the boot server gone cannot be reached (" in one.outcome["text"]
    assert ". Next: " in one.outcome["text"]
    assert one.told == []


def test_a_host_that_asks_the_cluster_and_is_gone_says_nothing_of_its_nodes(found: dict[str, Boot]) -> None:
    one = found["of-a-lost-host"]
    assert "it is unknown whether it runs a node" in one.outcome["text"], one.output
    assert one.told == []


@pytest.mark.parametrize("written", MACS)
def test_a_machines_lines_are_found_however_its_mac_is_written(found: dict[str, Boot], written: str) -> None:
    one = found[f"with-{written}"]
    assert "its DHCP request was not answered: no address available" in one.outcome["text"], one.output


def test_a_machine_whose_time_is_over_when_it_is_first_looked_at_has_a_verdict(found: dict[str, Boot]) -> None:
    """All of a batch wait while the cluster of one of them is asked, for longer than their time is."""
    one = found["in-no-time"]
    assert one.told[-1:] == ["power on"], one.output
    assert "machine in-no-time: no DHCP request of 52:54:00:77:00:21 was logged. Next: " in one.outcome["text"], (
        one.output
    )


def test_a_run_that_only_looks_reads_the_logs_of_all_boot_servers(found: dict[str, Boot]) -> None:
    """Both offer an address, and the second one sends the kernel."""
    assert found["of-two-2"].told == ["bootdev disk options=efiboot"]


def test_an_installed_machine_is_waited_for_until_it_answers_with_the_host_key_that_it_has_reported(
    found: dict[str, Boot],
) -> None:
    one = found["installed-2"]
    text = "it answers by SSH, with the expected host key: rocky 9.4 on sda"
    assert (one.outcome["failed"], one.outcome["text"].rpartition("; ")[2]) == (False, text), one.output
    assert found["installed-1"].outcome["failed"] is False


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("other-key", "it answers by SSH with another host key than SHA256:bbb"),
        ("other-system", "it runs rocky 9.4 instead of debian. Next: correct the order of disks"),
        ("silent", "it does not answer by SSH; no DHCP request of 52:54:00:77:00:62 was logged. Next: wait for"),
    ],
)
def test_a_machine_that_is_not_as_expected_has_a_verdict(found: dict[str, Boot], name: str, text: str) -> None:
    one = found[name]
    assert one.outcome["failed"] is True, one.output
    assert f"machine {name}: {text}" in one.outcome["text"], one.outcome["text"]


def test_a_machine_that_is_switched_off_is_not_waited_for(found: dict[str, Boot]) -> None:
    assert found["goes-off"].outcome["failed"] is False, found["goes-off"].outcome
