# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record, causes, limits and the table of known controllers."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import types
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import causes, holder, record
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.foreign import foreign_fields, is_rightful
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.pruning import is_ours, limit_fault, prune_limit
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.wait import Judge
from ansible_collections.hwaccel.gpu.plugins.module_utils._model import fieldsets
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import (
    Conflict,
    Forbidden,
    HwaccelError,
    Invalid,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.resources import ObjectKey

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
keys = st.builds(ObjectKey, st.sampled_from(["", "apps"]), texts, texts, texts)
paths = st.lists(texts.map(lambda name: f"f:{name}"), min_size=1, max_size=3).map(tuple)
entries = st.builds(
    record.Entry,
    keys,
    uid=texts,
    ask=texts,
    fields=st.frozensets(paths, max_size=4),
    adopted=st.booleans(),
    fought=st.lists(texts, max_size=2).map(tuple),
)


def stored(found: record.Record) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    parent, parts = record.to_objects(found, "s")
    parent["metadata"] |= {"resourceVersion": "1", "uid": "u"}
    # What an API server would take and give.
    return json.loads(json.dumps(parent)), json.loads(json.dumps(parts))


@settings(max_examples=100)
@given(st.lists(entries, max_size=5), st.sampled_from(["ConfigMap", "Secret"]), st.booleans())
def test_a_record_comes_back_as_it_was_written(members: list[record.Entry], kind: str, held: bool) -> None:
    hold = record.Hold("me", record.stamp(1000.25), record.stamp(1090.5)) if held else None
    before = record.Record(kind, "ns", "s", {entry.key: entry for entry in members}, hold)
    after = record.from_objects(*stored(before))
    assert after.members == before.members
    assert after.hold == hold
    assert after.id == before.id


def test_the_parent_is_an_applyset_that_kubectl_leaves_alone() -> None:
    key = ObjectKey("apps", "DaemonSet", "other", "d")
    parent, parts = record.to_objects(
        record.Record(
            "ConfigMap",
            "ns",
            "s",
            {
                key: record.Entry(key),
                ObjectKey("", "Secret", "ns", "x"): record.Entry(ObjectKey("", "Secret", "ns", "x")),
            },
        ),
        "s",
    )
    expected = base64.urlsafe_b64encode(hashlib.sha256(b"s.ns.ConfigMap.").digest()).decode().rstrip("=")
    assert parent["metadata"]["labels"]["applyset.kubernetes.io/id"] == f"applyset-{expected}-v1"
    assert len(f"applyset-{expected}-v1") <= 63
    annotations = parent["metadata"]["annotations"]
    assert annotations["applyset.kubernetes.io/tooling"] == "hwaccel.gpu/v1"
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == "DaemonSet.apps,Secret"
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == "other"
    assert parts == []


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_enormous_records_are_split_below_the_limit(kind: str) -> None:
    fields = [frozenset({("f:data", f"f:{os.urandom(600).hex()}")}) for _index in range(1500)]
    members = {ObjectKey("", "ConfigMap", "n", f"c{index}"): fields[index] for index in range(1500)}
    before = record.Record(kind, "ns", "s", {key: record.Entry(key, "u", "a", owned) for key, owned in members.items()})
    parent, parts = stored(before)
    assert len(parts) >= 1
    assert all(len(json.dumps(obj)) < 900 * 1024 for obj in (parent, *parts))
    assert record.part_names(parent) == [part["metadata"]["name"] for part in parts]
    assert record.from_objects(parent, parts).members == before.members


def test_a_foreign_or_damaged_object_at_the_place_of_the_record() -> None:
    parent, _parts = stored(record.Record("ConfigMap", "ns", "s"))
    with pytest.raises(HwaccelError, match="cannot be read"):
        record.from_objects(parent | {"data": {"format": "1", "members": "{", "fields": ""}}, [])
    with pytest.raises(HwaccelError, match="cannot be read"):
        record.from_objects(parent | {"data": parent["data"] | {"format": "9"}}, [])
    parent["metadata"]["annotations"] = {}
    with pytest.raises(HwaccelError, match="is not ours"):
        record.from_objects(parent, [])


def test_conflicts_are_read_from_the_answer() -> None:
    found = [
        {
            "reason": "FieldManagerConflict",
            "field": ".spec.replicas",
            "message": 'conflict with "kubectl" with subresource "scale" using apps/v1 at 2026-01-01T00:00:00Z',
        },
        {
            "reason": "FieldManagerConflict",
            "field": '.spec.containers[name="a"].image',
            "message": 'conflict with "hwaccel.gpu/other"',
        },
        {"reason": "Other", "field": ".x", "message": 'conflict with "x"'},
    ]
    error = Conflict("c", body={"details": {"causes": found}})
    assert causes.field_conflicts(error) == [
        causes.FieldConflict("spec.replicas", "kubectl", "scale"),
        causes.FieldConflict('spec.containers[name="a"].image', "hwaccel.gpu/other", ""),
    ]
    assert causes.field_conflicts(Conflict("uid")) == []


def test_rights_and_immutable_fields_are_read_from_the_answer() -> None:
    message = 'deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in the namespace "n"'
    assert causes.missing_right(Forbidden("f", why=message)) == {
        "verb": "patch",
        "resource": "deployments",
        "group": "apps",
        "namespace": "n",
    }
    assert causes.missing_right(Forbidden("f", why='pods "x" is forbidden: exceeded quota')) is None
    details = {"details": {"causes": [{"field": "spec.selector", "message": "Invalid value: {}: field is immutable"}]}}
    assert causes.immutable_field(Invalid("i", body=details)) == "spec.selector"
    assert causes.immutable_field(Invalid("i", why="spec.x: Required value")) == ""


@pytest.mark.parametrize(
    ("recorded", "share", "limit"),
    [
        (10, "20%", 2),
        (4, "20%", 1),
        (100, "20%", 20),
        (10, "3", 3),
        (10, "0", 0),
        (10, "0%", 0),
        (10, "100%", 10),
        (3, "50%", 1),
    ],
)
def test_prune_limits(recorded: int, share: str, limit: int) -> None:
    assert prune_limit(recorded, share) == limit
    assert limit_fault(recorded, limit, share, 1) is None
    assert limit_fault(recorded, limit + 1, share, 1) is not None


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "nan%", "1e400%", "%"])
def test_prune_limits_that_are_none(text: str) -> None:
    with pytest.raises(HwaccelError, match="not usable"):
        prune_limit(10, text)


