# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The encryption of Secrets: what a run finds of it, and the steps after which they are encrypted with another key."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster.model import ABSENT, MEMBER, Found
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.host import Host
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm import encryption, places
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.rotation import rotation
from ansible_collections.hwaccel.gpu.tests.unit.machines.kubeadm.test_documents import SETTINGS as CLUSTER

SETTINGS = {**CLUSTER, "host": "cp1", "secrets_encryption": True}
SERVERS = ("cp1", "cp2", "cp3")
MACHINES = [{"host": name, "node": name, "serves": name in SERVERS} for name in (*SERVERS, "w1")]
FORMS: dict[str, dict[str, t.Any]] = {
    "before": {"order": ["a", "identity"]},
    "added": {"order": ["a", "b", "identity"], "replaces": "a"},
    "promoted": {"order": ["b", "a", "identity"], "replaces": "a"},
    "dropped": {"order": ["b", "identity"], "replaced": "a"},
    "clear": {"order": ["identity", "a"], "replaces": "identity"},
    "encrypting": {"order": ["a", "identity"], "replaces": "identity"},
    "encrypted": {"order": ["a", "identity"], "replaced": "identity"},
}


def look(form: str = "before", **changes: t.Any) -> dict[str, t.Any]:
    found = {"replaces": "", "replaced": "", "other": False, "used": places.ENCRYPTION, "loaded": True}
    found |= {"rotating": False, "serves": True, **FORMS[form], **changes}
    return {"digests": {name: f"of {name}" for name in found["order"] if name != "identity"}, **found}


def planned(*forms: t.Any, confirm: str = "a", **changes: t.Any) -> dict[str, t.Any]:
    """forms: names of them, or what was found, None if it could not be observed."""
    given = [look(one) if isinstance(one, str) else one for one in forms]
    printed = {name: json.dumps(one) if one else "" for name, one in zip(SERVERS, given, strict=True)}
    wish = {"what": "encryption keys", "cluster": "one", "nodes": ["cp1"], "members": list(SERVERS), "lost": []}
    return rotation(MACHINES, printed, {**wish, "retired": [], "confirm": confirm, "at_a_time": "1", **changes})


def steps(plan: dict[str, t.Any]) -> list[str]:
    assert plan["changes"] == [one["text"] for one in plan["steps"]] and plan["acts"] == bool(plan["steps"])
    assert plan["faults"] == []
    return [f"{one['do']} {','.join(one['hosts'])}" for one in plan["steps"]]


def faults(*forms: t.Any, **changes: t.Any) -> list[str]:
    plan = planned(*forms, **changes)
    assert plan["faults"] and not plan["acts"] and plan["steps"] == [] and plan["changes"] == []
    return [one["text"] for one in plan["faults"]]


def of_phases(*phases: str) -> list[str]:
    each = {"rewrite": ["cp1"]}
    return [f"{phase} {host}" for phase in phases for host in each.get(phase, SERVERS)]


def test_every_phase_is_for_all_servers_before_the_next_one() -> None:
    plan = planned(*["before"] * 3)
    assert (plan["owner"], plan["old"]) == ("cp1", "a")
    assert steps(plan) == of_phases("add", "promote", "rewrite", "drop")
    # One makes the key, and the others get it.
    assert [one["copies"] for one in plan["steps"]] == [False, True, True, *[False] * 7]
    assert {(one["owner"], one["old"]) for one in plan["steps"]} == {("cp1", "a")}


@pytest.mark.parametrize(
    ("forms", "left"),
    [
        (("before", "added", "before"), ["add cp1", "add cp3", *of_phases("promote", "rewrite", "drop")]),
        (("added", "added", "added"), of_phases("promote", "rewrite", "drop")),
        (("promoted", "promoted", "added"), ["promote cp3", *of_phases("rewrite", "drop")]),
        # Whether all Secrets were rewritten is not known.
        (("promoted", "promoted", "promoted"), of_phases("rewrite", "drop")),
        (("promoted", "dropped", "promoted"), ["drop cp1", "drop cp3"]),
    ],
)
def test_a_run_continues_one_that_was_killed(forms: tuple[str, ...], left: list[str]) -> None:
    plan = planned(*forms)
    assert [one["do"] for one in plan["steps"]] == [one.split()[0] for one in left]
    of_owner = [one.replace("rewrite cp1", f"rewrite {plan['owner']}") for one in left]
    assert sorted(steps(plan)) == sorted(of_owner)


def test_the_key_is_copied_from_a_server_that_has_it() -> None:
    plan = planned("before", "added", "before")
    assert plan["owner"] == "cp2"
    assert [(one["hosts"], one["copies"]) for one in plan["steps"][:2]] == [(["cp1"], True), (["cp3"], True)]
    # Its own file may be further than that.
    restarts = planned("added", look("added", loaded=False), "added")
    assert steps(restarts)[0] == "add cp2" and not restarts["steps"][0]["copies"]


def test_a_phase_ends_with_the_restart_of_the_last_api_server() -> None:
    assert steps(planned("added", "added", look("added", loaded=False)))[:2] == ["add cp3", "promote cp1"]
    assert steps(planned("dropped", "dropped", look("dropped", loaded=False))) == ["drop cp3"]


def test_once_it_is_complete_nothing_changes() -> None:
    plan = planned(*["dropped"] * 3)
    assert steps(plan) == [] and plan["lines"] == ["a was replaced already, by b"]
    # The next one replaces the key of now.
    assert steps(planned(*["dropped"] * 3, confirm="b")) == of_phases("add", "promote", "rewrite", "drop")


