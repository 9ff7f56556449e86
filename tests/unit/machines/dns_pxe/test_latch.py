# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that has been a node is never reinstalled automatically, even if its cluster and its inventory change later."""

from __future__ import annotations

import base64
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import model, plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.predicted import predicted
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    after,
    findings,
    host,
    machine,
    settings,
)

#: Nodes of a cluster that is declared as new and does not answer.
NEW: dict[str, list[str]] = {"ocp": []}
BOTH = {"ocp": ["master-0", "worker-0"]}


def node(name: str, boot: str) -> dict[str, str]:
    return {"name": name, "boot": boot}


class Server:
    """A boot server over several runs: its record is what the last run has written. run() returns the machines that are installed."""

    def __init__(self) -> None:
        self.recorded: str | None = None
        self.messages: list[str] = []
        self.changed = False

    def run(self, joined: dict[str, t.Any], *again: str, **changed: t.Any) -> list[str]:
        given = settings(joined=joined, install_again=list(again), **changed)
        observed = host()
        if self.recorded is not None:
            observed.files[plan.MEMORY] = File(plan.MEMORY, self.recorded)
        result = plan.plan(observed, given, findings(given))
        assert result["faults"] == []
        texts = {
            path: base64.b64decode(text[1:]).decode() for text, path in map(str.split, result["lines"].splitlines())
        }
        self.changed = plan.MEMORY in result["changes"]
        assert self.changed == (f"write {plan.MEMORY}" in predicted(result, absent=False))
        self.recorded, self.messages = texts.get(plan.MEMORY, self.recorded), result["messages"]
        entries = {path.rpartition("/")[2]: text for path, text in texts.items() if "/pxelinux.cfg/" in path}
        names = {f"01-{one['mac'].replace(':', '-')}": one["name"] for one in given["machines"]}
        return sorted(names[path] for path, text in entries.items() if "DEFAULT install" in text)

    def reports(self, text: str) -> bool:
        return any(text in line for line in self.messages)


def test_all_machines_of_a_new_cluster_are_installed_until_its_first_node() -> None:
    server = Server()
    assert server.run(NEW) == ["bootstrap", "master-0", "worker-0"]
    assert (server.recorded, server.changed) == (None, False)
    assert server.run({"ocp": ["master-0"]}) == ["worker-0"]
    assert server.changed


@pytest.mark.parametrize(
    ("text", "expected"),
    [("false", []), ("no", []), ("0", []), ("False", []), ("yes", ["worker-0"]), ("true", ["worker-0"])],
)
def test_a_text_that_means_no_installs_no_machine(text: str, expected: list[str]) -> None:
    machines = [{**one, "install": text if one["name"] == "worker-0" else False} for one in settings()["machines"]]
    assert Server().run(NEW, machines=machines) == expected


@pytest.mark.parametrize(
    "joined",
    [NEW, {}, {"ocp": ["master-1.ocp.example.com"]}],
    ids=["new and without answer", "not requested", "node was deleted"],
)
def test_a_machine_that_was_a_node_is_never_reinstalled_automatically(joined: dict[str, t.Any]) -> None:
    server = Server()
    server.run({"ocp": ["master-0.ocp.example.com", "worker-0"]})
    assert server.run(joined) == []
    assert not server.changed
    assert server.reports("as they have been nodes before: ") and server.reports(
        "master-0, worker-0. Next: add those that have to be wiped"
    )


def test_a_cluster_that_had_a_node_and_does_not_answer_is_not_new() -> None:
    """Its other machines may have joined in the meantime."""
    server = Server()
    server.run({"ocp": ["master-0"]})
    assert server.run(NEW) == []
    assert server.reports("cluster ocp has had nodes and reports none now")
    assert server.run({"ocp": ["master-0"]}) == ["worker-0"]


def test_a_machine_is_identified_by_its_mac_with_another_name_and_cluster() -> None:
    server = Server()
    server.run(BOTH)
    renamed = [machine("dgx-0", "worker", 21, cluster="two"), machine("worker-0", "worker", 22)]
    two = {**settings()["clusters"][0], "name": "two", "domain": "two.example.com"}
    given = {"machines": renamed, "clusters": [*settings()["clusters"], two]}
    assert server.run({"ocp": ["master-0"], "two": []}, **given) == []
    assert server.reports("dgx-0 (as worker-0 of ocp), worker-0")
    # The old name is removed from the record once the machine has joined with its new name.
    given["machines"] = renamed[:1]
    assert server.run({"ocp": ["master-0"], "two": []}, **given) == []
    assert server.recorded and '"worker-0"' in server.recorded
    server.run({"ocp": ["master-0"], "two": ["dgx-0"]}, **given)
    assert '"worker-0"' not in server.recorded and '"dgx-0"' in server.recorded


def test_a_bootstrap_machine_may_become_a_node() -> None:
    server = Server()
    server.run({"ocp": ["master-0"]})
    machines = [settings()["machines"][1], machine("worker-2", "worker", 10)]
    assert server.run({"ocp": ["master-0"]}, machines=machines) == ["worker-2"]


