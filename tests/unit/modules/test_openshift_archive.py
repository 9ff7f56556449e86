# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec and results agree, and bad input is an error before anything is touched."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.modules import openshift_archive as module
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation


def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **given: t.Any) -> dict[str, t.Any]:
    """The result of the module with these options."""
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: None)
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode())
    if hasattr(basic, "_ANSIBLE_PROFILE"):
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
    with pytest.raises(SystemExit):
        module.main()
    printed = capsys.readouterr().out
    assert "Traceback" not in printed and "bug in hwaccel.gpu" not in printed
    result: dict[str, t.Any] = json.loads(printed)
    return result


def test_options_and_values_are_as_documented(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    documentation.options_match(module)
    result = called(monkeypatch, capsys, path=str(tmp_path / "dgxpod"))
    assert set(yaml.safe_load(module.RETURN)) == set(result) - {"changed", "invocation"}
    assert result["changed"] is False and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "missing required arguments: path"),
        ({"path": "dgxpod"}, "'dgxpod' is no absolute path (path)"),
        ({"path": "/srv/dgxpod", "state": "absent"}, "Unsupported parameters"),
    ],
)
def test_bad_options_are_clear_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: dict[str, t.Any], words: str
) -> None:
    result = called(monkeypatch, capsys, **given)
    assert result["failed"] and words in result["msg"]