def test_secrets_of_a_cluster_that_was_made_without_it_are_encrypted() -> None:
    plan = planned(*["clear"] * 3, confirm="identity")
    assert steps(plan) == of_phases("promote", "rewrite", "drop") and plan["old"] == "identity"
    assert steps(planned("encrypting", "encrypting", "encrypting", confirm="identity")) == of_phases("rewrite", "drop")
    assert steps(planned("encrypted", "encrypting", "encrypting", confirm="identity")) == ["drop cp2", "drop cp3"]
    assert steps(planned(*["encrypted"] * 3, confirm="identity")) == []
    told = planned(*["clear"] * 3, confirm="")["lines"]
    assert "are not encrypted (identity)" in told[0] and "-e hwaccel_confirm=identity" in told[1]


def test_without_a_confirmation_it_is_told_what_would_be_done() -> None:
    for forms, key in ((["before"] * 3, "a"), (["added", "before", "before"], "a"), (["dropped"] * 3, "b")):
        plan = planned(*forms, confirm="")
        assert (plan["acts"], plan["steps"], plan["changes"], plan["old"]) == (False, [], [], key)
        assert f"encrypted with {key}" in plan["lines"][0] and f"-e hwaccel_confirm={key}" in plan["lines"][1]


@pytest.mark.parametrize("forms", [["before"] * 3, ["added", "before", "before"], ["dropped"] * 3])
def test_another_confirmation_is_refused(forms: list[str]) -> None:
    (text,) = faults(*forms, confirm="another")
    assert text.startswith("hwaccel_confirm names another key")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"serves": False}, "cp3 is no server of the cluster"),
        ({"rotating": True}, "the certificate authority of cp3 is being replaced"),
        ({"used": "/etc/other.yaml"}, "the keys of cp3 are not this role's"),
        ({"other": True}, "the keys of cp3 are not this role's"),
        ({"used": ""}, "Secrets are not encrypted on cp3"),
        ({"order": []}, f"{places.ENCRYPTION} is missing"),
        ({"digests": {"a": "of another"}}, "servers have different keys"),
        ({"order": ["z", "identity"]}, "servers have different keys"),
    ],
)
def test_a_server_may_not_be_able_to(changes: dict[str, t.Any], told: str) -> None:
    (text,) = faults("before", "before", look(**changes))
    assert text.startswith(told)


def test_every_server_has_to_get_the_key() -> None:
    assert faults("before", "before", None)[0].startswith("cp3 could not be observed")
    assert "cp3 is to leave the cluster" in faults("before", "before", "before", retired=["cp3"])[0]
    # It has left.
    gone = planned("before", "before", look(serves=False), retired=["cp3"], members=["cp1", "cp2"])
    assert {host for one in gone["steps"] for host in one["hosts"]} == {"cp1", "cp2"}
    assert "cp4 is a member of etcd" in faults(*["before"] * 3, members=[*SERVERS, "cp4"])[0]
    assert steps(planned(*["before"] * 3, members=[*SERVERS, "cp4"], lost=["cp4"]))
    assert "could not be asked" in faults(*["before"] * 3, nodes=[], members=[])[0]


LINES = {
    form: "\n".join(_lines)
    for form, _lines in {
        "a": ["      - name: a", "  - identity: {}"],
        "replacing": ["# replaces a", "      - name: a", "      - name: b", "  - identity: {}"],
        "clear": ["# replaces identity", "  - identity: {}", "      - name: a"],
    }.items()
}


def host(form: str = "a", **facts: str) -> Host:
    found = {"encryption": LINES.get(form, ""), "encryption_kept": places.ENCRYPTION if form else ""}
    return Host(facts={**found, "encrypts": f"    - --encryption-provider-config={places.ENCRYPTION}", **facts})


def test_only_a_key_that_is_replaced_by_another_one_holds_other_runs_up() -> None:
    assert [encryption.replacing(host(form)) for form in ("", "a", "clear", "replacing")] == [False, False, False, True]


def test_secrets_that_are_not_encrypted_yet_are_told() -> None:
    member = Found(state=MEMBER)
    assert [bool(encryption.messages(host(form), member)) for form in ("", "a", "clear", "replacing")] == [
        False,
        False,
        True,
        False,
    ]
    assert encryption.messages(host("clear"), Found(state=ABSENT)) == []


def test_a_server_without_its_keys_is_a_fault() -> None:
    member = Found(state=MEMBER)
    (fault,) = encryption.faults(host(""), SETTINGS, member)
    assert f"{places.ENCRYPTION} is missing" in str(fault) and "beside snapshots" in str(fault)
    assert encryption.faults(host("a"), SETTINGS, member) == []
    assert encryption.faults(host("", encrypts=""), SETTINGS, member) == []
    assert encryption.faults(host(""), SETTINGS, dataclasses.replace(member, state=ABSENT)) == []


def test_a_configuration_of_a_user_is_not_replaced() -> None:
    arguments = [{"name": "encryption-provider-config", "value": "/etc/other.yaml"}]
    given = {**SETTINGS, "configuration": {"ClusterConfiguration": {"apiServer": {"extraArgs": arguments}}}}
    (fault,) = encryption.faults(host(), given, Found())
    assert "both set encryption-provider-config" in str(fault)
    assert encryption.faults(host(), {**given, "secrets_encryption": False}, Found()) == []
