# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that has been a node is never installed by itself again, whatever its cluster and its inventory say later."""

from __future__ import annotations

import base64
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.dns_pxe import model, plan
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import File
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.boot_server import (
    after,
    findings,
    host,
    machine,
    settings,
)

#: Silence of a cluster that is told to be new.
NEW: dict[str, list[str]] = {"ocp": []}
BOTH = {"ocp": ["master-0", "worker-0"]}


def node(name: str, boot: str) -> dict[str, str]:
    return {"name": name, "boot": boot}


class Server:
    """A boot server over several runs: what it remembers is what the last of them has written. run() says who is installed."""

    def __init__(self) -> None:
        self.memory: str | None = None
        self.told: list[str] = []
        self.changed = False

    def run(self, joined: dict[str, t.Any], *again: str, **changed: t.Any) -> list[str]:
        given = settings(joined=joined, install_again=list(again), **changed)
        seen = host()
        if self.memory is not None:
            seen.files[plan.MEMORY] = File(plan.MEMORY, self.memory)
        made = plan.plan(seen, given, findings(given))
        assert made["faults"] == []
        texts = {path: base64.b64decode(text[1:]).decode() for text, path in map(str.split, made["lines"].splitlines())}
        self.changed = plan.MEMORY in made["changes"]
        assert self.changed == (f"write {plan.MEMORY}" in made["predicted"])
        self.memory, self.told = texts.get(plan.MEMORY, self.memory), made["messages"]
        entries = {path.rpartition("/")[2]: text for path, text in texts.items() if "/pxelinux.cfg/" in path}
        names = {f"01-{one['mac'].replace(':', '-')}": one["name"] for one in given["machines"]}
        return sorted(names[path] for path, text in entries.items() if "LOCALBOOT" not in text)

    def tells(self, text: str) -> bool:
        return any(text in line for line in self.told)


def test_a_new_cluster_that_does_not_answer_installs_all_until_its_first_node() -> None:
    server = Server()
    assert server.run(NEW) == ["bootstrap", "master-0", "worker-0"]
    assert (server.memory, server.changed) == (None, False)
    assert server.run({"ocp": ["master-0"]}) == ["worker-0"]
    assert server.changed


@pytest.mark.parametrize(
    ("text", "expected"),
    [("false", []), ("no", []), ("0", []), ("False", []), ("yes", ["worker-0"]), ("true", ["worker-0"])],
)
def test_text_that_means_no_wipes_no_machine(text: str, expected: list[str]) -> None:
    machines = [{**one, "install": text if one["name"] == "worker-0" else False} for one in settings()["machines"]]
    assert Server().run(NEW, machines=machines) == expected


@pytest.mark.parametrize(
    "joined",
    [NEW, {}, {"ocp": ["master-1.ocp.example.com"]}],
    ids=["silent and told to be new", "not asked", "node is gone"],
)
def test_a_machine_that_was_a_node_is_never_installed_by_itself_again(joined: dict[str, t.Any]) -> None:
    server = Server()
    server.run({"ocp": ["master-0.ocp.example.com", "worker-0"]})
    assert server.run(joined) == []
    assert not server.changed
    assert server.tells("as they have been nodes before: ") and server.tells(
        "master-0, worker-0. Next: add those that have to be wiped"
    )


def test_silence_of_a_cluster_that_had_a_node_does_not_make_it_new_for_machines_that_were_none() -> None:
    """They may have joined since."""
    server = Server()
    server.run({"ocp": ["master-0"]})
    assert server.run(NEW) == []
    assert server.tells("cluster ocp has had nodes and reports none now")
    assert server.run({"ocp": ["master-0"]}) == ["worker-0"]


def test_a_machine_is_known_by_its_mac_under_another_name_and_in_another_cluster() -> None:
    server = Server()
    server.run(BOTH)
    renamed = [machine("dgx-0", "worker", 21, cluster="two"), machine("worker-0", "worker", 22)]
    two = {**settings()["clusters"][0], "name": "two", "domain": "two.example.com"}
    given = {"machines": renamed, "clusters": [*settings()["clusters"], two]}
    assert server.run({"ocp": ["master-0"], "two": []}, **given) == []
    assert server.tells("dgx-0 (as worker-0 of ocp), worker-0")
    # Its cluster knows the old name no more; it goes once the machine has joined by its new one.
    given["machines"] = renamed[:1]
    assert server.run({"ocp": ["master-0"], "two": []}, **given) == []
    assert server.memory and '"worker-0"' in server.memory
    server.run({"ocp": ["master-0"], "two": ["dgx-0"]}, **given)
    assert '"worker-0"' not in server.memory and '"dgx-0"' in server.memory


