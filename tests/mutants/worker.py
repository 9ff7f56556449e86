# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tests in a copy of the tree. Each request runs in a new process, in which pytest is already loaded.

A request is a line of JSON on standard input, its answer a line on standard output. No module of the collection is imported here, so that a run
reads the present source. Processes that tests leave behind are killed at the end of a run, because orphans become children of this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import io
import json
import os
import pathlib
import signal
import sys
import time
import traceback
from collections.abc import Iterator

import pytest

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SOURCE = "plugins"
#: Hypothesis uses the same examples in each run. Modules that are loaded before pytest contain no tests, and need no rewriting of assertions.
ARGUMENTS = ("-q", "--hypothesis-seed=0", "-m", "not slow", "-W", "ignore::pytest.PytestAssertRewriteWarning")

# This import is done once, before the first request.
importlib.import_module("hypothesis")


class Only:
    """Runs the selected tests in their order, and ends the process by a timer signal if a test exceeds its limit."""

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {name: number for number, name in enumerate(self.limits)}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_REAL, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (import)"


class Recorder:
    """Records which test runs which line, with its function fixtures. Lines in fixtures with other scopes are recorded as shared."""

    def __init__(self) -> None:
        # Only this class requires coverage, so that tests of mutants run in any environment for tests.
        import coverage

        self.coverage = coverage.Coverage(data_file=None, include=[f"{os.getcwd()}/{SOURCE}/*"], config_file=False)
        self.seconds: dict[str, float] = {}
        self.passed: dict[str, bool] = {}
        self.now = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        started, self.now = time.monotonic(), item.nodeid
        self.coverage.switch_context(self.now)
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - started

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[object]:
        self.coverage.switch_context("shared" if fixturedef.scope != "function" else self.now)
        try:
            return (yield)
        finally:
            self.coverage.switch_context(self.now)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed[report.nodeid] = self.passed.get(report.nodeid, True) and not report.failed

    def answer(self) -> dict:
        data = self.coverage.get_data()
        lines: dict[str, dict[int, list[str]]] = {}
        other: dict[str, dict[str, list[int]]] = {"": {}, "shared": {}}
        for file in data.measured_files():
            path = os.path.relpath(file)
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    if context in other:
                        other[context].setdefault(path, []).append(line)
                    else:
                        lines.setdefault(path, {}).setdefault(line, []).append(context)
        failed = sorted(name for name, passed in self.passed.items() if not passed)
        seconds = {name: round(seconds, 3) for name, seconds in self.seconds.items() if name not in failed}
        return {"seconds": seconds, "lines": lines, "imported": other[""], "shared": other["shared"], "failed": failed}


def run(request: dict, temporary: str) -> dict:
    """Runs in the process of the request. temporary: a folder for the tests, which the next run empties."""
    common = [*ARGUMENTS, "--basetemp", temporary]
    if "record" in request:
        recorder = Recorder()
        recorder.coverage.start()
        status = pytest.main([*common, request["record"]], plugins=[recorder])
        recorder.coverage.stop()
        answer = recorder.answer()
        return answer | {"failed": [*answer["failed"], request["record"]]} if status not in (0, 1, 5) else answer
    only = Only(request["limits"])
    files = dict.fromkeys(name.split("::", 1)[0] for name in request["limits"])
    status = pytest.main([*common, "-x", *files], plugins=[only])
    # Status 5 means that no tests were collected. The failed import of a conftest.py is reported by the status only.
    return {"failed": only.failed or (f"pytest ended with status {status}" if status not in (0, 5) else "")}


def answered(request: dict, answer: pathlib.Path) -> dict:
    """The answer of a new process, which has ended with all processes that it started."""
    answer.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        # The child ends by os._exit, so that exit handlers of the parent do not run.
        try:
            os.setsid()
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with (
                open(os.devnull, "w", encoding="utf-8") as nowhere,
                contextlib.redirect_stdout(nowhere),
                contextlib.redirect_stderr(nowhere),
            ):
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
                answer.write_text(json.dumps(run(request, f"{answer}.tmp")), encoding="utf-8")
        except Exception:
            answer.write_text(json.dumps({"error": traceback.format_exc()}), encoding="utf-8")
        finally:
            os._exit(0)
    ended = _wait(child, request["limit"])
    end_children()
    if not ended:
        return {"timeout": True}
    if answer.exists():
        return json.loads(answer.read_text(encoding="utf-8"))
    return {"timeout": True} if ended == signal.SIGALRM else {"failed": f"ended by signal {ended}"}


def _wait(child: int, limit: float) -> int | None:
    """The signal that has ended the child, 0x100 for none, None after the limit."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0x100
        time.sleep(0.02)
    return None


def end_children() -> None:
    """Kills all children until there are none, because children of a killed process become children of this one."""
    me = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while children := me.read_text(encoding="ascii").split():
        for child in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _stop(_number: int, _frame: object) -> None:
    end_children()
    os._exit(143)


def main() -> None:
    answer = pathlib.Path(sys.argv[1])
    signal.signal(signal.SIGTERM, _stop)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Tests must not import modules from the folder of this file.
    sys.path.pop(0)
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--version"])
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line), answer)), flush=True)


if __name__ == "__main__":
    main()
