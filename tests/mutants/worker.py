# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tests in a copy of the tree, each request in a process of its own that starts with pytest already loaded.

A request is a line of JSON on standard input, its answer one on standard output. Nothing of the collection is imported here: a run reads the
source as it is then. What tests have started and left is ended with the run: whoever loses its parent becomes a child of this process.
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
SOURCE = "plugins/module_utils"
#: Odd examples are the same ones in each run; what is loaded before pytest begins is no test, and needs no rewriting.
ARGUMENTS = ("-q", "--hypothesis-seed=0", "-m", "not slow", "-W", "ignore::pytest.PytestAssertRewriteWarning")

# Once, before the first request.
importlib.import_module("hypothesis")


class Only:
    """Runs the chosen tests in their order, and ends the process with the signal of a clock where one lasts too long."""

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
    """Which test runs which line, fixtures of its own counted in; what a fixture of several runs is said to be shared."""

    def __init__(self) -> None:
        # Only who records needs it: what meets mutants runs in any environment that has tests.
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
    """In the process of the request; temporary: a folder of the tests' own, emptied by the next run."""
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
    # Who finds none of its tests has judged nothing; a conftest.py that cannot be imported is told by its status only.
    return {"failed": only.failed or (f"pytest ended with status {status}" if status not in (0, 5) else "")}


def answered(request: dict, answer: pathlib.Path) -> dict:
    """The answer of a process of its own, which has ended with all that it started."""
    answer.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        # Nobody runs what the parent has left for its own end.
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
    """The signal that has ended the child, 0x100 for none, None where the time was over."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0x100
        time.sleep(0.02)
    return None


def end_children() -> None:
    """Until there is none: an ended child leaves us its own."""
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
    # This file's folder is no place of modules for the tests.
    sys.path.pop(0)
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--version"])
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line), answer)), flush=True)


if __name__ == "__main__":
    main()
