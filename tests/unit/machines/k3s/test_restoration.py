# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What brings etcd of a cluster of K3s back from a snapshot, and why nothing is done."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import tokens
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s.restoration import restoration
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import PEM, certificate

MINE = authority.fingerprint(PEM)
SNAPSHOT = "/var/lib/rancher/k3s/server/db/snapshots/on-demand-s1-1784000000"
TOKEN = "K10::server:planted"


def look(**changes: t.Any) -> str:
    found = {"authority": PEM, "sqlite": False, "token": TOKEN, "agent_token": ""}
    return json.dumps({**found, "snapshots": {}, "record": {}, **changes})


NEW = look(authority="", token="")
LOOKS = {"s1": look(snapshots={SNAPSHOT: 5 << 20}), "s2": look(), "s3": NEW}


def planned(looks: dict[str, str], snapshot: str = f"s1:{SNAPSHOT}", **changes: t.Any) -> dict[str, t.Any]:
    wish = {"cluster": "one", "snapshot": snapshot, "verified": "ab12", "why": "", "confirm": "", "moment": "NOW"}
    more = {"token": "", "keys": [tokens.storage_name("planted")], "digest": "ef56", "checksum": ""}
    return restoration(looks, {**wish, **more, **changes})


def test_without_a_snapshot_those_of_servers_are_listed() -> None:
    plan = planned(LOOKS, "", confirm=MINE, verified="", keys=[])
    assert plan["lines"][0] == f"Snapshots of one: s1:{SNAPSHOT} (5 MiB)."
    assert (plan["acts"], plan["faults"], plan["changes"]) == (False, [], [])


def test_without_a_confirmation_it_is_told_what_would_be_done() -> None:
    plan = planned(LOOKS)
    assert not plan["acts"] and plan["changes"] == []
    told = "\n".join(plan["lines"])
    assert f"one is the cluster {MINE}" in told and f"-e hwaccel_confirm={MINE}" in told
    assert "Data of s2, s3 would be moved to /var/lib/rancher/k3s-before-NOW" in told
    assert "would be moved" not in "\n".join(planned({"s1": look()})["lines"])


def test_the_server_that_has_the_snapshot_restores_it_with_the_token_that_it_has() -> None:
    plan = planned(LOOKS, confirm=MINE)
    assert (plan["acts"], plan["target"], plan["source"], plan["sent"]) == (True, "s1", SNAPSHOT, False)
    assert (plan["others"], plan["keeper"]) == (["s2", "s3"], "s1")
    assert plan["changes"] == [
        f"restore etcd on s1 from s1:{SNAPSHOT}, and move the data of s2, s3 to /var/lib/rancher/k3s-before-NOW"
    ]
    assert "planted" not in json.dumps(plan)


def test_a_snapshot_of_the_controller_goes_to_the_first_server_that_knows_the_cluster() -> None:
    plan = planned({"s1": NEW, "s2": look(), "s3": NEW}, "/backup/a", confirm=MINE, checksum="sha256:ef56")
    assert (plan["target"], plan["source"], plan["sent"], plan["others"]) == ("s2", "/backup/a", True, ["s1", "s3"])


def test_servers_that_are_all_new_need_the_token_and_are_known_by_the_snapshot() -> None:
    plan = planned({"s1": NEW, "s2": NEW}, "/backup/a", token="K10::server:planted", confirm="ab12")
    assert (plan["acts"], plan["target"], plan["keeper"]) == (True, "s1", "")
    # The one that has the token of the snapshot may have another one in force by now.
    assert planned({"s1": look(token="newer"), "s2": look()}, "/backup/a")["keeper"] == "s2"


def test_a_run_that_was_killed_is_continued_until_the_snapshot_is_restored() -> None:
    begun = {"snapshot": "ab12", "state": "begun", "kept": "/var/lib/rancher/k3s-before-THEN"}
    plan = planned({"s1": look(), "s2": look(record=begun)}, "/backup/a", confirm=MINE)
    assert plan["acts"] and (plan["target"], plan["kept"]) == ("s2", "/var/lib/rancher/k3s-before-THEN")
    done = planned({"s1": look(record={**begun, "state": "restored"})}, confirm=MINE)
    assert (done["acts"], done["changes"]) == (False, [])
    assert "restored from this snapshot already" in done["lines"][0]


@pytest.mark.parametrize(
    ("looks", "changes", "text"),
    [
        ({**LOOKS, "s2": ""}, {}, "s2 could not be observed: its etcd may still run"),
        ({**LOOKS, "s2": look(authority=certificate())}, {}, "the servers are of 2 clusters"),
        ({"s1": look(sqlite=True)}, {}, "s1 has SQLite, which has no snapshots"),
        (LOOKS, {"verified": "", "keys": [], "why": "its checksum is wrong"}, "its checksum is wrong"),
        (
            LOOKS,
            {"checksum": "sha256:0000"},
            "is not the one that is meant (cluster_k3s_snapshot_checksum): its SHA-256 is ef56",
        ),
        (
            LOOKS,
            {"token": "another"},
            "the token that is set is not that of the snapshot (cluster_k3s_token): K3s has encrypted",
        ),
        ({"s1": NEW}, {}, "no server has the token of the snapshot, and none is set (cluster_k3s_token): K3s has"),
        ({"s1": look(token="newer")}, {}, "no server has the token of the snapshot, and none is set"),
        (LOOKS, {"confirm": "another"}, "hwaccel_confirm names another cluster, so nothing was changed"),
    ],
)
def test_why_nothing_is_done(looks: dict[str, str], changes: dict[str, t.Any], text: str) -> None:
    plan = planned(looks, **{"confirm": MINE, **changes})
    assert not plan["acts"] and plan["changes"] == []
    found = [one["text"] for one in plan["faults"]]
    assert text in found[0] and "Next: " in found[0]
