# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Costs of jobs: how they are measured, that no process outlives its job, and how the runner uses them."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import typing as t
from types import ModuleType

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
#: A daemon like those of control planes and containers: it has its own session, is re-parented, writes its process ID to the given file and ignores SIGTERM.
DAEMON = """
import os, pathlib, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        began = time.process_time()
        while time.process_time() - began < float(sys.argv[2]):
            pass
        pathlib.Path(sys.argv[1] + ".new").write_text(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(600)
    os._exit(0)
os.wait()
"""
#: Runs check.py with one job, which starts that daemon and waits.
RUNNER = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import check, environments, jobs, settings
place, daemon = pathlib.Path(sys.argv[2]), sys.argv[3]
check.LOGS, check.costs.MEASURED, environments.TREE, settings.INSTANCES = place, place / "costs.json", place, place / "none"
environments.ensure = lambda profile: place
command = (sys.executable, "-c", daemon + "import time; time.sleep(600)", str(place / "daemon"), "0")
check.SUITES["lint"] = (jobs.Job("one", "dev", command),)
sys.argv = ["check.py", "lint"]
sys.exit(check.main())
"""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return __import__


def ended(pid: int) -> bool:
    """Whether the process has ended. A zombie that the init process has not reaped yet counts as ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def until(done: t.Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"no sign of {what} after {seconds} s"
        time.sleep(0.05)


def test_a_daemon_counts_toward_its_job_and_is_stopped_with_it(tmp_path: pathlib.Path) -> None:
    number, report = tmp_path / "daemon", tmp_path / "report"
    program = f"{DAEMON}\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)\nsys.exit(3)"
    done = subprocess.run(
        [sys.executable, str(TOOLS / "reaper.py"), str(report), sys.executable, "-c", program, str(number), "0.5"],
        check=False,
    )
    assert done.returncode == 3, "the job's own status"
    assert ended(int(number.read_text()))
    written = json.loads(report.read_text())
    assert written["cpu"] > 0.5
    assert [str(number) in line for line in written["left"]] == [True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_runner_leaves_no_process(tmp_path: pathlib.Path, number: signal.Signals) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(TOOLS), str(tmp_path), DAEMON], stdout=subprocess.PIPE, text=True
    )
    until((tmp_path / "daemon").exists, "the job's daemon")
    daemon = int((tmp_path / "daemon").read_text())
    assert not ended(daemon)
    runner.send_signal(number)
    output, _none = runner.communicate(timeout=60)
    until(lambda: ended(daemon), "the end of the daemon")
    assert number == signal.SIGKILL or ("stopped" in output and runner.returncode == 1)


def test_a_command_that_a_signal_stops_has_failed(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TOOLS / "reaper.py"), str(tmp_path / "report"), "sh", "-c", "kill -9 $$"], check=False
    )
    assert done.returncode == 128 + signal.SIGKILL


#: Each of two tests needs half a second: in a process that it waits for, and in one that goes on, whose parent has ended.
BUSY = r"""
import subprocess, sys, time
BURN = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < 0.5: pass\n"
def test_waits(): subprocess.run([sys.executable, "-c", BURN], check=True)
def test_leaves(tmp_path):
    left = f"{BURN}open({str(tmp_path / 'done')!r}, 'w').close()\ntime.sleep(600)"
    subprocess.run(["setsid", "-f", sys.executable, "-c", left], check=True)
    while not (tmp_path / "done").exists(): time.sleep(0.05)
def test_sleeps(): time.sleep(1)
"""


