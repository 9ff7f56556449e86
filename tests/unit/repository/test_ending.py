# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests on servers that are ended from outside."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

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
    done = pool.submit(runs)
    try:
        done.result()
    finally:
        print("put away", flush=True)
"""


def test_runs_of_threads_go_before_fixtures_wait_for_them_and_no_other_is_started() -> None:
    with subprocess.Popen([sys.executable, "-c", TESTS], stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as tests:
        assert tests.stdout
        pid = int(tests.stdout.readline())
        began = time.monotonic()
        tests.terminate()
        told, _nothing = tests.communicate(timeout=60)
    assert told.splitlines() == ["put away"]
    assert time.monotonic() - began < 60
    assert not pathlib.Path(f"/proc/{pid}").exists()
