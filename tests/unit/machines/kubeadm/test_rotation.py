# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps after which a cluster has other certificate authorities, and why none is taken."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.rotation import rotation
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import KEY, made

OLD, NEW, OTHER = made(), made(), made()
MINE = authority.fingerprint(OLD.pem)
PHASES = ["trust", "reissue", "request", "drop"]
MACHINES = [
    {"host": name, "node": f"{name}.example.com", "serves": name.startswith("cp")}
    for name in ("cp1", "cp2", "cp3", "w1", "w2", "w3")
]
NODES = [one["node"] for one in MACHINES]


def look(**changes: t.Any) -> dict[str, t.Any]:
    found = {"authority": OLD.pem, "missing": [], "signing": "", "client": OLD.issue(KEY, "node"), "linked": True}
    found |= {"serves": False, "stacked": False, "new": "", "old": "", "done": None, "replaced": ""}
    return {**found, **changes}


def server(**changes: t.Any) -> dict[str, t.Any]:
    return look(**{"serves": True, "stacked": True, "signing": "/etc/kubernetes/pki/ca.crt", **changes})


def begun(*done: str, of: t.Any = look, trusted: str = OLD.pem + NEW.pem, **changes: t.Any) -> dict[str, t.Any]:
    client = (NEW if "request" in done else OLD).issue(KEY, "node")
    given = {"authority": trusted, "new": NEW.pem, "old": OLD.pem, "done": list(done), "client": client}
    return t.cast("dict[str, t.Any]", of(**{**given, **changes}))


def looks(**changes: t.Any) -> dict[str, t.Any]:
    found = {one["host"]: server() if one["serves"] else look() for one in MACHINES}
    return {**found, **changes}


def planned(found: dict[str, t.Any], **changes: t.Any) -> dict[str, t.Any]:
    wish = {
        "what": "certificate authorities",
        "cluster": "one",
        "nodes": NODES,
        "lost": [],
        "confirm": MINE,
        "at_a_time": "2",
    }
    printed = {name: json.dumps(one) if one else "" for name, one in found.items()}
    return rotation(MACHINES, printed, {**wish, **changes})


def steps(plan: dict[str, t.Any]) -> list[str]:
    return [f"{one['do']} {','.join(one['hosts'])}" for one in plan["steps"]]


def faults(found: dict[str, t.Any], **changes: t.Any) -> list[str]:
    plan = planned(found, **changes)
    assert not plan["acts"] and plan["steps"] == [] and plan["changes"] == []
    return [one["text"] for one in plan["faults"]]


def test_every_phase_is_for_all_machines_before_the_next_one() -> None:
    plan = planned(looks())
    assert (plan["acts"], plan["owner"], plan["old"]) == (True, "cp1", MINE)
    assert plan["begins"] == ["cp1", "cp2", "cp3", "w1", "w2", "w3"]
    all_machines = ["cp1", "cp2", "cp3", "w1,w2", "w3"]
    assert steps(plan) == [
        *(f"trust {one}" for one in all_machines),
        *(f"reissue {one}" for one in all_machines[:3]),
        *(f"request {one}" for one in all_machines),
        *(f"drop {one}" for one in all_machines),
    ]
    assert [one["pods"] for one in plan["steps"][4:9]] == [
        [],
        *[["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]] * 3,
        [],
    ]
    assert plan["changes"][0].startswith(f"replace the certificate authority {MINE[:16]}")
    assert plan["changes"][1] == "let cp1 trust the new certificate authority, too"


def test_etcd_of_others_is_not_restarted() -> None:
    plan = planned(looks(cp1=server(stacked=False)))
    assert plan["steps"][0]["pods"] == ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]


def test_without_a_confirmation_it_is_told_what_would_be_done() -> None:
    plan = planned(looks(), confirm="")
    assert (plan["acts"], plan["changes"], plan["faults"]) == (False, [], [])
    assert f"one has the certificate authority {MINE}" in plan["lines"][0] and "in 18 steps" in plan["lines"][0]
    assert plan["lines"][1].endswith(f"-e hwaccel_confirm={MINE}")


def test_a_run_that_was_killed_is_continued() -> None:
    found = {one["host"]: begun("trust", of=server if one["serves"] else look) for one in MACHINES}
    plan = planned(found)
    assert plan["begins"] == [] and plan["old"] == MINE
    assert steps(plan)[0] == "reissue cp1"
    found["w3"] = begun()
    assert steps(planned(found))[:2] == ["trust w3", "reissue cp1"]


def test_the_server_that_has_made_the_new_authorities_gives_them_to_others() -> None:
    plan = planned(looks(cp2=server(new=NEW.pem)))
    assert plan["owner"] == "cp2" and len(plan["begins"]) == 6


def test_machines_that_have_completed_it_are_left_alone() -> None:
    whole = {one["host"]: begun(*PHASES, of=server if one["serves"] else look, trusted=NEW.pem) for one in MACHINES}
    assert steps(planned(whole)) == []
    ended = {"authority": NEW.pem, "replaced": MINE}
    whole |= {"w1": look(**ended), "cp2": server(**ended)}
    plan = planned(whole)
    assert (plan["acts"], plan["begins"], steps(plan)) == (True, [], [])


def test_what_was_replaced_already_is_not_replaced_again() -> None:
    ended = {"authority": NEW.pem, "replaced": MINE}
    plan = planned({one["host"]: (server if one["serves"] else look)(**ended) for one in MACHINES})
    assert (plan["acts"], plan["changes"], plan["faults"]) == (False, [], [])
    assert plan["lines"] == [f"{MINE} was replaced already, by {authority.fingerprint(NEW.pem)}"]


def test_another_authority_is_not_replaced() -> None:
    (fault,) = faults(looks(), confirm="ab12")
    assert "hwaccel_confirm names another certificate authority, so nothing was changed" in fault and MINE in fault


def test_no_machine_may_be_left_behind() -> None:
    (silent,) = faults(looks(cp3=None))
    assert silent.startswith("cp3 could not be observed") and "hwaccel_lost" in silent
    (stranger,) = faults(looks(), nodes=[*NODES, "x1"])
    assert stranger.startswith("x1 is a node, and no machine that stays")
    assert planned(looks(), nodes=[*NODES, "x1"], lost=["x1"])["acts"]
    (absent,) = faults(looks(), nodes=NODES[:-1])
    assert absent.startswith("w3 is no node of the cluster")
    (unasked,) = faults(looks(), nodes=[])
    assert "could not be asked for its nodes" in unasked


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"authority": OTHER.pem}, "cp2 is of another cluster"),
        ({"authority": ""}, "its certificate authority is none"),
        ({"missing": ["ca.key"]}, "ca.key is missing, so another program issues its certificates"),
        ({"signing": "/etc/other.crt"}, "kube-controller-manager signs with /etc/other.crt"),
        ({"linked": False}, "it does not refer to /var/lib/kubelet/pki/kubelet-client-current.pem"),
    ],
)
def test_a_machine_that_cannot_get_other_authorities(changes: dict[str, t.Any], part: str) -> None:
    (fault,) = faults(looks(cp2={**server(), **changes}))
    assert part in fault


def test_the_old_one_is_not_dropped_while_a_kubelet_needs_it() -> None:
    found = {
        one["host"]: begun(*PHASES[:3], of=server if one["serves"] else look, trusted=NEW.pem + OLD.pem)
        for one in MACHINES
    }
    assert steps(planned(found))[0] == "drop cp1"
    found["w2"] = {**found["w2"], "client": OLD.issue(KEY, "node")}
    (fault,) = faults(found)
    assert fault.startswith("the kubelet of w2 has no certificate of the new authority")