def test_all_members_are_never_pruned() -> None:
    fault = limit_fault(3, 3, "100%", 0)
    assert fault is not None
    assert "never removes all" in fault.why


@pytest.mark.parametrize(
    ("kind", "manager", "subresource", "path", "rightful"),
    [
        ("Deployment", "kube-controller-manager", "scale", "spec.replicas", True),
        ("Deployment", "kubectl", "scale", "spec.replicas", False),
        ("Deployment", "kube-controller-manager", "", "spec.replicas", False),
        ("Deployment", "kube-controller-manager", "scale", "spec.replicasX", False),
        ("ServiceAccount", "kube-controller-manager", "", 'secrets[name="x"]', True),
        ("ValidatingWebhookConfiguration", "cainjector", "", 'webhooks[name="x"].clientConfig.caBundle', True),
        ("ValidatingWebhookConfiguration", "kubectl", "", 'webhooks[name="x"].failurePolicy', False),
        ("ConfigMap", "kubectl", "", "data.x", False),
    ],
)
def test_known_controllers(kind: str, manager: str, subresource: str, path: str, rightful: bool) -> None:
    assert is_rightful(kind, manager, subresource, path) is rightful


def test_foreign_fields_are_told_once_at_their_top() -> None:
    sidecar = {'k:{"name":"side"}': {".": {}, "f:name": {}, "f:image": {}}}
    live = {
        "metadata": {
            "managedFields": [
                {
                    "manager": "me",
                    "operation": "Apply",
                    "fieldsV1": {
                        "f:spec": {"f:replicas": {}, "f:containers": {'k:{"name":"main"}': {".": {}, "f:name": {}}}}
                    },
                },
                {
                    "manager": "them",
                    "operation": "Update",
                    "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:x": {}}},
                        "f:spec": {"f:replicas": {}, "f:containers": sidecar},
                    },
                },
                {
                    "manager": "kubelet",
                    "operation": "Update",
                    "subresource": "status",
                    "fieldsV1": {"f:status": {"f:x": {}}},
                },
            ]
        }
    }
    found = foreign_fields(ObjectKey("", "Pod", "n", "p"), live, "me", fieldsets.of_object(live, "me"))
    assert [(item["path"], item["manager"]) for item in found] == [('spec.containers[name="side"]', "them")]


