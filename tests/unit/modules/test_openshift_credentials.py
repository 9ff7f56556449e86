# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec and results agree, and bad input is an error in which no secret is shown."""

from __future__ import annotations

import json
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.modules import openshift_credentials as module
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation
from ansible_collections.hwaccel.gpu.tests.unit.operations.test_openshift_credentials import (
    INSTALLED,
    WANTED,
    OpenShift,
    run,
)

KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "pl4nted-token"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


def test_options_and_values_are_as_documented() -> None:
    documentation.options_match(module)
    assert set(yaml.safe_load(module.RETURN)) == set(run(OpenShift(*INSTALLED), WANTED).values)


def test_another_connection_counts_only_if_it_is_there_and_impersonates_nobody() -> None:
    assert module._other({"kubeconfig": KUBECONFIG}) is not None
    assert module._other({"kubeconfig": KUBECONFIG, "impersonate_user": "alice"}) is None
    user = {**KUBECONFIG["users"][0]["user"], "as": "alice"}  # type: ignore[dict-item]
    assert module._other({"kubeconfig": {**KUBECONFIG, "users": [{"name": "u", "user": user}]}}) is None
    assert module._other({"kubeconfig": "/srv/nothing/here"}) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "(left out)"}, "missing required arguments: name"),
        ({"remove_kubeadmin": "perhaps"}, "remove_kubeadmin"),
        ({"other_connection": "pl4nted-token"}, "other_connection"),
        ({"infrastructure": ["a"], "nam": "x"}, "Unsupported parameters"),
        ({"kubeconfig": KUBECONFIG}, "127.0.0.1"),
    ],
)
def test_bad_options_are_clear_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: dict[str, t.Any], words: str
) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: None)
    options = {"name": "ocp.example.com", "kubeconfig": KUBECONFIG, "other_connection": {"kubeconfig": KUBECONFIG}}
    known = {**options, "remove_kubeadmin": True, "retry_timeout": 0, **given}
    arguments = {name: value for name, value in known.items() if value != "(left out)"}
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
    if hasattr(basic, "_ANSIBLE_PROFILE"):
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
    with pytest.raises(SystemExit):
        module.main()
    printed = capsys.readouterr().out
    result = json.loads(printed)
    assert result["failed"] and words in str(result["msg"])
    assert [one for one in ("Traceback", "bug in hwaccel.gpu") if one in printed] == []
    if given.get("other_connection") != "pl4nted-token":
        assert "pl4nted" not in printed
