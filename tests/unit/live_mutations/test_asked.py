# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes that admission policies have to deny or to allow."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import ApiError
from ansible_collections.hwaccel.gpu.tests.live.mutations import asked, rendered
from ansible_collections.hwaccel.gpu.tests.live.mutations.leaves import Obj

OBJECTS = rendered.everything()
POLICIES = [
    (role, index, item)
    for role, found in OBJECTS.items()
    for index, item in enumerate(found)
    if item["kind"].startswith("ValidatingAdmissionPolicy")
]
KUBECONFIG = {
    "current-context": "x",
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


@pytest.mark.parametrize(
    ("role", "index", "item"), POLICIES, ids=[f"{item['kind']}-{role}" for role, _i, item in POLICIES]
)
def test_a_lane_has_the_policy_its_binding_and_a_namespace(role: str, index: int, item: Obj) -> None:
    found = asked.objects_of(OBJECTS[role], index, None, "m7")
    kinds = sorted(one["kind"] for one in found)
    assert kinds == ["Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    policy = next(one for one in found if one["kind"] == "ValidatingAdmissionPolicy")
    account = asked.account_of(OBJECTS[role], asked.policy_of(item))
    assert f"{rendered.AGENTS}-m7:{account}" in str(policy["spec"]["matchConditions"])


def test_every_policy_is_asked_for_a_write_that_it_allows_and_for_each_denial() -> None:
    node = {"metadata": {"labels": {"a": "b"}}}
    for role, _index, item in POLICIES:
        if item["kind"] == "ValidatingAdmissionPolicy":
            account = asked.account_of(OBJECTS[role], item["metadata"]["name"])
            asks = asked.of_nodes(node) if account == "nvidia-driver" else asked.of_features(account, "x")
            assert any(not ask.says for ask in asks)
            for validation in item["spec"]["validations"]:
                assert any(ask.says and ask.says in validation["message"] for ask in asks), validation["message"]


class Answers:
    """A client of the API server that denies with a text, nothing if it is empty."""

    def __init__(self, text: str) -> None:
        self.text = text

    def send(self, _client: t.Any) -> None:
        if self.text:
            raise ApiError(self.text)


@pytest.mark.parametrize(
    ("says", "answer", "expected"),
    [
        ("", "", ""),
        ("", "forbidden", "which its validations have to allow: forbidden"),
        ("may not", "", 'deny it as one who "may not"'),
        ("may not", "another", "but: another"),
    ],
)
def test_what_is_wrong_names_the_policy_and_the_write(
    tmp_path: pathlib.Path, says: str, answer: str, expected: str
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(KUBECONFIG), encoding="utf-8")
    thief = asked.Thief(str(path), t.cast("t.Any", None))
    ask = asked.Ask("writes", "n", says, Answers(answer).send)
    said = thief.wrong([ask], "a", "ns", "own-node")
    assert expected in said
    assert bool(said) is bool(expected)
    assert not said or "own-node" in said


def test_a_policy_for_every_account_is_wrong(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(KUBECONFIG), encoding="utf-8")
    thief = asked.Thief(str(path), t.cast("t.Any", None))
    ask = asked.Ask("writes", "n", "may not", Answers("who may not").send)
    assert "matchConditions" in thief.wrong([ask], "a", "ns", "own-node")


def test_what_is_right_at_last_is_right() -> None:
    answers = iter(["not yet", ""])
    assert asked.waited(lambda: next(answers), 60) == ""
    assert asked.waited(lambda: "wrong", 0) == "wrong"
