# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and outcomes of a module run, and agreement of argument specs and documentation."""

from __future__ import annotations

import datetime
import importlib
import json
import pathlib
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from ansible_collections.hwaccel.gpu.plugins.module_utils._api import client as api_client
from ansible_collections.hwaccel.gpu.plugins.module_utils._api.version import USER_AGENT, VERSION
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module import spec
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import Context, run_module, shown_parameters

ROOT = pathlib.Path(__file__).resolve().parents[3]
Result = dict[str, t.Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> t.Callable[..., Result]:
    """Runs an operation with options in this process, and returns its result."""
    logged: list[str] = []
    warned: list[str] = []
    # If other tests have loaded code of the controller, Ansible shows warnings of a module instead of returning them.
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda self, warning, **_more: warned.append(warning))
    monkeypatch.setattr(basic.AnsibleModule, "log", lambda self, msg, log_args=None: logged.append(msg))

    def call(
        options: dict[str, t.Any], operation: t.Any, argument_spec: dict[str, t.Any] | None = None, **more: t.Any
    ) -> Result:
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": options}).encode())
        if hasattr(basic, "_ANSIBLE_PROFILE"):
            monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
        with pytest.raises(SystemExit):
            run_module(argument_spec or {}, operation, supports_check_mode=True, **more)
        return {"logged": " ".join(logged), "warned": warned, **json.loads(capsys.readouterr().out)}

    return call


def test_an_empty_string_is_an_unset_option(run: t.Callable[..., Result]) -> None:
    received: dict[str, t.Any] = {}

    def operation(params: dict[str, t.Any], _context: Context) -> Outcome:
        received.update(params)
        return Outcome()

    empty = dict.fromkeys(("validate_certs", "impersonate_groups", "kubeconfig", "proxy_headers", "size", "name"), "")
    result = run(
        empty, operation, {"size": {"type": "int", "default": 3}, "name": {"type": "str", "default": "default"}}
    )
    assert result["changed"] is False
    assert {name: received[name] for name in empty} == {**dict.fromkeys(empty), "size": 3, "name": "default"}


def test_secrets_are_hidden_if_a_suboption_has_a_wrong_type(run: t.Callable[..., Result]) -> None:
    secrets = {"api_key": "a-secret-token", "proxy_headers": {"basic_auth": "me:a-secret-word"}}
    spec = {"nodes": {"type": "list", "elements": "dict", "options": {"name": {"type": "str"}}}}
    result = run({**secrets, "nodes": ["text"]}, lambda params, context: Outcome(), spec)
    assert result["failed"]
    assert "a-secret" not in str(result)


def test_outcomes_of_any_type_become_results(run: t.Callable[..., Result]) -> None:
    values = {"set": {"b", "a"}, "date": datetime.date(2026, 1, 2), "path": pathlib.Path("/x")}
    result = run(
        {"_ansible_diff": True},
        lambda params, context: Outcome(
            True, values, ["careful"], [{"before": "a", "after": "b"}], progress=["1 of 2"]
        ),
    )
    assert (result["changed"], result["set"], result["date"], result["path"]) == (True, ["a", "b"], "2026-01-02", "/x")
    assert (result["diff"], result["progress"]) == ([{"before": "a", "after": "b"}], ["1 of 2"])
    assert result["warned"] == ["careful"]


def test_results_contain_no_terminal_control_sequences(run: t.Callable[..., Result]) -> None:
    bad, good = "a\x1b[2J\x9b1mb\u202e\r\x07c", "ab\nc"

    def operation(_params: Result, context: Context) -> Outcome:
        context.warn(bad)
        failure = HwaccelError(bad, bad)
        diff = [{"before": bad, "after": bad}]
        return Outcome(
            True,
            {"log": bad, "nodes": [{bad: {"reason": bad}}]},
            [bad],
            diff,
            failure=failure,
            pending={"as": bad},
            progress=[bad],
        )

    result = run({"_ansible_diff": True}, operation)
    assert (result["log"], result["nodes"], result["progress"]) == (good, [{good: {"reason": good}}], [good])
    assert (result["diff"], result["warned"]) == ([{"before": good, "after": good}], [good, good])
    assert (result["msg"], result["faults"][0]["what"]) == (f"{good} ({good})", good)
    # The state for the next slice is not shown, so it stays as it is.
    assert run({}, lambda params, context: Outcome(pending={"as": bad}))["pending"] == {"as": bad}


def test_a_diff_that_was_not_requested_is_not_returned(run: t.Callable[..., Result]) -> None:
    assert "diff" not in run({}, lambda params, context: Outcome(diff=[{"before": "a", "after": "b"}]))


def test_a_failure_keeps_the_completed_changes(run: t.Callable[..., Result]) -> None:
    failure = HwaccelError("what", "where", "why", "next")
    result = run({}, lambda params, context: Outcome(True, {"done": 3}, failure=failure, pending={"a": 1}))
    assert (result["failed"], result["changed"], result["done"]) == (True, True, 3)
    assert result["msg"] == "what (where): why. Next: next"
    assert result["faults"] == [
        {"what": "what", "where": "where", "why": "why", "next_step": "next", "text": "what (where): why. Next: next"}
    ]
    assert "pending" not in result


@pytest.mark.parametrize("verbosity", [0, 1, 3])
def test_a_bug_names_its_location_and_has_a_traceback_only_with_verbosity(
    run: t.Callable[..., Result], verbosity: int
) -> None:
    def operation(_params: dict[str, t.Any], _context: Context) -> Outcome:
        raise ZeroDivisionError("two\nlines")

    result = run({"_ansible_verbosity": verbosity}, operation)
    assert result["msg"].startswith("this is a bug in hwaccel.gpu: ZeroDivisionError: two lines (")
    assert ("traceback" in result) == (verbosity >= 3)
    assert "exception" not in result


