# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shown differences between objects."""

from __future__ import annotations

import json
import sys

import pytest
import yaml

from ansible_collections.hwaccel.gpu.plugins.module_utils._model import diff


def test_status_and_managed_metadata_are_no_change() -> None:
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
    assert yaml.safe_load(entry["before"])["data"] == {
        "same": diff.REDACTED,
        "other": diff.REDACTED_BEFORE,
        "old": diff.REDACTED_BEFORE,
    }
    assert yaml.safe_load(entry["after"])["data"] == {"same": diff.REDACTED, "other": diff.REDACTED_AFTER}
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
def test_differences_never_show_credentials_in_a_url(text: str, shown: str) -> None:
    container = {"env": [{"name": "HTTPS_PROXY", "value": text}]}
    entry = diff.entry("DaemonSet d", None, {"kind": "DaemonSet", "spec": {"containers": [container]}})
    assert yaml.safe_load(entry["after"])["spec"]["containers"] == [{"env": [{"name": "HTTPS_PROXY", "value": shown}]}]
    assert container["env"][0]["value"] == text


def test_a_script_and_a_file_differ_line_by_line() -> None:
    before = {
        "kind": "ConfigMap",
        "metadata": {"name": "c", "uid": "1"},
        "data": {"run.sh": "set -e\necho one\nexit 0\n"},
    }
    after = {
        "kind": "ConfigMap",
        "metadata": {"name": "c", "uid": "1"},
        "data": {"run.sh": "set -e\necho two\nexit 0\n"},
    }
    entry = diff.entry("ConfigMap c", before, after)
    old, new = entry["before"].splitlines(), entry["after"].splitlines()
    assert (set(old) - set(new), set(new) - set(old)) == ({"    echo one"}, {"    echo two"})
    assert diff.entry("ConfigMap c", None, after)["before"] == ""


def test_without_pyyaml_differences_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    entry = diff.entry("ConfigMap c", None, {"kind": "ConfigMap", "metadata": {"name": "c"}})
    assert json.loads(entry["after"]) == {"kind": "ConfigMap", "metadata": {"name": "c"}}
