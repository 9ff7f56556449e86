# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs of jobs, and kept results of the parts of make soak."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
from types import ModuleType

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
TOP = TOOLS.parents[1]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return __import__


@pytest.fixture
def changed(load) -> ModuleType:
    return load("changed")


def everything(load) -> list[str]:
    tree = load("tree")
    return sorted(tree.listing(TOP, tree.patterns()))


def test_every_file_has_jobs_and_every_job_has_files(load, changed: ModuleType) -> None:
    files = everything(load)
    assert len(files) > 900
    unknown = [
        path for path in files if changed.row(path) is None and not any(changed.runs(job, path) for job in changed.JOBS)
    ]
    assert unknown == [], "Next: add a row to tests/tools/changed.py"
    reached = set().union(*(changed.touched(path) for path in files))
    assert reached == set(changed.ALL), "jobs that no change starts, or unknown names of jobs"
    assert [
        pattern
        for pattern, _jobs in changed.ROWS
        if not any(changed.fnmatch.fnmatchcase(path, pattern) for path in files)
    ] == []


@pytest.mark.parametrize(
    ("path", "within", "without"),
    [
        (
            "plugins/plugin_utils/machines/boot/redfish.py",
            {"power", "mypy", "ruff", "unit core-2.16"},
            {"live parts", "real node"},
        ),
        ("roles/driver/tasks/main.yml", {"live parts", "ansible-lint", "molecule"}, {"power", "ruff"}),
        (
            "tests/live/test_mutations.py",
            {"live mutations"},
            {"live faults", "live parts", "mypy"},
        ),
        ("tests/live/test_new.py", {"live parts"}, {"live runs", "live faults"}),
        ("tests/live/test_drain.py", {"live parts", "real machines", "node runtimes"}, {"real node", "power"}),
        ("tests/node/test_gates.py", {"real node", "node stack"}, {"real machines"}),
        ("docs/gates.md", {"unit core-2.16"}, {"live parts", "ruff", "node stack"}),
        ("unknown/file.type", {"live parts", "power", "ruff", "bench"}, set()),
    ],
)
def test_a_change_starts_the_jobs_that_depend_on_it(
    changed: ModuleType, path: str, within: set[str], without: set[str]
) -> None:
    found = changed.touched(path)
    assert within <= found
    assert not without & found


