# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which servers of K3s have another token, or encrypt with another key."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.rotation import KEYS, TOKEN, rotation

MACHINES = [{"host": host, "node": host, "serves": host != "a1"} for host in ("s1", "s2", "s3", "a1")]
OLD, NEW = "K10::server:before", "K10::server:fresh"


def has(own: str = OLD, given: str = OLD, *, loaded: bool = True) -> str:
    return json.dumps({"own": own, "given": given, "loaded": loaded})


def of_token(looks: dict[str, str], token: str = "fresh") -> dict[str, t.Any]:
    return rotation(MACHINES, looks, {"what": TOKEN, "cluster": "one", "token": token, "confirm": ""})


def took(plan: dict[str, t.Any]) -> list[tuple[str, str]]:
    assert plan["faults"] == [] and "fresh" not in json.dumps(plan) and "before" not in json.dumps(plan["steps"])
    assert plan["changes"] == [step["text"] for step in plan["steps"]]
    return [(step["do"], " ".join(step["hosts"])) for step in plan["steps"]]


def test_one_server_replaces_the_token_and_all_are_restarted_with_it() -> None:
    plan = of_token({"s1": has(), "s2": has(), "s3": has()})
    assert took(plan) == [
        ("rotate", "s1"),
        ("write", "s1 s2 s3"),
        ("restart", "s1"),
        ("restart", "s2"),
        ("restart", "s3"),
    ]
    assert "Keep the token of before, too" in plan["lines"][0]


@pytest.mark.parametrize(
    ("looks", "steps"),
    [
        # Killed after the token of the cluster was replaced
        (
            {"s1": has(), "s2": has(NEW), "s3": has()},
            ["write s1 s2 s3", "restart s2", "restart s1", "restart s3"],
        ),
        # while files were written
        ({"s1": has(NEW, NEW, loaded=False), "s2": has(OLD, NEW, loaded=False), "s3": has()}, None),
        # between restarts
        (
            {"s1": has(NEW, NEW), "s2": has(OLD, NEW, loaded=False), "s3": has(OLD, NEW, loaded=False)},
            ["restart s2", "restart s3"],
        ),
        ({"s1": has(NEW, NEW), "s2": has(NEW, NEW), "s3": has(NEW, NEW)}, []),
    ],
)
def test_what_is_left_to_do_follows_from_the_servers(looks: dict[str, str], steps: list[str] | None) -> None:
    expected = ["write s3", "restart s1", "restart s2", "restart s3"] if steps is None else steps
    assert [" ".join(step) for step in took(of_token(looks))] == expected


def test_a_server_with_this_token_is_told_so() -> None:
    plan = of_token(dict.fromkeys(("s1", "s2", "s3"), has(NEW, NEW)))
    assert (plan["acts"], plan["lines"]) == (False, ["The servers of one have this token already."])


@pytest.mark.parametrize(
    ("looks", "token", "text"),
    [
        ({"s1": has(), "s2": has()}, "fresh", "s3 could not be observed"),
        ({"s1": has(), "s2": has(""), "s3": has()}, "fresh", "s2 is no server of the cluster"),
        (
            {"s1": has(), "s2": has("K10::server:third"), "s3": has()},
            "fresh",
            "it is not known which token is in force",
        ),
        (
            {"s1": has(), "s2": has(), "s3": has()},
            "",
            "servers cannot have the token that is set (cluster_k3s_token): it is empty",
        ),
    ],
)
def test_why_the_token_is_not_replaced(looks: dict[str, str], token: str, text: str) -> None:
    plan = of_token(looks, token)
    assert plan["steps"] == [] and text in plan["faults"][0]["text"] and "Next: " in plan["faults"][0]["text"]
    assert "third" not in json.dumps(plan)


def says(key: str = "aescbckey", digest: str = "one", **changes: t.Any) -> str:
    status = {"enabled": True, "stage": "start", "key": key, "inactive": [], "equal": True, "why": ""}
    found = {"why": "", "replaced": "", "loaded": True, "digest": digest, "status": status}
    inner = {name: changes.pop(name) for name in [*changes] if name in status and "status" not in changes}
    return json.dumps({**found, "status": {**status, **inner}, **changes})


def of_keys(looks: dict[str, str], confirm: str = "") -> dict[str, t.Any]:
    return rotation(MACHINES, looks, {"what": KEYS, "cluster": "one", "token": "", "confirm": confirm})


def test_the_key_is_replaced_once_it_is_confirmed() -> None:
    looks = dict.fromkeys(("s1", "s2", "s3"), says())
    told = of_keys(looks)
    assert (told["steps"], told["changes"]) == ([], []) and "-e hwaccel_confirm=aescbckey" in told["lines"][1]
    plan = of_keys(looks, "aescbckey")
    assert (plan["owner"], plan["old"]) == ("s1", "aescbckey")
    restarts = [("restart", "s1"), ("restart", "s2"), ("restart", "s3")]
    assert took(plan) == [("rotate", "s1"), ("write", "s2 s3"), *restarts]


@pytest.mark.parametrize(
    ("first", "others", "steps"),
    [
        # Recorded, and not begun
        ({"replaced": "aescbckey"}, {}, ["rotate s1", "write s2 s3", "restart s1", "restart s2", "restart s3"]),
        # K3s is at it
        (
            {"key": "new", "stage": "reencrypt_active", "inactive": ["aescbckey"], "equal": False},
            {},
            ["rotate s1", "write s2 s3", "restart s1", "restart s2", "restart s3"],
        ),
        # K3s has ended, and no server was restarted
        (
            {"key": "new", "stage": "reencrypt_finished", "digest": "two", "loaded": False, "equal": False},
            {},
            ["write s2 s3", "restart s1", "restart s2", "restart s3"],
        ),
        ({"key": "new", "digest": "two", "equal": False}, {}, ["write s2 s3", "restart s2", "restart s3"]),
        ({"key": "new", "digest": "two"}, {"key": "new", "digest": "two"}, []),
    ],
)
def test_a_rotation_of_keys_is_continued(first: dict[str, t.Any], others: dict[str, t.Any], steps: list[str]) -> None:
    looks = {
        host: says(**{"replaced": "aescbckey", **(first if host == "s1" else others)}) for host in ("s1", "s2", "s3")
    }
    plan = of_keys(looks, "aescbckey")
    assert [" ".join(step) for step in took(plan)] == steps
    assert bool(plan["lines"]) == (not steps)


@pytest.mark.parametrize(
    ("second", "confirm", "text"),
    [
        (says(), "another", "hwaccel_confirm names another key, so nothing was changed"),
        (says(enabled=False), "aescbckey", "Secrets are not encrypted on s2"),
        (says(status={}, why="not ready"), "aescbckey", "K3s of s2 does not say how it encrypts"),
    ],
)
def test_why_the_key_is_not_replaced(second: str, confirm: str, text: str) -> None:
    plan = of_keys({"s1": says(), "s2": second, "s3": says()}, confirm)
    assert plan["steps"] == [] and text in plan["faults"][0]["text"] and "Next: " in plan["faults"][0]["text"]


def test_an_earlier_rotation_has_to_be_completed_first() -> None:
    looks = dict.fromkeys(("s1", "s2", "s3"), says("new", replaced="aescbckey", equal=False, why="hash does not match"))
    assert "complete it by -e hwaccel_confirm=aescbckey" in of_keys(looks, "new")["faults"][0]["text"]
