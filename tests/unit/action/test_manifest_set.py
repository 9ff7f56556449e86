# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared action plugin, by real ansible-playbook runs of a module with several slices. Needs no cluster."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
import typing as t

import ansible_runner
import pytest
import yaml

from ansible_collections.hwaccel.gpu.tests.unit.action.plays import PROGRAM, collection_with, play, written

FIRST_LINE = "alpha: 1 of 3 with ********"

MODULE = """
from __future__ import annotations
DOCUMENTATION = "module: count"
import os
import time
import os
from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set.holder import this_run
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.outcome import Outcome
from ansible_collections.hwaccel.gpu.plugins.module_utils._module.adapter import run_module
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError


def operation(params, context):
    step = context.resume.get("step", 0) + 1
    context.warn("a warning that every slice gives")
    patience = time.monotonic() + 60
    while step == 2 and params["seen"] and not os.path.exists(params["seen"]):
        if time.monotonic() > patience:
            raise HwaccelError("the first line was not read", "here", "it could not be read while the task ran", "flush it")
        time.sleep(0.02)
    tasks = sorted({*context.resume.get("tasks", ()), context.task})
    alive = bool(context.task) and not this_run(context.task, sliced=True).ended and context.task.split()[0] != str(os.getpid())
    values = {"step": step, "sliced": context.deadline is not None, "texts": params["texts"], "tasks": tasks, "alive": alive}
    outcome = Outcome(changed=step == 1, values=values)
    outcome.diff = [{"before": str(step - 1), "after": str(step)}] if step < 3 else []
    if params["fail_at"] == step:
        outcome.failure = HwaccelError("step failed", "here", "it was asked for", "ask for another")
    if params["crash_at"] == step:
        raise KeyError(params["secret"])
    if step < params["steps"] and context.deadline is not None:
        outcome.pending = {"step": step, "tasks": tasks}
    if context.deadline is not None:
        outcome.progress = [f"{step} of {params['steps']} with {params['secret']}"]
    return outcome


def main():
    run_module(
        {"steps": {"type": "int", "default": 3}, "fail_at": {"type": "int"}, "crash_at": {"type": "int"}, "texts": {"type": "list", "elements": "dict"},
         "secret": {"type": "str", "no_log": True, "default": "none at all"}, "seen": {"type": "str"}, "definition": {"type": "raw"}},
        operation, waits=True, cluster=False, supports_check_mode=True,
    )


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The collection with an additional module, which counts slices."""
    return collection_with(
        tmp_path_factory.mktemp("collections"),
        dict.fromkeys(("count", "manifest_set"), MODULE),
        {"count": "manifest_set"},
    )


