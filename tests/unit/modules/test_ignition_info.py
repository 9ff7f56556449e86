# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec and returned values agree, and it changes nothing."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import ignition_files
from ansible_collections.hwaccel.gpu.plugins.modules import ignition_info as module
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i


def test_documented_options_match_the_spec() -> None:
    documentation.options_match(module)


def test_returned_and_documented_values_are_the_same(tmp_path: pathlib.Path) -> None:
    documented: dict[str, t.Any] = yaml.safe_load(module.RETURN)
    config = i.Installation().bootstrap()
    config["ignition"] |= i.Installation().pointer("master")["ignition"]
    path = tmp_path / "bootstrap.ign"
    path.write_bytes(i.written(config))
    values = ignition_files.run([str(path)], i.NOW).values
    assert set(values) == set(documented)
    fields = documented["files"]["contains"]
    (found,) = values["files"]
    assert set(found) == set(fields)
    for name in ("certificates", "sources", "users", "units", "contents"):
        assert set(found[name][0]) == set(fields[name]["contains"]), name
    assert set(found["clock"]) == set(fields["clock"]["contains"])
    assert set(found["clock"]["first"]) == set(fields["certificates"]["contains"])


Run = t.Callable[[dict[str, t.Any]], dict[str, t.Any]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the module with options in this process, and returns its result."""
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: None)

    def call(options: dict[str, t.Any]) -> dict[str, t.Any]:
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode())
        if hasattr(basic, "_ANSIBLE_PROFILE"):
            monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
        with pytest.raises(SystemExit):
            module.main()
        result: dict[str, t.Any] = json.loads(capsys.readouterr().out)
        return result

    return call


def test_it_changes_nothing_and_returns_no_secret(run: Run, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bootstrap.ign"
    path.write_bytes(i.written(i.Installation().bootstrap()))
    results = [
        run({"path": [str(path)], "_ansible_check_mode": mode, "_ansible_verbosity": 4}) for mode in (False, True)
    ]
    for result in results:
        assert (result["changed"], len(result["files"]), "failed" in result) == (False, 1, False)
        text = json.dumps(result)
        assert [line for line in i.private_key().splitlines()[1:-1] if line in text] == []
        assert "cGxhbnRlZDpwdWxsLXNlY3JldA" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "missing required arguments: path"),
        ({"path": ""}, "missing required arguments: path"),
        ({"path": []}, "there is no ignition file to read (path): it is empty. Next: name a file"),
        ({"path": ["", ""]}, "a path is empty"),
        ({"path": {"bootstrap": "/a"}}, "dict"),
        ({"path": "/nonexistent/bootstrap.ign"}, "No such file or directory"),
        ({"path": 5}, "No such file or directory"),
        ({"path": True}, "No such file or directory"),
        ({"path": ["/nonexistent"], "file": "/a"}, "Unsupported parameters"),
        ({"path": "/"}, "Is a directory"),
        ({"path": ["a\x00b"]}, "it is not a path"),
        ({"path": ["a" * 5000]}, "File name too long"),
        ({"path": [["/a"]]}, "the ignition file cannot be read"),
        ({"path": "/dev/zero"}, "it is not a regular file"),
    ],
)
def test_bad_options_are_clear_errors(run: Run, options: dict[str, t.Any], message: str) -> None:
    result = run(options)
    assert result["failed"] is True
    assert message in result["msg"]
    assert "Traceback" not in json.dumps(result)
