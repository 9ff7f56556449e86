# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which a cluster of K3s has other certificate authorities."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import authorities
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.rotation import AUTHORITIES, rotation
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import made
from ansible_collections.hwaccel.gpu.tests.unit.machines.k3s.test_authorities import first, second

MACHINES = [{"host": host, "node": f"n-{host}", "serves": host[0] == "s"} for host in ("s1", "s2", "s3", "a1", "a2")]
OLD, NEW = first()["server-ca.crt"], second()["server-ca.crt"]
MINE, NEXT = authority.fingerprint(OLD), authority.fingerprint(NEW)
RESTARTS = ["restart s1", "restart s2", "restart s3", "restart a1 a2"]


def look(server: str = OLD, agent: str = "", **more: t.Any) -> dict[str, t.Any]:
    """What rotate_ca.py prints of a server, by default of one that nothing was done on. agent: of its node, by default the same."""
    found = {"server": server, "agent": agent or server, "lacking": [], "begun": "", "new": "", "saved": False}
    return {**found, "prepared": False, "replaced": "", **more}


def node(text: str = OLD, **more: t.Any) -> dict[str, t.Any]:
    return {**look(text, **more), "server": ""}


def planned(looks: dict[str, dict[str, t.Any] | None], confirm: str = MINE, **wish: t.Any) -> dict[str, t.Any]:
    seen = {one["host"]: look() if one["serves"] else node() for one in MACHINES} | looks
    texts = {host: json.dumps(one) if one else "" for host, one in seen.items()}
    nodes = [one["node"] for one in MACHINES]
    given = {"what": AUTHORITIES, "cluster": "one", "token": "", "nodes": nodes, "lost": [], "at_a_time": "2"}
    return rotation(MACHINES, texts, {**given, "confirm": confirm, **wish})


def took(plan: dict[str, t.Any]) -> list[str]:
    assert plan["faults"] == [] and plan["changes"] == [step["text"] for step in plan["steps"]]
    return [f"{step['do']} {' '.join(step['hosts'])}" for step in plan["steps"]]


def test_one_server_makes_them_and_all_machines_are_restarted() -> None:
    plan = planned({})
    assert took(plan) == ["make s1", "save s1", *RESTARTS]
    assert (plan["owner"], plan["old"], plan["hash"], plan["acts"]) == ("s1", MINE, "", True)
    assert plan["begins"] == ["s1", "s2", "s3", "a1", "a2"]


def test_it_is_told_before_it_is_confirmed() -> None:
    plan = planned({}, confirm="")
    assert (plan["changes"], plan["acts"]) == ([], False) and len(plan["steps"]) == 6
    assert "restart K3s on a1, a2 with the new certificate authorities" in plan["lines"][0]
    assert "The old roots stay trusted until they end" in plan["lines"][0]
    assert plan["lines"][1].endswith(f"-e hwaccel_confirm={MINE}")


def test_agents_are_restarted_in_batches() -> None:
    assert took(planned({}, at_a_time="50%"))[-2:] == ["restart a1", "restart a2"]


_OWNER: dict[str, t.Any] = {"begun": MINE, "new": NEW}
_DONE: dict[str, t.Any] = {"begun": MINE, "prepared": True}
_SAVED: dict[str, t.Any] = {**_OWNER, "saved": True}