def test_progress_is_shown_after_every_slice_and_results_are_joined(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    code, output = play(
        collections,
        tmp_path,
        """
        - hwaccel.gpu.count:
          register: result
        - ansible.builtin.copy:
            content: "{{ result | to_json }}"
            dest: "{{ playbook_dir }}/result.json"
            mode: "0600"
          diff: false
        """,
        "--diff",
    )
    assert code == 0, output
    assert [line for line in output.splitlines() if line.startswith("alpha: ")] == [
        f"alpha: {step} of 3 with ********" for step in (1, 2, 3)
    ]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["step"] == 3 and result["sliced"] and result["changed"] is True
    assert len(result["tasks"]) == 1 and result["alive"], "all slices have the same parent process, which outlives them"
    assert [entry["after"] for entry in result["diff"]] == ["1", "2"]
    assert len(result["warnings"]) == 1
    assert not {"pending", "progress", "wait_resume", "wait_task"} & (
        set(result) | set(result.get("invocation", {}).get("module_args", {}))
    )


def test_events_of_ansible_runner_contain_progress(
    collections: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ansible-runner, and so AWX, shows the output of its events as they arrive."""
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    playbook = [
        {
            "hosts": "alpha",
            "gather_facts": False,
            "connection": "local",
            "tasks": [{"hwaccel.gpu.count": {"seen": str(tmp_path / "seen")}}],
        }
    ]
    environ = {
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }

    def handle(event: dict[str, t.Any]) -> bool:
        if FIRST_LINE in event["stdout"]:
            (tmp_path / "seen").touch()
        return True

    run = ansible_runner.run(
        private_data_dir=str(tmp_path),
        playbook=playbook,
        inventory="alpha",
        envvars=environ,
        quiet=True,
        event_handler=handle,
    )
    assert run.rc == 0, run.stdout.read()
    lines = [line for event in run.events for line in event["stdout"].splitlines() if line.startswith("alpha: ")]
    assert lines == [f"alpha: {step} of 3 with ********" for step in (1, 2, 3)]


def started(folder: pathlib.Path, environ: dict[str, str], output: t.Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "-i", "alpha,", "play.yml"],
        cwd=folder,
        env=environ,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )


def lines_of(run: subprocess.Popen[str], into: pathlib.Path) -> t.Iterator[str]:
    """Lines of a file, until the run that writes it has ended."""
    ended, rest = False, ""
    with into.open() as text:
        while not ended:
            ended = run.poll() is not None
            *lines, rest = (rest + text.read()).split("\n")
            yield from lines
            time.sleep(0.02)


@pytest.mark.parametrize(("into", "strategy"), [("a pipe", "linear"), ("a file", "free")])
def test_a_line_can_be_read_while_its_task_continues(
    collections: pathlib.Path, tmp_path: pathlib.Path, into: str, strategy: str
) -> None:
    """The second slice of the task waits until the line of the first one was read."""
    environ = written(collections, tmp_path, f"- hwaccel.gpu.count:\n    seen: {tmp_path / 'seen'}\n", strategy)
    log = tmp_path / "output"
    with log.open("w") as file, started(tmp_path, environ, subprocess.PIPE if into == "a pipe" else file) as run:
        output = []
        for line in run.stdout or lines_of(run, log):
            output.append(line.rstrip("\n"))
            if output[-1] == FIRST_LINE:
                (tmp_path / "seen").touch()
    assert run.returncode == 0, "\n".join(output)
    assert FIRST_LINE in output


def test_a_run_without_a_reader_runs_to_its_end(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As in `ansible-playbook … | head`: the lines after the first have no reader."""
    environ = written(collections, tmp_path, f"- hwaccel.gpu.count:\n    seen: {tmp_path / 'seen'}\n", "linear")
    with started(tmp_path, environ, subprocess.PIPE) as run:
        assert run.stdout
        shown = any(line.rstrip("\n") == FIRST_LINE for line in run.stdout)
        run.stdout.close()
        (tmp_path / "seen").touch()
        try:
            assert shown and run.wait(60) == 0
        finally:
            run.kill()


def test_two_hosts_and_strategy_free(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, output = play(collections, tmp_path, "- hwaccel.gpu.count:\n", hosts="alpha,beta,", strategy="free")
    assert code == 0, output
    assert {"alpha: 1 of 3 with ********", "beta: 2 of 3 with ********"} <= set(output.splitlines())


def test_a_failed_slice_keeps_its_changes_and_has_a_next_step(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    code, output = play(collections, tmp_path, "- hwaccel.gpu.count: {fail_at: 2}\n", "-v")
    assert code == 2
    assert {"alpha: 1 of 3 with ********", "alpha: 2 of 3 with ********"} <= set(output.splitlines())
    assert "step failed (here): it was asked for. Next: ask for another" in output
    assert '"changed": true' in output and '"next_step": "ask for another"' in output
    assert "Traceback" not in output


@pytest.mark.parametrize("verbosity", ["-v", "-vvv"])
def test_a_bug_is_reported_in_one_line_without_secrets(
    collections: pathlib.Path, tmp_path: pathlib.Path, verbosity: str
) -> None:
    secrets = {"secret": "planted-secret-7", "definition": {"stringData": {"key": "planted-secret-8"}}}
    (tmp_path / "secrets.yml").write_text(yaml.safe_dump(secrets))
    task = "- hwaccel.gpu.count:\n    crash_at: 2\n    secret: '{{ secret }}'\n    definition: '{{ definition }}'\n"
    code, output = play(collections, tmp_path, task, verbosity, "-e", "@secrets.yml")
    assert code == 2
    assert "this is a bug in hwaccel.gpu: KeyError" in output
    assert "MODULE FAILURE" not in output
    assert "planted-secret" not in output
    assert ("Traceback" in output) == (verbosity == "-vvv")


def test_no_log_shows_no_progress(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, output = play(collections, tmp_path, "- hwaccel.gpu.count:\n  no_log: true\n")
    assert code == 0, output
    assert "alpha: 1 of 3" not in output


def test_a_background_job_runs_in_one_piece(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    code, output = play(
        collections,
        tmp_path,
        """
        - hwaccel.gpu.count:
          async: 30
          poll: 1
          register: result
        - ansible.builtin.assert:
            that: [result.step == 1, not result.sliced]
        """,
    )
    assert code == 0, output


def test_templates_and_files_reach_the_module_with_their_origin(
    collections: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "templates" / "many").mkdir(parents=True)
    (tmp_path / "templates" / "many" / "b.yml.j2").write_text("name: {{ value }}\n")
    (tmp_path / "templates" / "many" / "a.yaml").write_text("kind: {% if true %}x{% endif %}\n")
    (tmp_path / "templates" / "many" / "README.md").write_text("{{ undefined_here }}")
    (tmp_path / "plain.yml").write_text("{{ as it is }}\n")
    code, output = play(
        collections,
        tmp_path,
        """
        - hwaccel.gpu.manifest_set:
            template: many
            src: [plain.yml]
            steps: 1
          vars: {value: 'yes: it is'}
          register: result
        - ansible.builtin.copy:
            content: "{{ result.texts | to_json }}"
            dest: "{{ playbook_dir }}/texts.json"
            mode: "0600"
        """,
    )
    assert code == 0, output
    assert json.loads((tmp_path / "texts.json").read_text()) == [
        {"origin": "templates/many/a.yaml", "text": "kind: x\n"},
        {"origin": "templates/many/b.yml.j2", "text": "name: yes: it is\n"},
        {"origin": "plain.yml", "text": "{{ as it is }}\n"},
    ]


#: Task and expected message by host.
UNREADABLE = {
    "nowhere": ("template: nowhere.yml", "template 'nowhere.yml' does not exist"),
    "no-path": ("template: {path: x}", "template is a path or a list of paths"),
    "broken": ("template: broken.yml.j2", "cannot be rendered"),
    "empty": ("src: empty", "has no file that ends in"),
}


def test_unreadable_sources_are_reported_without_a_traceback(collections: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "broken.yml.j2").write_text("{{ not_defined_anywhere }}")
    (tmp_path / "empty").mkdir()
    tasks = "".join(
        f"- hwaccel.gpu.manifest_set:\n    {task}\n  when: inventory_hostname == '{host}'\n"
        for host, (task, _message) in UNREADABLE.items()
    )
    code, output = play(collections, tmp_path, tasks, "-v", hosts=f"{','.join(UNREADABLE)},")
    assert code == 2
    text = " ".join(output.split())
    assert [
        host
        for host, (_task, expected) in UNREADABLE.items()
        if f"fatal: [{host}]: FAILED!" not in text or expected not in text
    ] == []
    assert "Traceback" not in output and "MODULE FAILURE" not in output
