# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hashes, waves, differences, and how a fault is told."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff, hashing, waves
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault


def test_the_order_of_keys_does_not_change_a_hash() -> None:
    assert hashing.digest({"a": 1, "b": [1, 2]}) == hashing.digest({"b": [1, 2], "a": 1})
    assert hashing.digest({"a": [1, 2]}) != hashing.digest({"a": [2, 1]})


def test_waves_are_in_the_order_of_the_design_and_backwards() -> None:
    kinds = [
        ("example.com", "Thing"),
        ("apps", "DaemonSet"),
        ("", "ConfigMap"),
        ("", "Namespace"),
        waves.CRD,
        ("node.k8s.io", "RuntimeClass"),
        waves.API_SERVICE,
    ]
    order = [
        waves.CRD,
        ("", "Namespace"),
        ("node.k8s.io", "RuntimeClass"),
        ("", "ConfigMap"),
        ("apps", "DaemonSet"),
        waves.API_SERVICE,
        ("example.com", "Thing"),
    ]
    assert [group[0] for _wave, group in waves.in_waves(kinds, lambda kind: kind)] == order
    assert [group[0] for _wave, group in waves.in_waves(kinds, lambda kind: kind, backwards=True)] == order[::-1]


def test_status_and_bookkeeping_are_no_change() -> None:
    before = {
        "kind": "X",
        "metadata": {"name": "a", "resourceVersion": "1", "generation": 1, "managedFields": []},
        "status": {"a": 1},
    }
    after = {"kind": "X", "metadata": {"name": "a", "resourceVersion": "2", "generation": 2}, "status": {"a": 2}}
    assert not diff.changed(before, after)
    assert diff.changed(before, after | {"spec": {}})


def test_secrets_show_which_keys_changed_and_no_value() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "planted"}
    before = {
        "kind": "Secret",
        "metadata": {"name": "s", "annotations": annotations},
        "data": {"same": "planted", "other": "planted1", "old": "planted2"},
    }
    after = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"same": "planted", "other": "planted3"}}
    entry = diff.entry("Secret s", before, after)
    assert "planted" not in repr(entry)
    assert entry["before"]["data"] == {
        "same": diff.REDACTED,
        "other": diff.REDACTED_BEFORE,
        "old": diff.REDACTED_BEFORE,
    }
    assert entry["after"]["data"] == {"same": diff.REDACTED, "other": diff.REDACTED_AFTER}
    assert before["data"]["same"] == "planted"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bob:planted@proxy:3128", "http://(redacted)@proxy:3128"),
        ("http://planted@proxy", "http://(redacted)@proxy"),
        (
            "x=https://bob:pl@nted@proxy/a, y=http://bob:planted@b",
            "x=https://(redacted)@proxy/a, y=http://(redacted)@b",
        ),
        ("docker://host/image@sha256:1", "docker://host/image@sha256:1"),
        ("bob@example.com", "bob@example.com"),
    ],
)
def test_differences_never_show_what_is_in_a_url(text: str, shown: str) -> None:
    container = {"env": [{"name": "HTTPS_PROXY", "value": text}]}
    entry = diff.entry("DaemonSet d", None, {"kind": "DaemonSet", "spec": {"containers": [container]}})
    assert entry["after"]["spec"]["containers"] == [{"env": [{"name": "HTTPS_PROXY", "value": shown}]}]
    assert container["env"][0]["value"] == text


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault("it failed"), "it failed"),
        (Fault("it failed", "here", "no reason", "look"), "it failed (here): no reason. Next: look"),
        (
            Fault("it failed", why="others end with a full stop.", next_step="look"),
            "it failed: others end with a full stop. Next: look",
        ),
        (Fault("it failed", "here", next_step="look"), "it failed (here). Next: look"),
    ],
)
def test_a_fault_is_told_in_one_line(fault: Fault, told: str) -> None:
    assert str(fault) == told
