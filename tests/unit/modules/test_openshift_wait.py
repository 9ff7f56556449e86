# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec and results agree, and bad input is an error before anything is sent."""

from __future__ import annotations

import collections.abc as c
import json
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import install_state, progress
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_wait.settings import Settings
from ansible_collections.hwaccel.gpu.plugins.modules import openshift_wait as module
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation
from ansible_collections.hwaccel.gpu.tests.unit.operations.openshift_wait.install_cluster import (
    EXPECTED,
    GIVEN,
    MACHINES,
    InstallCluster,
)

Result = dict[str, t.Any]


def test_documented_options_match_the_spec() -> None:
    documentation.options_match(module)


def test_the_module_passes_its_options_on() -> None:
    assert set(module.ARGUMENT_SPEC) - {"retry_timeout"} == set(Settings.__dataclass_fields__)


def test_returned_and_documented_values_are_the_same() -> None:
    documented = yaml.safe_load(module.RETURN)
    cluster = InstallCluster()
    cluster.install()
    cluster.operator("ingress", Available=False)
    values = cluster.wait().values
    assert set(values) == set(documented)
    for name in ("machines", "lagging"):
        assert set(values[name][0]) == set(documented[name]["contains"]), name


def test_all_states_and_steps_are_documented() -> None:
    documented = yaml.safe_load(module.RETURN)
    states = " ".join(documented["state"]["description"])
    steps = " ".join(documented["machines"]["contains"]["step"]["description"])
    assert [name for name in install_state.STATES if f"V({name})" not in states] == []
    assert [name for name in progress.STEPS if f"V({name})" not in steps] == []


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> c.Callable[..., Result]:
    """The result of a run with these options, which must fail. Nothing listens on the server's port."""
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda self, warning, **_more: None)
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: None)

    def call(**given: t.Any) -> Result:
        connection = {"host": "https://127.0.0.1:1", "api_key": "a-secret-token"}
        options = {"name": "dgxpod.example.com", "api_timeout": 0.1} | GIVEN | connection | given
        arguments = {name: value for name, value in options.items() if value != "(left out)"}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
        if hasattr(basic, "_ANSIBLE_PROFILE"):
            monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
        with pytest.raises(SystemExit):
            module.main()
        printed = capsys.readouterr().out
        result: Result = json.loads(printed)
        assert result["failed"]
        assert "a-secret-token" not in printed
        assert "Traceback" not in printed
        assert "bug in hwaccel.gpu" not in printed
        return result

    return call


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "(left out)"}, "missing required arguments: name"),
        ({"name": ""}, "missing required arguments: name"),
        ({"name": ["dgxpod"]}, "cannot be used (name): it is not a DNS name"),
        ({"name": "dgxpod\x07.example.com"}, "cannot be used (name)"),
        ({"name": "d" * 300}, "…' cannot be used (name)"),
        ({"until": "installed"}, "until must be one of"),
        ({"until": "Install"}, "until must be one of"),
        ({"expected_nodes": "worker-0"}, "expected_nodes"),
        ({"expected_nodes": [None]}, "expected_nodes"),
        ({"expected_nodes": [{"nam": "worker-0"}]}, "unknown keys nam"),
        ({"expected_nodes": [{"name": "worker-0", "ip_addresses": ["fd00::1::2"]}]}, "it is not an IP address"),
        ({"expected_nodes": [dict(EXPECTED[0], ip_addresses=["10.33.3.10/24"])]}, "it is not an IP address"),
        ({"expected_nodes": [dict(EXPECTED[0], name="worker\x1b[2J")]}, "cannot be used (expected_nodes[0].name)"),
        ({"allow_rejoin": ["nobody.example.com"]}, "it is no name of an expected node"),
        ({"allow_rejoin": {"worker-0": True}}, "allow_rejoin"),
        ({"expected_nodes": [EXPECTED[0], EXPECTED[0]]}, "belongs to 2 expected nodes"),
        ({"machines": "worker-0"}, "dictionary requested"),
        ({"machines": [{"name": "worker-0"}]}, "missing required arguments: role"),
        ({"machines": [dict(MACHINES[0], role="node")]}, "role must be one of"),
        ({"machines": [dict(MACHINES[0], stage="ready")]}, "stage must be one of"),
        ({"machines": [dict(MACHINES[0], quiet="long")]}, "quiet"),
        ({"machines": [dict(MACHINES[0], quiet=float("nan"))]}, "nan cannot be used (machines[0].quiet)"),
        ({"machines": [dict(MACHINES[0], fetches=-1)]}, "-1 cannot be used (machines[0].fetches)"),
        ({"machines": [dict(MACHINES[0], name="")]}, "cannot be used (machines[0].name): it is not a DNS name"),
        ({"machines": [dict(MACHINES[0], name="worker\x1b[2J")]}, "cannot be used (machines[0].name)"),
        ({"machines": [dict(MACHINES[0], fetched=2)]}, "Unsupported parameters"),
        ({"machines": [MACHINES[1], MACHINES[1]]}, "cannot be told from another one"),
        ({"installation": {"not_after": "in a day"}}, "it is no time in ISO 8601"),
        ({"installation": {"not_after": "2026-12-01T06:00:00"}}, "with its zone"),
        ({"installation": {"not_after": "9" * 300}}, "…' cannot be used (installation.not_after)"),
        ({"installation": {"installed": "perhaps"}}, "installed"),
        ({"installation": "files"}, "dictionary requested"),
        ({"surroundings": {"wildcards": ""}}, "Unsupported parameters"),
        ({"api_timeout": "soon"}, "api_timeout"),
        ({"host": "https://10.33.3.10:70000"}, "is not the URL of an API server"),
        (
            {"install_timeout": float("inf")},
            "install_timeout inf cannot be used (install_timeout): the wait would never",
        ),
        ({"nodes_timeout": -1}, "nodes_timeout -1 cannot be used"),
        ({"serving_ca": "/etc/kubernetes/pki/ca.crt"}, "it has no certificate in PEM form"),
        ({"wait_timeout": 5}, "Unsupported parameters"),
    ],
)
def test_bad_input_is_an_error_before_anything_is_sent(
    fail: c.Callable[..., Result], given: dict[str, t.Any], words: str
) -> None:
    message = str(fail(**given)["msg"])
    assert words in message
    assert "127.0.0.1:1" not in message


def test_a_server_that_does_not_answer(fail: c.Callable[..., Result]) -> None:
    result = fail()
    assert "the API was waited for in vain" in result["msg"]
    assert "127.0.0.1:1" in result["msg"]
    assert (result["state"], result["cause"]["what"]) == ("booting", "masters are up, and the API is not")
