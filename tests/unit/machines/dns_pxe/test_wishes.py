# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine is written once a wish: what a boot server records over several runs, and what of it is a new wish."""

from __future__ import annotations

import base64
import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import plan, units
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File, Unit
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    after,
    findings,
    host,
    machine,
    settings,
)

MASTER, WORKER = "52:54:00:77:00:11", "52:54:00:77:00:21"
NEW: dict[str, t.Any] = {"ocp": []}


class Server:
    """A boot server over several runs. run() returns machines that are installed at their next boot."""

    def __init__(self) -> None:
        self.records: dict[str, str] = {}
        self.messages: list[str] = []
        self.installs: list[str] = []
        self.changes: list[str] = []
        self.nginx, self.now = "", 100.0

    def run(self, joined: dict[str, t.Any] | None = None, *again: str, **changed: t.Any) -> list[str]:
        given = settings(joined=NEW if joined is None else joined, install_again=list(again), **changed)
        self.now += 10
        observed = dataclasses.replace(host(), now=self.now)
        observed.files.update({path: File(path, text) for path, text in self.records.items()})
        result = plan.plan(observed, given, findings(given))
        assert result["faults"] == []
        texts = {
            path: base64.b64decode(text[1:]).decode() for text, path in map(str.split, result["lines"].splitlines())
        }
        self.changes, self.messages = result["changes"], result["messages"]
        self.installs = [name for _cluster, name in result["writes"]]
        self.records |= {path: texts[path] for path in (plan.MEMORY, plan.WISHES) if path in texts}
        self.nginx = texts[f"{plan.CONFIG}/nginx.conf"]
        names = {f"01-{one['mac'].replace(':', '-')}": one["name"] for one in given["machines"]}
        entries = {path.rpartition("/")[2]: text for path, text in texts.items() if "/pxelinux.cfg/" in path}
        return sorted(names[path] for path, text in entries.items() if "DEFAULT install\n" in text)

    @property
    def wishes(self) -> dict[str, str]:
        return {one["mac"]: one["at"] for one in json.loads(self.records[plan.WISHES] or '{"wishes": []}')["wishes"]}

    def fetched(self, *macs: str) -> None:
        """As the service records it."""
        written = {mac: self.wishes[mac] for mac in macs}
        self.records[plan.WRITTEN] = json.dumps({"log": [1, 2], "written": written})


def test_a_machine_that_has_fetched_its_file_boots_its_disk_from_the_next_run_on() -> None:
    server = Server()
    assert server.run() == ["bootstrap", "master-0", "worker-0"]
    server.fetched(WORKER)
    for _run in range(2):
        assert server.run() == ["bootstrap", "master-0"]
        assert plan.WISHES not in server.changes
    assert any(line.startswith("written once, so they boot their disks: worker-0. Next:") for line in server.messages)
    assert "allow 10.77.0.21;" in server.nginx, "an installer may fetch the file again"


@pytest.mark.parametrize(
    "between",
    [
        {"joined": {}},
        {"joined": {"ocp": ["master-0"]}},
        {"machines": settings()["machines"][:2]},
        {"machines": [*settings()["machines"][:2], machine("gpu-0", "worker", 21)]},
        {"profiles": [{**one, "arguments": ["quiet"]} for one in settings()["profiles"]]},
    ],
    ids=["silent cluster", "other nodes", "missing in the inventory", "renamed", "other arguments"],
)
def test_nothing_but_an_explicit_request_makes_it_a_new_wish(between: dict[str, t.Any]) -> None:
    server = Server()
    server.run()
    server.fetched(WORKER)
    assert not {"worker-0", "gpu-0"} & set(server.run(**between))
    server.run({"ocp": ["master-0"]})
    assert server.run({"ocp": ["master-0"]}) == []


def test_a_name_in_install_again_is_a_new_wish_and_is_used_up_by_the_fetch() -> None:
    server = Server()
    server.run()
    server.fetched(WORKER, MASTER)
    assert server.run() == ["bootstrap"]
    assert server.run(NEW, "worker-0") == ["bootstrap", "worker-0"]
    assert server.run(NEW, "worker-0") == ["bootstrap", "worker-0"] and plan.WISHES not in server.changes
    server.fetched(WORKER, MASTER)
    assert server.run(NEW, "worker-0") == ["bootstrap"]
    assert server.run() == ["bootstrap"]