def test_the_processor_time_of_a_test_is_that_of_all_that_it_starts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "test_busy.py").write_text(BUSY)
    plugin = TOOLS.joinpath("expensive.py").read_text().replace("LISTED, LEAST = 40, 3.0", "LISTED, LEAST = 40, 0.4")
    (tmp_path / "expensive.py").write_text(plugin)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "expensive", "-p", "no:cacheprovider", "test_busy.py"]
    # Below reaper.py, as in a job: orphans are its children.
    done = subprocess.run(
        [sys.executable, str(TOOLS / "reaper.py"), str(tmp_path / "report"), *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    _head, _line, listed = done.stdout.partition("most processor time (of ")
    assert sorted(re.findall(r"s  test_busy.py::(\w+)", listed)) == ["test_leaves", "test_waits"], done.stdout


def test_every_job_has_a_reason_and_the_page_lists_the_budgets(load) -> None:
    costs: ModuleType = load("costs")
    names = {job.name for job in costs.SUITES["all"]}
    assert set(costs.FINDS) == names
    assert set(costs.budgets()) <= names, "there are budgets of removed jobs. Next: make costs"
    page = (costs.environments.ROOT / costs.PAGE).read_text(encoding="utf-8")
    assert costs.page(page, costs.table(costs.SUITES["all"], costs.budgets())) == page, "Next: make costs"


def test_a_job_over_its_budget_by_half_is_reported(load) -> None:
    costs = load("costs")
    known = {"a": {"cpu": 100, "wall": 60}, "b": {"cpu": 100, "wall": 60}, "c": {"cpu": None, "wall": 60}}
    measured = {
        "a": {"cpu": 151.0, "wall": 90.0},
        "b": {"cpu": 150.0, "wall": 60.0},
        "c": {"cpu": 900.0, "wall": 60.0},
        "new": {"cpu": 1.0, "wall": 1.0},
    }
    (warning,) = costs.over(measured, known)
    assert warning.startswith("warning: a is over its budget by half: 151 s CPU, budget 100 s. Next:")
    assert costs.over(measured, known, 1.1) == [], "the machine is slower"
    assert len(costs.over(measured, known, 0.9)) == 2


def test_the_pace_is_compared_with_that_of_the_budgets(
    load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    costs, pace = load("costs"), load("pace")
    taken = iter([0.5, 0.4, 0.6, 0.4, 0.7, 0.5, 0.9])
    monkeypatch.setattr(pace, "once", lambda: next(taken))
    monkeypatch.setattr(costs.environments, "ROOT", tmp_path)
    (tmp_path / costs.BUDGETS).parent.mkdir(parents=True)
    (tmp_path / costs.BUDGETS).write_text('{"pace": 0.2, "jobs": {}}')
    assert costs.slower(pace.seconds()) == 2


def test_measured_costs_become_the_budgets(load, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    costs = load("costs")
    for place in (costs.BUDGETS, costs.PAGE):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / costs.BUDGETS).write_text(
        '{"pace": 0.2, "jobs": {"ruff": {"cpu": 10, "wall": 10}, "renamed": {"cpu": 10, "wall": 10}}}'
    )
    (tmp_path / costs.PAGE).write_text(f"before\n{costs.BEGIN}\nold\n{costs.END}\nafter\n")
    (tmp_path / "measured").write_text('{"pace": 0.31234, "jobs": {"mypy": {"cpu": 10.2, "wall": 31.0}}}')
    monkeypatch.setattr(costs.environments, "ROOT", tmp_path)
    monkeypatch.setattr(costs, "MEASURED", tmp_path / "measured")
    assert costs.main() == 0
    jobs = {"mypy": {"cpu": 20, "wall": 40}, "ruff": {"cpu": 10, "wall": 10}}
    assert json.loads((tmp_path / costs.BUDGETS).read_text()) == {"pace": 0.312, "jobs": jobs}
    lines = (tmp_path / costs.PAGE).read_text().splitlines()
    assert lines[5].startswith("| mypy | 20 s | 40 s | ")
    assert lines[6].startswith("| ruff | 10 s | 10 s | ")
    assert lines[7].startswith("| control plane | not measured | not measured | ")
    assert (lines[0], lines[-1]) == ("before", "after")


def test_the_longest_chain_starts_first_and_has_a_free_slot(load, monkeypatch: pytest.MonkeyPatch) -> None:
    check, jobs = load("check"), load("jobs")
    monkeypatch.setattr(
        check.costs, "budgets", lambda: {name: {"cpu": None, "wall": wall} for name, wall in WALLS.items()}
    )
    suite = (
        jobs.Job("lint", "dev", ()),
        jobs.Job("node", "dev", ()),
        jobs.Job("live", "dev", (), ("built",)),
        jobs.Job("more", "dev", (), ("built",)),
        jobs.Job("built", "dev", (), heavy=True),
    )
    runner = check.Runner(suite, 3)
    assert [job.name for job in runner.waiting] == ["built", "node", "live", "more", "lint"]
    started: list[str] = []

    class Pool:
        def submit(self, _run: object, job: object) -> str:
            started.append(job.name)
            return job.name

    runner.start(Pool())
    assert started == ["built", "node"], "one slot each for live and more, which are longer than lint"
    runner.running.pop("built")
    runner.results["built"] = check.Result({"passed": 1})
    runner.start(Pool())
    assert started == ["built", "node", "live", "more"]


WALLS = {"lint": 50, "node": 800, "live": 600, "more": 300, "built": 300}


def test_busy_cores_are_not_idle(load) -> None:
    check = load("check")
    before = check.processor_seconds()
    began = time.process_time()
    while time.process_time() - began < 0.3:
        pass
    after = check.processor_seconds()
    assert (after.total - after.idle - after.stolen) - (before.total - before.idle - before.stolen) > 0.2


def test_limits_follow_from_the_pace_of_the_machine_and_are_never_shorter(load) -> None:
    check, jobs = load("check"), load("jobs")
    given = (jobs.Job("one", "dev", (), limit=100), jobs.Job("two", "dev", (), limit=40))
    assert [job.limit for job in check.paced(given, 1.63)] == [163, 65]
    assert check.paced(given, 0.9) == given