def test_a_machine_is_removed_from_the_record_when_inventory_and_cluster_lack_it() -> None:
    """An inventory where it is missing by accident is not enough."""
    server = Server()
    without = settings()["machines"][:2]
    server.run(BOTH)
    for joined in (BOTH, NEW, {}):
        server.run(joined, machines=without)
        assert not server.changed
    server.run({"ocp": ["master-0"]}, machines=without)
    assert server.changed and server.reports(
        "removed from the record, as neither the inventory nor their cluster has them any more: worker-0"
    )
    assert server.run({"ocp": ["master-0"]}) == ["worker-0"]


def test_a_machine_in_install_again_is_reinstalled_once() -> None:
    """It joins again with another boot ID. Its name may stay in the variable."""
    server = Server()
    before, rejoined = (
        {"ocp": [node("worker-0", "1"), node("master-0", "7")]},
        {"ocp": [node("worker-0", "2"), node("master-0", "7")]},
    )
    server.run(before)
    assert server.run(before, "worker-0") == ["worker-0"]
    assert server.changed and server.reports(
        "installed because dns_pxe_install_again names them, until they have joined again: worker-0"
    )
    assert server.reports("as they have joined: bootstrap, master-0") and not server.reports("master-0, worker-0")
    assert server.run(before, "worker-0") == ["worker-0"]
    assert not server.changed, "the second run"
    assert server.run(rejoined, "worker-0") == []
    assert server.reports(
        "not installed again, as they have joined since dns_pxe_install_again named them: worker-0. Next: remove them"
    )
    for joined in (rejoined, NEW, {}, {"ocp": [node("worker-0", "3")]}):
        assert server.run(joined, "worker-0") == []
        assert not server.changed
    assert server.run(rejoined) == []
    assert server.run(rejoined, "worker-0") == ["worker-0"], "its name was removed and added again"


@pytest.mark.parametrize(
    ("joined", "during"),
    [
        ({"ocp": [node("worker-0", "1")]}, {"ocp": [node("master-0", "1")]}),
        ({"ocp": ["worker-0"]}, {"ocp": ["master-0"]}),
        ({}, {}),
        (NEW, NEW),
    ],
    ids=["node deleted", "boot IDs are unknown", "not requested", "new and without answer"],
)
def test_joining_completes_a_requested_reinstallation(joined: dict[str, t.Any], during: dict[str, t.Any]) -> None:
    server = Server()
    server.run(BOTH)
    assert "worker-0" in server.run(joined, "worker-0")
    assert "worker-0" in server.run(during, "worker-0")
    assert server.run({"ocp": [node("worker-0", "1")]}, "worker-0") == []


def test_a_machine_whose_name_is_removed_before_it_joins_is_not_installed() -> None:
    server = Server()
    server.run(BOTH)
    assert server.run({}, "worker-0") == ["worker-0"]
    assert server.run({}) == []


def test_a_name_of_machines_in_two_clusters_is_ambiguous() -> None:
    machines = [
        machine("worker-0", "worker", 21, install=False),
        machine("worker-0", "worker", 31, cluster="two", install=False),
    ]
    two = {**settings()["clusters"][0], "name": "two", "domain": "two.example.com"}
    both = {"machines": machines, "clusters": [*settings()["clusters"], two]}
    given = settings(install_again=["worker-0"], **both)
    (fault,) = plan.plan(host(), given, findings(given))["faults"]
    assert (
        "worker-0 cannot be installed again (dns_pxe_install_again): clusters ocp, two have machines with this name"
        in fault["text"]
    )
    assert "Next: write it as ocp/worker-0" in fault["text"]
    site, _faults = model.read(given)
    assert site and site.decision.installs == frozenset()
    server = Server()
    server.run({}, "two/worker-0", **both)
    assert server.reports("until they have joined again: worker-0")
    assert server.recorded and '"cluster": "two"' in server.recorded and '"cluster": "ocp"' not in server.recorded


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": []}', '{"nodes": [{"name": "x"}], "again": []}', "null"])
def test_a_damaged_record_is_a_fault(text: str) -> None:
    observed, found = after(settings())
    observed.files[plan.MEMORY] = File(plan.MEMORY, text)
    result = plan.plan(observed, settings(), found)
    assert [
        plan.MEMORY in fault["text"] and "no machine can be installed" in fault["text"] for fault in result["faults"]
    ] == [True]
    assert result["lines"] == ""


def test_the_record_does_not_change_while_pxe_is_disabled() -> None:
    server = Server()
    server.run(BOTH)
    server.run({"ocp": ["master-0"]}, pxe=False, machines=[])
    assert not server.changed
    observed, found = after(settings())
    observed.files[plan.MEMORY] = File(plan.MEMORY, server.recorded or "")
    assert plan.MEMORY not in plan.plan(observed, settings(pxe=False), found)["absent"]
