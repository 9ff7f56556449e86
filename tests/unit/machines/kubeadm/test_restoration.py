# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What brings etcd back from a snapshot, and why nothing is done."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import authority
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.kubeadm.restoration import restoration
from ansible_collections.hwaccel.gpu.tests.unit.machines.cluster.test_authority import PEM, certificate

MINE = authority.fingerprint(PEM)
SNAPSHOT = "/var/lib/hwaccel-gpu/cluster_kubeadm/snapshots/20260801T020000Z.db"
MEMBER = {"name": "cp1", "peer": "https://10.0.0.11:2380", "image": "registry.k8s.io/etcd:3.6.8-0"}


def look(**changes: t.Any) -> str:
    found = {"authority": PEM, "missing": [], "member": MEMBER, "data": True, "snapshots": {}, "record": {}}
    found |= {"keys": []}
    return json.dumps({**found, **changes})


NEW = look(authority="", missing=["admin.conf"], member={}, data=False)
LOOKS = {"cp1": look(snapshots={SNAPSHOT: 5 << 20}), "cp2": look(), "cp3": NEW}


def planned(looks: dict[str, str], snapshot: str = f"cp1:{SNAPSHOT}", **changes: t.Any) -> dict[str, t.Any]:
    wish = {
        "cluster": "one",
        "snapshot": snapshot,
        "verified": "ab12",
        "why": "",
        "confirm": "",
        "moment": "NOW",
        "encrypted": False,
        "keys": [],
    }
    return restoration(looks, {**wish, **changes})


def reasons(*arguments: t.Any, **changes: t.Any) -> list[str]:
    plan = planned(*arguments, **changes)
    assert not plan["acts"] and plan["changes"] == []
    return [one["text"] for one in plan["faults"]]


def test_without_a_snapshot_those_of_servers_are_listed() -> None:
    plan = planned(LOOKS, "", confirm=MINE, verified="")
    assert plan["lines"][0] == f"Snapshots of one: cp1:{SNAPSHOT} (5 MiB)."
    assert (plan["acts"], plan["faults"]) == (False, [])
    assert "none" in planned({"cp1": look()}, "")["lines"][0]


def test_without_a_confirmation_it_is_told_what_would_be_done() -> None:
    plan = planned(LOOKS)
    assert not plan["acts"] and plan["changes"] == []
    told = "\n".join(plan["lines"])
    assert f"one is the cluster {MINE}" in told and "cp2, cp3 would be reset, and join again" in told
    assert f"-e hwaccel_confirm={MINE}" in told and "/var/lib/etcd-before-NOW" in told


def test_the_server_that_has_the_snapshot_restores_it() -> None:
    plan = planned(LOOKS, confirm=MINE)
    assert (plan["acts"], plan["target"], plan["source"], plan["sent"]) == (True, "cp1", SNAPSHOT, False)
    assert plan["others"] == ["cp2", "cp3"]
    assert plan["changes"] == [
        f"restore etcd on cp1 from cp1:{SNAPSHOT}, and move the data of before to /var/lib/etcd-before-NOW"
    ]


def test_a_snapshot_of_the_controller_goes_to_the_first_server_that_can_restore_it() -> None:
    plan = planned({"cp1": NEW, "cp2": look(), "cp3": NEW}, "/backup/a.db", confirm=MINE)
    assert (plan["target"], plan["source"], plan["sent"], plan["others"]) == (
        "cp2",
        "/backup/a.db",
        True,
        ["cp1", "cp3"],
    )


def test_a_run_that_was_killed_is_continued_until_the_snapshot_is_restored() -> None:
    begun = {"snapshot": "ab12", "state": "begun", "kept": "/var/lib/etcd-before-THEN"}
    plan = planned({"cp1": look(record=begun)}, confirm=MINE)
    assert plan["acts"] and plan["kept"] == "/var/lib/etcd-before-THEN"
    done = planned({"cp1": look(record={**begun, "state": "restored"})}, confirm=MINE)
    assert (done["acts"], done["changes"]) == (False, [])
    assert "restored from this snapshot already" in done["lines"][0]
    other = planned({"cp1": look(record={**begun, "state": "restored"})}, confirm=MINE, verified="cd34")
    assert other["acts"] and other["kept"] == "/var/lib/etcd-before-NOW"


@pytest.mark.parametrize(
    ("looks", "changes", "text"),
    [
        ({**LOOKS, "cp2": ""}, {}, "cp2 could not be observed: its etcd may still run"),
        ({**LOOKS, "cp2": look(authority=certificate())}, {}, "the servers are of 2 clusters"),
        (LOOKS, {"snapshot": f"cp3:{SNAPSHOT}"}, "cp3 cannot restore its snapshot: cp3: /etc/kubernetes/admin.conf"),
        ({"cp3": NEW}, {"snapshot": "/a.db"}, "no server can restore a snapshot: cp3: /etc/kubernetes/admin.conf"),
        ({"cp1": look(member={})}, {"snapshot": "/a.db"}, "/etc/kubernetes/manifests/etcd.yaml is missing"),
        (LOOKS, {"verified": "", "why": "its checksum is wrong"}, "its checksum is wrong"),
        (LOOKS, {"confirm": "another"}, "hwaccel_confirm names another cluster, so nothing was changed"),
    ],
)
def test_why_nothing_is_done(looks: dict[str, str], changes: dict[str, str], text: str) -> None:
    found = reasons(looks, **{"confirm": MINE, **changes})
    assert text in found[0] and "Next: " in found[0]


def test_a_server_without_the_keys_of_secrets_does_not_restore() -> None:
    keyless, whole = look(snapshots={SNAPSHOT: 5 << 20}), look(keys=["a"])
    assert planned({"cp1": keyless}, confirm=MINE)["acts"]
    (text,) = reasons({"cp1": keyless, "cp2": whole}, confirm=MINE, encrypted=True)
    assert "cp1 cannot restore its snapshot" in text and "put the file there that was kept beside the snapshot" in text
    assert "/etc/kubernetes/pki/secrets-encryption.yaml is missing" in text
    assert planned({"cp1": keyless, "cp2": whole}, "/controller.db", encrypted=True)["target"] == "cp2"


def test_a_server_with_other_keys_than_the_snapshot_does_not_restore() -> None:
    """As after a rotation. etcd may still hold values of keys before."""
    for keys, acts in ((["a"], True), (["a", "z"], True), (["z"], False), ([], True)):
        plan = planned({"cp1": look(keys=["a", "b"])}, confirm=MINE, encrypted=True, keys=keys)
        assert plan["acts"] == acts
        assert ("has other keys than the snapshot (z)" in json.dumps(plan["faults"])) is not acts
    # Whoever has a file of their own elsewhere.
    assert planned({"cp1": look()}, confirm=MINE, keys=["z"])["acts"]