@pytest.mark.parametrize(
    ("uid", "label", "manager", "ours"),
    [
        ("u1", "other", "them", True),
        ("u2", "s", "me", False),
        ("", "s", "me", True),
        ("", "s", "them", False),
        ("", "other", "me", False),
        ("", "", "me", False),
    ],
)
def test_what_lives_under_a_recorded_name_is_ours_by_its_uid_else_by_label_and_fields(
    uid: str, label: str, manager: str, ours: bool
) -> None:
    """A run that was killed has recorded no uid: a label alone can be copied, and fields alone may be of another set."""
    entry = record.Entry(ObjectKey("", "ConfigMap", "n", "c"), uid=uid)
    managed = [{"manager": manager, "operation": "Apply", "fieldsV1": {"f:data": {"f:x": {}}}}]
    live = {"metadata": {"uid": "u1", "labels": {record.PART_OF: label} if label else None, "managedFields": managed}}
    scene = types.SimpleNamespace(live={entry.key: live}, set_ids=("s",), options=types.SimpleNamespace(manager="me"))
    assert is_ours(scene, entry) is ours
    assert not is_ours(types.SimpleNamespace(**{**vars(scene), "live": {}}), entry)


@pytest.mark.parametrize(("selector", "ready"), [({"gpu": "yes"}, False), ({"gpu": "no"}, True)])
def test_a_daemon_set_without_pods_waits_only_where_a_node_fits_its_template(
    selector: dict[str, str], ready: bool
) -> None:
    node = {
        "metadata": {"name": "n", "labels": {"gpu": "yes"}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    client = types.SimpleNamespace(pages=lambda resource: [types.SimpleNamespace(items=[node])])
    status = {"desiredNumberScheduled": 0, "observedGeneration": 1}
    live = {
        "metadata": {"name": "d", "generation": 1},
        "spec": {"template": {"spec": {"nodeSelector": selector}}},
        "status": status,
    }
    judge = Judge(t.cast(t.Any, client), t.cast(t.Any, types.SimpleNamespace(ready_when={})))
    assert judge.verdict(ObjectKey("apps", "DaemonSet", "n", "d"), live).ready is ready


def test_a_holder_is_dead_only_where_that_can_be_known() -> None:
    me = holder.this_run()
    assert not me.is_dead(me.identity)
    head, _separator, tail = me.identity.rpartition(" (")
    assert me.is_dead(f"{head.rpartition(' ')[0]} 4194999 ({tail}")
    assert not me.is_dead("other-host pid 4194999 (boot pid:[1] 5 aa)")
    assert not me.is_dead("anything else")
    assert not me.ended


@pytest.mark.parametrize(
    ("signal", "stat", "dead"),
    [
        (ProcessLookupError(), None, True),
        (PermissionError(), None, False),
        (PermissionError(), "77", False),
        (PermissionError(), "78", True),
        (None, None, False),
        (None, "77", False),
        (None, "78", True),
    ],
    ids=[
        "gone",
        "hidden",
        "another user's",
        "another user's, with the pid given again",
        "unreadable",
        "alive",
        "pid given again",
    ],
)
def test_only_what_can_be_seen_proves_a_process_gone(
    monkeypatch: pytest.MonkeyPatch, signal: OSError | None, stat: str | None, dead: bool
) -> None:
    """Where /proc is mounted with hidepid, a process of another user cannot be read: it looked as if it were gone."""

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (12, 0)
        if signal is not None:
            raise signal

    files = {"/proc/sys/kernel/random/boot_id": "boot\n"} | (
        {"/proc/12/stat": f"12 (x) {' '.join(['0'] * 19)} {stat}"} if stat else {}
    )

    def opened(path: str, **_options: t.Any) -> t.Any:
        if path not in files:
            raise PermissionError(path)
        return io.StringIO(files[path])

    monkeypatch.setattr(holder.os, "kill", kill)
    monkeypatch.setattr(holder.os, "readlink", lambda path: "pid:[1]")
    monkeypatch.setattr("builtins.open", opened)
    assert holder.this_run().is_dead("host pid 12 (boot pid:[1] 77 aa)") is dead


def test_whose_life_counts_for_a_task_of_several_slices() -> None:
    """The one that starts the slices, where this host can see it; else nobody's: a slice's own process is gone before the next one begins."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    pid, place = str(ended.pid), holder.this_process().partition(" ")[2]
    assert holder.this_run(f"{pid} {place}", sliced=True).ended
    assert not holder.this_run(holder.this_process(), sliced=True).ended
    for elsewhere in ("", f"{pid} another-boot {place.partition(' ')[2]}"):
        unknown = holder.this_run(elsewhere, sliced=True)
        assert not unknown.ended
        assert not holder.this_run().is_dead(unknown.identity)
    assert f" pid {os.getpid()} " in holder.this_run(f"{pid} {place}").identity, (
        "without slices, this process is the task"
    )
