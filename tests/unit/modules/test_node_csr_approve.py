# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's documentation, argument spec and results agree, and bad input is an error before anything is sent."""

from __future__ import annotations

import collections.abc as c
import json
import pathlib
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.profiles import PROFILES
from ansible_collections.hwaccel.gpu.plugins.module_utils._approval.reasons import REASONS
from ansible_collections.hwaccel.gpu.plugins.modules import node_csr_approve as module
from ansible_collections.hwaccel.gpu.tests.unit.approval import cases
from ansible_collections.hwaccel.gpu.tests.unit.modules import documentation
from ansible_collections.hwaccel.gpu.tests.unit.operations.node_csr.csr_cluster import CsrCluster

Result = dict[str, t.Any]


def test_documented_options_match_the_spec() -> None:
    documentation.options_match(module)


def test_returned_and_documented_values_are_the_same() -> None:
    documented = yaml.safe_load(module.RETURN)
    wrong = cases.good_client().but(name="wrong", usages=("any",))
    values = CsrCluster(cases.good_client(), wrong).approve(deny_refused=True).values
    assert set(values) == set(documented)
    for name in ("approved", "ignored"):
        assert set(values[name][0]) == set(documented[name]["contains"]), name
    assert set(values["denied"][0]) == set(values["ignored"][0])


def test_all_reason_codes_are_documented() -> None:
    text = " ".join(yaml.safe_load(module.RETURN)["ignored"]["contains"]["reason_code"]["description"])
    assert [code for code in REASONS if f"V({code})" not in text] == []
    assert text.count("V(") == len(REASONS)


def test_the_page_explains_each_reason_and_profile() -> None:
    page = (pathlib.Path(__file__).parents[3] / "docs" / "approving-certificates.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert [name for name in (*REASONS, *PROFILES, "custom") if not any(f"`{name}`" in row for row in rows)] == []


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> c.Callable[..., str]:
    """The message of a run with these options, which must fail. Nothing listens on the server's port."""
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda self, warning, **_more: None)
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: None)

    def call(**given: t.Any) -> str:
        connection = {"host": "https://127.0.0.1:1", "api_key": "a-secret-token", "retry_timeout": 0}
        options = {"expected_nodes": cases.EXPECTED, "profile": "openshift"} | connection | given
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
        return str(result["msg"])

    return call


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"expected_nodes": "(left out)"}, "missing required arguments: expected_nodes"),
        ({"expected_nodes": ""}, "missing required arguments: expected_nodes"),
        ({"expected_nodes": "worker-0"}, "expected_nodes"),
        ({"expected_nodes": 7}, "expected_nodes"),
        ({"expected_nodes": [None]}, "expected_nodes"),
        ({"expected_nodes": [{"nam": "worker-0"}]}, "unknown keys nam"),
        ({"expected_nodes": [{"name": "worker-0", "ip_addresse": []}]}, "unknown keys ip_addresse"),
        ({"expected_nodes": [{"name": None}]}, "expected node None cannot be used (expected_nodes[0].name)"),
        ({"expected_nodes": [{"name": ["worker-0"]}]}, "expected_nodes[0].name"),
        ({"expected_nodes": [{"name": 7}]}, "expected_nodes[0].name"),
        ({"expected_nodes": [{"name": "worker-0", "ip_addresses": "10.33.3.20"}]}, "it is str, not a list"),
        ({"expected_nodes": [{"name": "worker-0", "ip_addresses": ["fd00::1::2"]}]}, "it is not an IP address"),
        ({"expected_nodes": [{"name": "worker-0", "ip_addresses": [10.33]}]}, "10.33 cannot be used"),
        ({"expected_nodes": [{"name": "worker-0", "dns_names": [True]}]}, "it is bool, not a text"),
        ({"expected_nodes": [{"name": "a"}, {"name": "a"}]}, "name a belongs to 2 expected nodes"),
        ({"expected_nodes": [], "wait": True}, "there is nothing to wait for"),
        ({"profile": "OpenShift"}, "profile must be one of"),
        ({"profile": "(left out)"}, "missing required arguments: profile"),
        ({"signers": ["serving", "etcd"]}, "signers must be one or more of"),
        ({"max_age": "two hours"}, "max_age"),
        ({"max_age": -5}, "max_age -5 cannot be used"),
        ({"max_pending": "many"}, "max_pending"),
        ({"wait": "perhaps"}, "wait"),
        ({"serving_ca": "/etc/kubernetes/pki/ca.crt"}, "it has no certificate in PEM form"),
        ({"sleep": 5}, "Unsupported parameters"),
    ],
)
def test_bad_input_is_an_error_before_anything_is_sent(
    fail: c.Callable[..., str], given: dict[str, t.Any], words: str
) -> None:
    message = fail(**given)
    assert words in message
    assert "127.0.0.1:1" not in message


def test_a_server_that_does_not_answer(fail: c.Callable[..., str]) -> None:
    message = fail()
    assert "127.0.0.1:1" in message
    assert "Next: check that the API server is running" in message