@pytest.fixture
def history(changed: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """A clone with a commit of its own, uncommitted changes, and one new file."""
    monkeypatch.setattr(changed.environments, "ROOT", tmp_path / "clone")
    run(tmp_path, "init", "-q", "-b", "main", "hub")
    (tmp_path / "hub" / "first").write_text("1")
    commit(tmp_path / "hub")
    run(tmp_path, "clone", "-q", "hub", "clone")
    for name in ("committed", "edited"):
        (tmp_path / "clone" / name).write_text("1")
    commit(tmp_path / "clone")
    (tmp_path / "clone" / "edited").write_text("2")
    (tmp_path / "clone" / "new").write_text("1")
    return tmp_path / "clone"


def run(place: pathlib.Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=me", "-c", "user.email=me@example.com", *arguments], cwd=place, check=True)


def commit(place: pathlib.Path) -> None:
    run(place, "add", ".")
    run(place, "commit", "-q", "-m", "one")


def test_committed_and_uncommitted_changes_differ_from_the_base(changed: ModuleType, history: pathlib.Path) -> None:
    assert changed.files("") == ["committed", "edited", "new"]
    assert changed.files("HEAD") == ["edited", "new"]
    run(history, "push", "-q", "origin", "HEAD:refs/heads/other")
    run(history, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert changed.files("") == ["committed", "edited", "new"], (
        "the commit is pushed, so the previous commit is the base"
    )


@pytest.fixture
def soak(load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> ModuleType:
    """soak.py with two parts: one depends on the role driver, the other on the role load_balancer."""
    module = load("soak")
    for name in ("roles/driver/tasks/main.yml", "roles/load_balancer/tasks/main.yml", "docs/gates.md"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True)
        path.write_text("---\n") if not path.exists() else None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module.environments, "TREE", tmp_path / "tree")
    monkeypatch.setattr(module.environments, "ROOT", tmp_path)
    monkeypatch.setattr(module.check, "LOGS", tmp_path)
    monkeypatch.setattr(module.check.costs, "budgets", dict)
    monkeypatch.setattr(
        module, "SOAK", tuple(part for part in module.SOAK if part.name in ("live faults", "boot balancers"))
    )
    return module


LOG = """.. [100%]
==================================== PASSES ====================================
____________________________ test_site_over_a_faulty_connection __________________________
----------------------------- Captured stdout call -----------------------------
3 runs; 41 requests were disturbed
----------------------------- Captured stderr call -----------------------------
noise
=========================== short test summary info ============================
PASSED tests/live/test_disturbed.py
2 passed in 99.00s (0:01:39)
"""


def done(soak: ModuleType, name: str, **counts: int) -> None:
    (part,) = soak.chosen(name)
    soak.check.log_of(part.name).write_text(LOG)
    soak.Runner((part,)).done(part, soak.check.Result(counts, 99.0))


def test_a_result_is_kept_until_an_input_of_its_part_changes(soak: ModuleType) -> None:
    faults, balancers = soak.SOAK
    assert soak.chosen("") == (faults, balancers)
    done(soak, "live-faults", passed=2)
    done(soak, "boot balancers", passed=2)
    assert soak.chosen("") == ()
    (soak.environments.TREE / "docs" / "gates.md").write_text("other words")
    assert soak.chosen("") == ()
    (soak.environments.TREE / "roles" / "driver" / "tasks" / "main.yml").write_text("- changed\n")
    assert soak.chosen("") == (faults,)
    assert [soak.state(part, soak.kept(part)) for part in soak.SOAK] == ["stale", "holds"]


def test_recorded_results_hold_with_another_cache(
    soak: ModuleType, changed: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for file in changed.RECORD:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        assert changed.touched(file) == set()
    done(soak, "live-faults", passed=2)
    soak.write_record(soak.SOAK)
    assert "3 runs; 41 requests were disturbed" in (tmp_path / "docs" / "soak.md").read_text()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert [part.name for part in soak.chosen("")] == ["boot balancers"]
    (soak.environments.TREE / "roles" / "driver" / "tasks" / "main.yml").write_text("- changed\n")
    done(soak, "live faults", passed=2)
    (soak.environments.TREE / "roles" / "driver" / "tasks" / "main.yml").write_text("---\n")
    assert soak.state(soak.SOAK[0], soak.kept(soak.SOAK[0])) == "holds", (
        "a newer result of other content does not replace it"
    )
    done(soak, "live faults", passed=1, failed=1)
    assert soak.state(soak.SOAK[0], soak.kept(soak.SOAK[0])) == "failed", "though the same content has passed before"


def test_a_page_shows_what_a_part_measured(
    soak: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(soak, "SHOWN", {"live faults": "docs/faults.md"})
    page = tmp_path / "docs" / "faults.md"
    for place in (page, tmp_path / soak.changed.RECORD[0]):
        place.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"# Faults\n\n{soak.BEGIN}\nold\n{soak.END}\n\nmore\n")
    done(soak, "live-faults", passed=2)
    soak.write_record(soak.SOAK)
    shown = f"# Faults\n\n{soak.BEGIN}\n\n```\n3 runs; 41 requests were disturbed\n```\n\n{soak.END}\n\nmore\n"
    assert page.read_text() == shown
    done(soak, "live faults", passed=1, failed=1)
    soak.write_record(soak.SOAK)
    assert page.read_text() == shown, "a failed part has measured nothing"


def test_a_part_that_failed_runs_again(soak: ModuleType) -> None:
    done(soak, "live faults", passed=2, failed=1)
    assert [part.name for part in soak.chosen("")] == ["live faults", "boot balancers"]
    assert soak.state(soak.SOAK[0], soak.kept(soak.SOAK[0])) == "failed"


def test_a_record_has_no_address_of_a_rig(soak: ModuleType) -> None:
    """test_policies.py refuses it, and so the record could not be committed."""
    fields = dict.fromkeys(("part", "content", "commit", "date", "counts"), "")
    address = ".".join(("10", "99", "0", "11"))
    line = f"could not connect to https://{address}:6443/version of {address}"
    read = soak.read({**fields, "passed": True, "seconds": 1.0, "figure": [line]})
    assert read.figure == (f"could not connect to https://…/version of {address}",)


def test_the_table_shows_what_was_measured(soak: ModuleType) -> None:
    done(soak, "live faults", passed=2)
    heads, faults, figure, balancers = soak.table(soak.SOAK).splitlines()
    assert heads.split() == ["part", "commit", "date", "(UTC)", "result", "took", "holds"]
    assert faults.startswith("live faults") and faults.endswith("2 passed  2 min  holds")
    assert figure.strip() == "3 runs; 41 requests were disturbed"
    assert balancers.split() == ["boot", "balancers", "no", "result"]


def test_a_part_that_was_stopped_has_no_result(soak: ModuleType) -> None:
    soak.check.STOPPED.set()
    try:
        done(soak, "live faults", failed=1)
    finally:
        soak.check.STOPPED.clear()
    assert soak.kept(soak.SOAK[0]) is None


def test_a_part_whose_inputs_changed_while_it_ran_has_no_result(
    soak: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    faults, _balancers = soak.SOAK
    soak.check.log_of(faults.name).write_text(LOG)
    runner = soak.Runner((faults,))
    (soak.environments.TREE / "roles" / "driver" / "tasks" / "main.yml").write_text("- changed\n")
    runner.done(faults, soak.check.Result({"passed": 2}, 99.0))
    assert soak.kept(faults) is None
    assert "not kept: inputs of live faults changed while it ran" in capsys.readouterr().out


def test_no_part_is_longer_than_an_hour_and_none_needs_another(load) -> None:
    jobs = load("jobs")
    prepared = {job.name for job in jobs.SUITES["soak"]} - {part.name for part in jobs.SOAK}
    assert all(part.limit <= 3600 and set(part.after) <= prepared for part in jobs.SOAK)


def test_every_part_has_slow_tests_and_every_slow_test_a_part(load) -> None:
    """pytest that selects none fails, after minutes of preparation."""
    slow = [
        path.relative_to(TOP)
        for folder in ("live", "node", "boot", "openshift/machines")
        for path in sorted((TOP / "tests" / folder).glob("test_*.py"))
        if "mark.slow" in path.read_text(encoding="utf-8")
    ]
    assert len(slow) > 20
    parts = {
        part.name: [word for word in part.command if word.startswith(("tests/", "--ignore"))]
        for part in load("jobs").SOAK
    }
    taken: dict[str, list[pathlib.Path]] = {}
    for name, words in parts.items():
        without = [word.partition("=")[2] for word in words if word.startswith("--ignore")]
        taken[name] = [
            path
            for path in slow
            if str(path) not in without
            and any(
                path.is_relative_to(word)
                for word in words
                if word.startswith(("tests/live", "tests/node", "tests/boot", "tests/openshift"))
            )
        ]
    # Tests of make test, again and again, have no slow ones.
    of_folders = {
        name
        for name in parts
        if name.startswith(("live", "node", "boot", "machines")) and not name.endswith((" bring-ups", " five"))
    }
    assert {name for name in of_folders if not taken[name]} == set()
    assert set().union(*taken.values()) == set(slow)


def test_every_part_can_be_named_without_spaces(load) -> None:
    soak = load("soak")
    assert [soak.chosen(part.name.replace(" ", "-")) for part in soak.SOAK] == [(part,) for part in soak.SOAK]


def test_an_unknown_part_is_reported_with_all_names(soak: ModuleType) -> None:
    with pytest.raises(ValueError, match="no part everything; there are live faults, boot balancers"):
        soak.chosen("everything")


@pytest.fixture
def loaded(tmp_path: pathlib.Path) -> subprocess.Popen[str]:
    """The script `loaded` with a make that waits for its exit status."""
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text('#!/bin/sh\necho runs\nread -r status <"$FIFO"\nexit "$status"\n')
    make.chmod(0o755)
    (tmp_path / "tree").mkdir()
    (tmp_path / "copies").mkdir()
    os.mkfifo(tmp_path / "fifo")
    given = os.environ | {
        "PATH": f"{make.parent}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path / "copies"),
        "FIFO": str(tmp_path / "fifo"),
    }
    return subprocess.Popen(
        [TOOLS / "loaded"], cwd=tmp_path / "tree", env=given, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def of_session(leader: int) -> list[str]:
    """Command lines of the running processes of a session. A process that has ended has none."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[3]) == leader:
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [line for line in found if line]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_loaded_run_has_two_busy_loops_and_leaves_no_process(
    loaded: subprocess.Popen[str], tmp_path: pathlib.Path, stopped: bool
) -> None:
    assert loaded.stdout
    assert loaded.stdout.readline() == "runs\n"
    while len([line for line in of_session(loaded.pid) if line.startswith("sh -c while :; do :; done")]) < 2:
        assert loaded.poll() is None
    if stopped:
        os.killpg(loaded.pid, signal.SIGTERM)
    else:
        (tmp_path / "fifo").write_text("3\n")
    assert loaded.wait(60) == (143 if stopped else 3)
    loaded.stdout.close()
    assert of_session(loaded.pid) == []
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_record_names_failed_tests_and_no_folder_of_the_machine(soak: ModuleType) -> None:
    home = pathlib.Path.home()
    log = f"E assert 1 == 2\nFAILED tests/live/test_x.py::test_y - at {home}/x\nwritten to {home}/.cache/y.json\n"
    assert soak.figures(log, False) == ("FAILED tests/live/test_x.py::test_y - at ~/x",)
    assert "written to ~/.cache/y.json" in soak.figures(log, True)
    assert soak.figures(f"Origin: {soak.environments.ROOT}/playbooks/site.yml:1", True) == (
        "Origin: ./playbooks/site.yml:1",
    )