def test_a_node_that_is_reinstalled_is_written_once_while_its_old_node_is_still_there() -> None:
    server = Server()
    there = {"ocp": [{"name": "worker-0", "boot": "1"}]}
    server.run(there)
    assert "worker-0" in server.run(there, "worker-0")
    server.fetched(WORKER)
    for _run in range(2):
        assert server.run(there, "worker-0") == ["master-0"]
    server.run({"ocp": [{"name": "worker-0", "boot": "2"}]}, "worker-0")
    assert WORKER not in server.wishes


def test_a_wish_ends_with_its_declaration_and_a_declaration_after_that_is_a_new_one() -> None:
    server = Server()
    server.run()
    server.fetched(WORKER)
    kept = [{**one, "install": one["name"] != "worker-0"} for one in settings()["machines"]]
    assert "worker-0" not in server.run(machines=kept)
    assert WORKER not in server.wishes
    assert "worker-0" in server.run()


def test_a_machine_without_a_file_that_it_fetches_has_no_wish() -> None:
    server = Server()
    profiles = [{**one, "ignition": ""} for one in settings()["profiles"]]
    assert server.run(profiles=profiles) == ["bootstrap", "master-0", "worker-0"]
    assert plan.WISHES not in server.records


@pytest.mark.parametrize("path", [plan.WISHES, plan.WRITTEN])
def test_a_damaged_record_is_a_problem(path: str) -> None:
    observed, found = after(settings())
    for text in ("{", "[]", '{"wishes": [{}]}', '{"wishes": 3}'):
        observed.files[path] = File(path, text)
        result = plan.plan(observed, settings(), found)
        assert any("machines that have been written cannot be read" in one["text"] for one in result["faults"]), text


def test_the_service_is_restarted_with_a_newer_program_and_removed_when_it_is_not_needed() -> None:
    given = settings()
    observed, found = after(given)
    observed.files[plan.PROGRAM] = dataclasses.replace(observed.files[plan.PROGRAM], changed_at=300.0)
    assert [(one["unit"], one["state"]) for one in plan.plan(observed, given, found)["actions"]] == [
        (units.ONCE, "restarted")
    ]
    observed.units[units.ONCE] = Unit(True, False, True)
    assert [one["why"] for one in plan.plan(observed, given, found)["actions"]] == ["it does not run"]
    without = plan.plan(observed, settings(pxe=False), found)
    assert without["stops"] == [units.ONCE]
    assert {plan.PROGRAM, units.path(units.ONCE)} <= set(without["absent"])
    restored = plan.restored(observed)
    assert restored["stops"] == ["dnsmasq", "nginx", units.ONCE]
    assert units.path(units.ONCE) in restored["absent"]


BOOTSTRAP = "52:54:00:77:00:10"


def test_a_bootstrap_machine_that_becomes_a_worker_is_installed_once_as_each() -> None:
    server = Server()
    assert "bootstrap" in server.run()
    server.fetched(BOOTSTRAP)
    assert "bootstrap" not in server.run()
    turned = [machine("bootstrap", "worker", 10), *settings()["machines"][1:]]
    assert "bootstrap" in server.run(machines=turned)
    # The wish does not begin again at each run.
    asked = server.wishes[BOOTSTRAP]
    assert "bootstrap" in server.run(machines=turned) and server.wishes[BOOTSTRAP] == asked
    assert "bootstrap" in server.installs
    server.fetched(BOOTSTRAP)
    for _run in range(2):
        assert "bootstrap" not in server.run(machines=turned) and "bootstrap" not in server.installs


def test_a_bootstrap_machine_that_nobody_wants_to_be_installed_again_is_not() -> None:
    server = Server()
    server.run()
    server.fetched(BOOTSTRAP)
    turned = [machine("bootstrap", "worker", 10, install=False), *settings()["machines"][1:]]
    assert "bootstrap" not in server.run(machines=turned)


def test_records_of_other_machines_are_those_of_before() -> None:
    server = Server()
    server.run()
    kept = {one["mac"]: set(one) for one in json.loads(server.records[plan.WISHES])["wishes"]}
    assert kept[WORKER] == {"mac", "cluster", "name", "address", "paths", "at"}
    assert kept[BOOTSTRAP] - kept[WORKER] == {"bootstrap"}
