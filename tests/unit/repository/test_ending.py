# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on servers that are stopped from outside."""

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

#: Threads wait for runs, which have their own sessions; the fixture that closes waits for the threads.
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
        # The wait is inside the block, because the first run can print before this thread continues.
        pool.submit(runs).result()
    finally:
        print("fixture closed", flush=True)
"""


@contextlib.contextmanager
def sleeping(**more: str) -> c.Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], env=dict(os.environ) | more) as process:
        try:
            yield process
        finally:
            process.kill()


def test_runs_are_stopped_before_fixtures_wait_for_their_threads_and_no_other_run_starts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TESTS], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as tests:
        assert tests.stdout
        pid = int(tests.stdout.readline())
        try:
            tests.terminate()
            output, _nothing = tests.communicate(timeout=60)
        finally:
            tests.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert output.splitlines() == ["fixture closed"]
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_a_starting_process_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment and arguments are empty for a moment, while the process that started it already continues."""
    with sleeping(HWACCEL_OF_THIS_TEST="1") as process, sleeping() as other:
        read, reads = ending._read, []

        def read_as_it_starts(folder: pathlib.Path, name: str) -> bytes:
            if folder.name == str(process.pid) and name in ("environ", "cmdline"):
                reads.append(name)
                if len(reads) <= 4:
                    return b""
            return read(folder, name)

        monkeypatch.setattr(ending, "_read", read_as_it_starts)
        ending.kill_with("HWACCEL_OF_THIS_TEST=1")
        assert process.wait(timeout=60) == -signal.SIGKILL
        assert other.poll() is None


def test_the_wait_for_a_process_without_environment_has_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
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