def test_a_bootstrap_machine_may_become_a_node() -> None:
    server = Server()
    server.run({"ocp": ["master-0"]})
    machines = [settings()["machines"][1], machine("worker-2", "worker", 10)]
    assert server.run({"ocp": ["master-0"]}, machines=machines) == ["worker-2"]


def test_a_machine_is_forgotten_once_neither_inventory_nor_cluster_has_it() -> None:
    """An inventory that lacks it by accident is not enough."""
    server = Server()
    without = settings()["machines"][:2]
    server.run(BOTH)
    for joined in (BOTH, NEW, {}):
        server.run(joined, machines=without)
        assert not server.changed
    server.run({"ocp": ["master-0"]}, machines=without)
    assert server.changed and server.tells(
        "removed from the record, as neither the inventory nor their cluster has them any more: worker-0"
    )
    assert server.run({"ocp": ["master-0"]}) == ["worker-0"]


def test_a_machine_that_is_named_is_installed_again_once() -> None:
    """It joins anew with another boot; its name may stay in the variable for ever."""
    server = Server()
    before, anew = (
        {"ocp": [node("worker-0", "1"), node("master-0", "7")]},
        {"ocp": [node("worker-0", "2"), node("master-0", "7")]},
    )
    server.run(before)
    assert server.run(before, "worker-0") == ["worker-0"]
    assert server.changed and server.tells(
        "installed because dns_pxe_install_again names them, until they have joined again: worker-0"
    )
    assert server.tells("as they have joined: bootstrap, master-0") and not server.tells("master-0, worker-0")
    assert server.run(before, "worker-0") == ["worker-0"]
    assert not server.changed, "the second run"
    assert server.run(anew, "worker-0") == []
    assert server.tells(
        "not installed again, as they have joined since dns_pxe_install_again named them: worker-0. Next: remove them"
    )
    for joined in (anew, NEW, {}, {"ocp": [node("worker-0", "3")]}):
        assert server.run(joined, "worker-0") == []
        assert not server.changed
    assert server.run(anew) == []
    assert server.run(anew, "worker-0") == ["worker-0"], "it was taken out, and named anew"


@pytest.mark.parametrize(
    ("joined", "meanwhile"),
    [
        ({"ocp": [node("worker-0", "1")]}, {"ocp": [node("master-0", "1")]}),
        ({"ocp": ["worker-0"]}, {"ocp": ["master-0"]}),
        ({}, {}),
        (NEW, NEW),
    ],
    ids=["node deleted", "boots are not known", "not asked", "silent and told to be new"],
)
def test_joining_ends_a_wish_however_it_began(joined: dict[str, t.Any], meanwhile: dict[str, t.Any]) -> None:
    server = Server()
    server.run(BOTH)
    assert "worker-0" in server.run(joined, "worker-0")
    assert "worker-0" in server.run(meanwhile, "worker-0")
    assert server.run({"ocp": [node("worker-0", "1")]}, "worker-0") == []


def test_a_machine_whose_name_is_taken_out_before_it_has_joined_keeps_its_disk() -> None:
    server = Server()
    server.run(BOTH)
    assert server.run({}, "worker-0") == ["worker-0"]
    assert server.run({}) == []


def test_a_name_that_two_clusters_have_is_no_wish_for_either() -> None:
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
    assert server.tells("until they have joined again: worker-0")
    assert server.memory and '"cluster": "two"' in server.memory and '"cluster": "ocp"' not in server.memory


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": []}', '{"nodes": [{"name": "x"}], "again": []}', "null"])
def test_memory_that_cannot_be_read_is_a_fault_and_not_an_empty_one(text: str) -> None:
    seen, found = after(settings())
    seen.files[plan.MEMORY] = File(plan.MEMORY, text)
    made = plan.plan(seen, settings(), found)
    assert [
        plan.MEMORY in fault["text"] and "no machine can be installed" in fault["text"] for fault in made["faults"]
    ] == [True]
    assert made["lines"] == ""


def test_nothing_is_remembered_or_forgotten_while_nothing_boots_from_here() -> None:
    server = Server()
    server.run(BOTH)
    server.run({"ocp": ["master-0"]}, pxe=False, machines=[])
    assert not server.changed
    seen, found = after(settings())
    seen.files[plan.MEMORY] = File(plan.MEMORY, server.memory or "")
    assert plan.MEMORY not in plan.plan(seen, settings(pxe=False), found)["absent"]