def test_a_result_that_is_not_serializable_is_reported_as_a_bug(run: t.Callable[..., Result]) -> None:
    assert "this is a bug" in run({}, lambda params, context: Outcome(values={("a", "b"): 1}))["msg"]


def test_slices_have_a_deadline_and_resume(run: t.Callable[..., Result]) -> None:
    def operation(_params: dict[str, t.Any], context: Context) -> Outcome:
        assert context.deadline is not None
        return Outcome(values={"resumed": context.resume}, pending={"step": 2})

    result = run({"wait_slice": 5, "wait_resume": {"step": 1}}, operation, waits=True)
    assert (result["resumed"], result["pending"]) == ({"step": 1}, {"step": 2})


@pytest.mark.parametrize(("resume", "met"), [({}, False), ({"step": 1}, True)])
def test_a_resumed_slice_has_reached_the_server_before(
    run: t.Callable[..., Result], monkeypatch: pytest.MonkeyPatch, resume: Result, met: bool
) -> None:
    created: list[Result] = []
    monkeypatch.setattr(api_client, "connect", lambda params, **options: created.append(options))

    def operation(_params: Result, context: Context) -> Outcome:
        context.client()
        return Outcome()

    run({"wait_slice": 5, "wait_resume": resume}, operation, waits=True)
    assert [options["met"] for options in created] == [met]


def test_manifests_and_secrets_are_neither_returned_nor_logged(run: t.Callable[..., Result]) -> None:
    options = {
        "definition": {"kind": "Secret", "data": {"a": "planted-1"}},
        "api_key": "planted-2",
        "password": "planted-3",
        "kubeconfig": {"users": [{"user": {"token": "planted-4"}}]},
        "proxy_headers": {"basic_auth": "planted-5"},
        "texts": "planted-6",
    }
    result = run(
        options,
        lambda params, context: Outcome(values={"echo": params["api_key"]}),
        {"definition": {"type": "raw"}, "texts": {"type": "raw"}},
    )
    assert "planted" not in json.dumps(result)
    # Newer releases of ansible-core omit it by default.
    assert (
        result.get("invocation", {}).get("module_args", {}).get("definition", "(2 entries, not shown)")
        == "(2 entries, not shown)"
    )


def test_options_that_are_never_shown_are_not_shown_with_an_invalid_one_either(run: t.Callable[..., Result]) -> None:
    """AnsibleModule fails by itself then, before anything of a kubeconfig could be masked."""
    options = {
        "kubeconfig": {"users": [{"user": {"token": "planted-1"}}]},
        "files": {"install-config.yaml": {"pullSecret": "planted-2", "replicas": 3}},
        "definition": {"kind": "Secret", "data": {"a": "planted-3"}},
        "choice": "planted-no",
        "number": 3,
    }
    spec = {
        "definition": {"type": "raw"},
        "files": {"type": "dict"},
        "choice": {"choices": ["yes"]},
        "number": {"type": "int"},
    }
    result = run(options, lambda _params, _context: Outcome(), spec)
    assert result["failed"] and "choice must be one of" in result["msg"]
    shown = result.get("invocation", {}).get("module_args", {"number": 3})
    assert shown["number"] == 3, "what is no secret is shown"
    assert all(f"planted-{number}" not in json.dumps(result) for number in (1, 2, 3))


def test_secrets_of_a_kubeconfig_are_masked_once_the_client_is_created(run: t.Callable[..., Result]) -> None:
    kubeconfig = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "planted-token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }

    def operation(_params: dict[str, t.Any], context: Context) -> Outcome:
        assert context.client() is context.client()
        return Outcome(values={"leak": "it is planted-token"}, progress=["and planted-token"])

    assert "planted-token" not in json.dumps(run({"kubeconfig": kubeconfig}, operation))


def test_parameters_are_shown_without_content() -> None:
    shown = shown_parameters(
        {
            "kubeconfig": "/path",
            "name": "x",
            "long": "x" * 500,
            "definition": [1],
            "wait_resume": {},
            "flag": True,
            "none": None,
        }
    )
    assert shown == {
        "kubeconfig": "/path",
        "name": "x",
        "long": "(500 characters, not shown)",
        "definition": "(1 entry, not shown)",
        "wait_resume": "(0 entries, not shown)",
        "flag": True,
        "none": None,
    }
    assert "planted" not in str(shown_parameters({"kubeconfig": "users:\n- planted"}))


@pytest.mark.parametrize(
    ("fragment", "shared"),
    [("cluster", spec.CLUSTER_SPEC), ("waiting", spec.WAITING_SPEC), ("sources", spec.SOURCES_SPEC)],
)
def test_documentation_fragments_match_the_specs(fragment: str, shared: dict[str, t.Any]) -> None:
    module = importlib.import_module(f"ansible_collections.hwaccel.gpu.plugins.doc_fragments.{fragment}")
    documented = yaml.safe_load(module.ModuleDocFragment.DOCUMENTATION)["options"]
    assert {name: _facts(option, "suboptions") for name, option in documented.items()} == {
        name: _facts(option, "options") for name, option in shared.items()
    }


def _facts(option: dict[str, t.Any], inner: str) -> tuple[t.Any, ...]:
    below = {name: _facts(entry, inner) for name, entry in (option.get(inner) or {}).items()}
    return (
        option.get("type"),
        option.get("elements"),
        option.get("aliases", []),
        option.get("required", False),
        option.get("default"),
        below,
    )


def test_the_user_agent_contains_the_version_of_the_collection() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == VERSION
    assert f"hwaccel.gpu/{VERSION}" == USER_AGENT
