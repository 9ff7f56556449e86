# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module has the same result if it is started from its file or packed by ansible-core, by real ansible-playbook runs. Needs no cluster."""

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.action.plays import collection_with, play

MODULE = """
from __future__ import annotations
DOCUMENTATION = "module: probe"
import os
import pathlib
import sys
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module import adapter


def operation(params, context):
    context.warn("a warning")
    command = pathlib.Path("/proc/self/cmdline").read_text().split(chr(0))
    hidden = not params["secret"] or params["secret"] not in str(command)
    values = {
        "packed": ".zip" in adapter.__file__, "hidden": hidden, "given": os.environ.get("GIVEN"), "folder": os.getcwd(),
        "check": context.check_mode, "text": params["text"], "secret": params["secret"], "stdin": sys.stdin.read(), "arguments": sys.argv[1:],
    }
    return Outcome(changed=not context.check_mode, values=values, failure=HwaccelError("refused", "here", "so it is", "ask") if params["fail"] else None)


def main():
    spec = {"fail": {"type": "bool"}, "secret": {"type": "str", "no_log": True}, "text": {"type": "str"}}
    adapter.run_module(spec, operation, cluster=False, supports_check_mode=True)


if __name__ == "__main__":
    main()
"""
SECRET = "planted-secret-9"
TEXT = "\N{LATIN SMALL LETTER A WITH DIAERESIS} \N{SNOWMAN} \"quoted\" 'twice' $HOME\n"
TASKS = """
- hwaccel.gpu.probe: {text: "{{ text }}", secret: "{{ secret }}"}
  environment: {GIVEN: "a value with 'quotes'"}
  register: plain
- hwaccel.gpu.probe: {fail: true, secret: "{{ secret }}"}
  ignore_errors: true
  register: failed
- hwaccel.gpu.probe: {text: "{{ text }}"}
  delegate_to: "{{ {'here': 'linked', 'linked': 'here'}[inventory_hostname] }}"
  register: delegated
- ansible.builtin.copy:
    content: "{{ dict(plain=plain, failed=failed, delegated=delegated) | to_json }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.json"
    mode: "0600"
  check_mode: false
  diff: false
"""
Results = dict[str, dict[str, dict[str, t.Any]]]


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return collection_with(tmp_path_factory.mktemp("collections"), {"probe": MODULE}, {"probe": "node_info"})


def played(collections: pathlib.Path, folder: pathlib.Path, *arguments: str, **environ: str) -> tuple[Results, str]:
    """Results by host and task, and the output. The host `here` uses the Python that runs Ansible, and `linked` the same one by another path."""
    (folder / "python").symlink_to(sys.executable)
    hosts = {
        "here": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "linked": {"ansible_python_interpreter": str(folder / "python")},
    }
    (folder / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts, "vars": {"secret": SECRET, "text": TEXT}}})
    )
    code, output = play(collections, folder, TASKS, "-vvv", *arguments, hosts="inventory.yml", environ=environ)
    assert code == 0, output
    return {host: json.loads((folder / f"{host}.json").read_text()) for host in hosts}, output


def test_both_ways_to_start_a_module_have_the_same_result(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # The package "ansible" has such a folder, which Python uses as the whole package ansible_collections, wherever the collection is installed.
    (tmp_path / "site" / "ansible_collections").mkdir(parents=True)
    (tmp_path / "site" / "ansible_collections" / "__init__.py").touch()
    results, output = played(collections, tmp_path, PYTHONPATH=str(tmp_path / "site"))
    here, linked = results["here"], results["linked"]
    packed = {(host, task): result.pop("packed") for host, tasks in results.items() for task, result in tasks.items()}
    assert {key for key, value in packed.items() if not value} == {
        ("here", "plain"),
        ("here", "failed"),
        ("linked", "delegated"),
    }
    assert (here["plain"], here["failed"], here["delegated"]) == (
        linked["plain"],
        linked["failed"],
        linked["delegated"],
    )
    plain, failed = here["plain"], here["failed"]
    assert (
        plain["text"],
        plain["secret"],
        plain["given"],
        plain["hidden"],
        plain["stdin"],
        plain["arguments"],
        plain["changed"],
    ) == (
        TEXT,
        "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER",
        "a value with 'quotes'",
        True,
        "",
        [],
        True,
    )
    assert plain["folder"] == str(tmp_path) and plain["warnings"] == ["a warning"]
    assert (
        failed["failed"]
        and failed["msg"] == "refused (here): so it is. Next: ask"
        and failed["faults"][0]["what"] == "refused"
    )
    assert SECRET not in output


def test_kept_remote_files_are_packed(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A user who keeps the files that ansible-core has packed inspects them, so the module is packed."""
    results, _output = played(collections, tmp_path, "--check", ANSIBLE_KEEP_REMOTE_FILES="true")
    for tasks in results.values():
        assert all(result["packed"] for result in tasks.values())
        assert tasks["plain"]["check"] and not tasks["plain"]["changed"]