@pytest.mark.parametrize(
    ("looks", "steps"),
    [
        # Killed while it was recorded
        ({"s1": look(begun=MINE)}, ["make s1", "save s1", *RESTARTS]),
        # before it was saved, or while
        ({"s2": look(**_OWNER)}, ["save s2", "restart s2", "restart s1", "restart s3", "restart a1 a2"]),
        ({"s1": look(**_SAVED)}, RESTARTS),
        # before the first one was restarted, or while
        ({"s1": look(**_SAVED, prepared=True)}, RESTARTS),
        ({"s1": look(NEW, OLD, **_SAVED, prepared=True)}, RESTARTS),
        ({"s1": look(NEW, **_SAVED, prepared=True)}, RESTARTS[1:]),
        # One has restarted by itself before it was prepared
        ({"s1": look(NEW, **_SAVED, prepared=True), "s3": look(NEW, begun=MINE)}, RESTARTS[1:]),
        # among agents
        (
            {
                "s1": look(NEW, **_SAVED, prepared=True),
                "s2": look(NEW, **_DONE),
                "s3": look(NEW, **_DONE),
                "a1": node(NEW, **_DONE),
                "a2": node(**_DONE),
            },
            ["restart a2"],
        ),
    ],
)
def test_what_is_left_to_do_follows_from_the_machines(looks: dict[str, t.Any], steps: list[str]) -> None:
    assert took(planned(looks)) == steps


def test_the_hash_is_that_of_the_new_root() -> None:
    assert planned({"s2": look(**_OWNER)})["hash"] == authorities.hash_of(NEW)


def test_a_run_that_was_killed_at_its_end_has_nothing_to_restart() -> None:
    done = {host: look(NEW, replaced=MINE) for host in ("s2", "s3")}
    agents = {"a1": node(NEW, replaced=MINE), "a2": node(NEW, **_DONE)}
    plan = planned({**done, **agents, "s1": look(NEW, **_SAVED, prepared=True)})
    assert took(plan) == [] and plan["begins"] == [] and plan["acts"] and plan["owner"] == "s1"


def test_it_goes_on_without_the_server_that_has_made_them() -> None:
    """It was lost, and installed anew."""
    plan = planned({"s1": look(), "s2": look(NEW, **_DONE), "s3": look(begun=MINE)})
    assert took(plan) == ["restart s1", "restart s3", "restart a1 a2"] and plan["hash"] == authorities.hash_of(NEW)


def test_they_are_replaced_once() -> None:
    done = {one["host"]: (look if one["serves"] else node)(NEW, replaced=MINE) for one in MACHINES}
    plan = planned({**done, "s3": look(NEW)})
    assert (plan["faults"], plan["steps"], plan["acts"]) == ([], [], False)
    assert plan["lines"] == [f"{MINE} was replaced already, by {NEXT}"]
    assert planned(done, confirm=NEXT)["acts"]


@pytest.mark.parametrize(
    ("looks", "wish", "text"),
    [
        ({"a2": None}, {}, "a2 could not be observed"),
        ({}, {"confirm": "another"}, f"it is another, and the authority of one is {MINE}"),
        ({"s1": look(**_OWNER)}, {"confirm": NEXT}, f"it is {NEXT}, and the authority of one is {MINE}"),
        ({"s2": look(made().pem)}, {}, "s2 is of another cluster"),
        ({"a1": node(made().pem)}, {}, "a1 is of another cluster"),
        ({"s3": look("", "")}, {}, "s3 is no member of the cluster"),
        ({"s3": look(lacking=["client-ca.key"])}, {}, "client-ca.key is missing, or has no key of its root"),
        ({}, {"nodes": []}, "one could not be asked for its nodes"),
        ({}, {"nodes": ["n-s1", "n-x"]}, "n-x is a node, and no machine that stays"),
    ],
)
def test_why_nothing_is_done(looks: dict[str, t.Any], wish: dict[str, t.Any], text: str) -> None:
    plan = planned(looks, **{"confirm": MINE, **wish})
    assert (plan["steps"], plan["changes"], plan["acts"]) == ([], [], False)
    assert text in plan["faults"][0]["text"] and "Next: " in plan["faults"][0]["text"]


def test_all_problems_are_told_at_once() -> None:
    plan = planned({"a2": None, "s2": look(made().pem), "s3": look(lacking=["service.key"])}, nodes=["n-x"])
    assert len(plan["faults"]) == 4


def test_machines_that_are_gone_for_good_may_still_be_nodes() -> None:
    assert planned({}, nodes=["n-s1", "n-x"], lost=["n-x"])["faults"] == []
