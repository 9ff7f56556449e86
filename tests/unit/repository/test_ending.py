# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on servers that are ended from outside."""

from __future__ import annotations

import collections.abc as c
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support import ending

#: Threads wait for runs, in sessions of their own; the fixture that closes waits for the threads.
TESTS = """
import concurrent.futures, os, subprocess
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm, started_by_these
interrupted_by_sigterm()

def run():
    with subprocess.Popen(["sleep", "600"], env=os.environ | started_by_these(), start_new_session=True) as sleeping:
        print(sleeping.pid, flush=True)

def runs():
    for _ in range(3):
        run()

with concurrent.futures.ThreadPoolExecutor(1) as pool:
    try:
        # Within: the first run can have told of itself before this thread goes on.
        pool.submit(runs).result()
    finally:
        print("put away", flush=True)
"""


@contextlib.contextmanager
def sleeping(**more: str) -> c.Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], env=dict(os.environ) | more) as process:
        try:
            yield process
        finally:
            process.kill()


def test_runs_of_threads_go_before_fixtures_wait_for_them_and_no_other_is_started() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TESTS], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as tests:
        assert tests.stdout
        pid = int(tests.stdout.readline())
        try:
            tests.terminate()
            told, _nothing = tests.communicate(timeout=60)
        finally:
            tests.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert told.splitlines() == ["put away"]
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_a_process_that_is_just_being_started_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment and arguments are empty for a moment, in which its starter may run already."""
    with sleeping(HWACCEL_OF_THIS_TEST="1") as process, sleeping() as other:
        read, looks = ending._read, []

        def read_as_it_starts(folder: pathlib.Path, name: str) -> bytes:
            if folder.name == str(process.pid) and name in ("environ", "cmdline"):
                looks.append(name)
                if len(looks) <= 4:
                    return b""
            return read(folder, name)

        monkeypatch.setattr(ending, "_read", read_as_it_starts)
        ending.kill_with("HWACCEL_OF_THIS_TEST=1")
        assert process.wait(timeout=60) == -signal.SIGKILL
        assert other.poll() is None


def test_one_that_never_has_an_environment_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping(HWACCEL_OF_THIS_TEST="1") as process:
        read = ending._read
        monkeypatch.setattr(
            ending,
            "_read",
            lambda folder, name: b"" if folder.name == str(process.pid) and name != "stat" else read(folder, name),
        )
        monkeypatch.setattr(ending, "_EXEC", 0.1)
        ending.kill_with("HWACCEL_OF_THIS_TEST=1")
        assert process.poll() is None
