# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad options are clear errors: nothing is started or written, and no secret is shown. What the module does is tested in tests/openshift."""

from __future__ import annotations

import collections.abc as c
import json
import pathlib
import typing as t

import pytest
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.modules import openshift_install as module

CONFIG = {"apiVersion": "v1", "pullSecret": '{"auths":{"quay.io":{"auth":"cGw0bnRlZDpw"}}}', "fips": True}
TEXT = "apiVersion: v1\npullSecret: pl4nted\n"


@pytest.fixture
def fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> c.Callable[..., str]:
    """The message of a run with these options, which must fail. The program would leave a trace."""
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: None)
    program = tmp_path / "openshift-install"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
    program.chmod(0o755)

    def call(given: dict[str, t.Any]) -> str:
        folder = str(tmp_path / "above" / "dgxpod")
        options = {"path": folder, "program": str(program), "files": {"install-config.yaml": CONFIG}} | given
        arguments = {name: value for name, value in options.items() if value != "(left out)"}
        arguments |= {"_ansible_verbosity": 4, "_ansible_diff": True}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
        if hasattr(basic, "_ANSIBLE_PROFILE"):
            monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
        with pytest.raises(SystemExit):
            module.main()
        printed = capsys.readouterr().out
        result: dict[str, t.Any] = json.loads(printed)
        assert result["failed"] and not result.get("changed")
        assert [one for one in ("pl4nted", "cGw0bnRlZDpw", "Traceback", "bug in hwaccel.gpu") if one in printed] == []
        assert [path.name for path in tmp_path.iterdir()] == ["openshift-install"]
        return str(result["msg"])

    return call


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"files": "(left out)"}, ["missing required arguments: files"]),
        ({"files": ""}, ["missing required arguments: files"]),
        ({"files": {}}, ["install-config.yaml is missing (files)"]),
        ({"files": TEXT}, ["files"]),
        ({"files": [CONFIG]}, ["cannot be converted to a dict"]),
        ({"files": 7}, ["files"]),
        ({"files": {"install-config.yaml": None}}, ["the file holds no object (files: install-config.yaml)"]),
        ({"files": {"install-config.yaml": 10.33}}, ["the file holds no object"]),
        ({"files": {"install-config.yaml": [[CONFIG]]}}, ["the file holds no object"]),
        (
            {"files": {"install-config.yaml": f"{TEXT}  a: [pl4nted"}},
            ["it is not valid YAML (files: install-config.yaml, line"],
        ),
        ({"files": {"install-config.yaml": f"{TEXT}pullSecret: again\n"}}, ["pullSecret occurs twice", "line 3"]),
        ({"files": {"install-config.yaml": "pullSecret: *pl4nted"}}, ["found undefined alias"]),
        ({"files": {"install-config.yaml": "pullSecret: !pl4nted"}}, ["could not determine a constructor for the tag"]),
        ({"files": {"install-config.yaml": "a: &pl4nted 1\nb: &pl4nted 2"}}, ["second occurrence"]),
        ({"files": {"install-config.yaml": CONFIG, 7: TEXT}}, ["does not read this file (files: 7)"]),
        ({"files": {"install-config.yaml": CONFIG, "/etc/passwd": TEXT}}, ["files: /etc/passwd"]),
        ({"files": {"install-config.yaml": CONFIG, "openshift/../../a.yaml": TEXT}}, ["openshift/../../a.yaml"]),
        ({"files": {"install_config.yaml": CONFIG}}, ["install-config.yaml is missing", "files: install_config.yaml"]),
        ({"path": "(left out)"}, ["missing required arguments: path"]),
        ({"path": "dgxpod"}, ["'dgxpod' is no absolute path (path)"]),
        ({"path": "/srv/a\x00b", "program": "/srv/a\x00b"}, ["is no absolute path (path)", "no file (program)"]),
        ({"path": "/srv/" + "a" * 5000}, ["is no absolute path (path)"]),
        ({"program": "/" + "a" * 5000}, ["cannot be started"]),
        ({"stream": "rhel\n10"}, ["is not the name of a stream (stream)"]),
        ({"stream": ["rhel-10"]}, ["is not the name of a stream (stream)"]),
        ({"mirror": "https://mirror.example.com/\x1b[2J"}, ["mirror"]),
        ({"margin": float("inf"), "timeout": float("nan")}, ["margin", "timeout"]),
        ({"timeout": float("inf")}, ["timeout"]),
        ({"program": ["a"]}, ["cannot be started"]),
        ({"method": "UPI"}, ["method must be one of: upi, in_place, agent"]),
        ({"architecture": "amd64"}, ["architecture must be one of: x86_64"]),
        ({"own_approver": "perhaps"}, ["own_approver"]),
        ({"own_approver": "true", "method": "agent"}, ["own_approver cannot be set (method: agent)", "agent-config"]),
        ({"margin": "12h"}, ["margin"]),
        ({"margin": -5, "timeout": 0}, ["margin is not positive", "timeout is not positive"]),
        ({"mirror": "mirror"}, ["'mirror' is not the address of a folder (mirror)"]),
        ({"cluster": {"nam": "x"}}, ["cluster.nam"]),
        ({"cluster": {"answers": "sometimes"}}, ["answers"]),
        ({"cluster": "dgxpod"}, ["dictionary requested"]),
        ({"regenerate_named": {"worker-0": True}}, ["regenerate_named"]),
        ({"folder": "/srv"}, ["Unsupported parameters"]),
    ],
)
def test_bad_options_are_clear_errors_before_anything_is_touched(
    fail: c.Callable[..., str], given: dict[str, t.Any], words: list[str]
) -> None:
    message = fail(given)
    assert [word for word in words if word not in message] == [], message
