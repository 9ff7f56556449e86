# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process is identified by more than its ID, and a job is found again by a later run."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.jobs import Job


def command(folder: pathlib.Path, *argv: str) -> process.Command:
    return process.Command("sleeper", argv or ("/bin/sleep", "60"), {"PATH": "/usr/bin:/bin"}, folder)


def test_a_process_is_started_identified_and_stopped(tmp_path: pathlib.Path) -> None:
    started = process.start(command(tmp_path), tmp_path / "log", tmp_path / "pid")
    assert process.known(tmp_path / "pid") == started
    assert process.running(started)
    assert os.getsid(started.pid) == started.pid
    process.stop([started], 5)
    assert not process.running(started)


def test_a_reused_process_id_is_another_process(tmp_path: pathlib.Path) -> None:
    ours = os.getpid()
    recycled = process.Known(ours, process.identity(ours).replace(":", ":9"), "")
    assert not process.running(recycled)
    process.stop([recycled], 1)
    assert process.identity(ours)


def test_a_zombie_does_not_run() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        deadline = time.monotonic() + 240
        while process.identity(child.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.identity(child.pid) == ""


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: pathlib.Path) -> None:
    script = "trap '' TERM; echo ready; while true; do sleep 0.1; done"
    started = process.start(command(tmp_path, "/bin/sh", "-c", script), tmp_path / "log", tmp_path / "pid")
    while "ready" not in (tmp_path / "log").read_text(encoding="utf-8"):
        time.sleep(0.01)
    process.stop([started], 0.3)
    assert not process.running(started)


def test_a_missing_program_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(HwaccelError, match="sleeper cannot be started"):
        process.start(command(tmp_path, str(tmp_path / "nothing")), tmp_path / "log", tmp_path / "pid")


def test_stray_processes_are_found_by_their_log_files(tmp_path: pathlib.Path) -> None:
    log, other = tmp_path / "log", tmp_path / "log2"
    processes = [
        process.start(command(tmp_path), log, tmp_path / "pid"),
        process.start(command(tmp_path), other, tmp_path / "pid2"),
    ]
    with log.open("rb") as file, subprocess.Popen(["/bin/sleep", "60"], stdin=file) as reader, log.open("ab"):
        try:
            assert [one.pid for one in process.strays([log])] == [processes[0].pid]
            log.unlink()
            assert [one.pid for one in process.strays([log])] == [processes[0].pid]
        finally:
            process.stop(processes, 0)
            reader.kill()


_KILLED_AT_EXECVE = """
import functools, os, pathlib, signal, subprocess, sys, time
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process
folder = pathlib.Path(sys.argv[1])
def wait():
    os.kill(os.getppid(), signal.SIGKILL)
    (folder / "forked").write_text(str(os.getpid()))
    time.sleep(60)
subprocess.Popen = functools.partial(subprocess.Popen, preexec_fn=wait)
process.start(process.Command("sleeper", ("/bin/sleep", "60"), {}, folder), folder / "log", folder / "pid")
"""


def test_a_stray_process_before_its_execve_is_found(tmp_path: pathlib.Path) -> None:
    run = subprocess.run([sys.executable, "-c", _KILLED_AT_EXECVE, str(tmp_path)], check=False)
    assert run.returncode == -signal.SIGKILL
    while not (forked := tmp_path / "forked").exists() or not forked.read_text(encoding="utf-8"):
        time.sleep(0.01)
    found = process.strays([tmp_path / "log"])
    process.stop(found, 0)
    assert [one.pid for one in found] == [int(forked.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("text", ["", "12", "x\ny\nz\n"])
def test_a_damaged_pid_file_has_no_process(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "pid").write_text(text, encoding="utf-8")
    assert process.known(tmp_path / "pid") is None


def test_the_digest_changes_with_everything_that_requires_a_restart(tmp_path: pathlib.Path) -> None:
    base = process.Command("a", ("x",), {"A": "1"}, tmp_path)
    others = [
        process.Command("a", ("x", "y"), {"A": "1"}, tmp_path),
        process.Command("a", ("x",), {"A": "2"}, tmp_path),
        process.Command("a", ("x",), {"A": "1"}, tmp_path, "new version"),
    ]
    assert base.digest not in {other.digest for other in others}


def test_log_tail_is_bounded(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 200_000 + b"\n" + b"".join(b"line %d \xff\n" % number for number in range(100)))
    tail = process.log_tail(log, 3)
    assert [line.split()[1] for line in tail] == ["97", "98", "99"]
    assert max(len(line) for line in process.log_tail(log, 500)) <= 400
    assert process.log_tail(tmp_path / "none") == []


def job(folder: pathlib.Path, script: str) -> Job:
    return Job("work", ("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}, folder, folder)


def test_a_job_continues_between_runs(tmp_path: pathlib.Path) -> None:
    script = f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo two; echo ran >> count"
    first = job(tmp_path, script).run(lambda: "in progress")
    assert re.fullmatch(r"in progress, \d+ s", next(first))
    t.cast("t.Generator[str, None, None]", first).close()
    (tmp_path / "go").touch()
    assert all(line.startswith("in progress, ") for line in job(tmp_path, script).run(lambda: "in progress") if line)
    assert job(tmp_path, script).lines() == 2
    assert list(job(tmp_path, script).run(str)) == []
    assert (tmp_path / "count").read_text(encoding="utf-8") == "ran\n"


def test_a_failed_job_reports_its_output_and_can_be_retried(tmp_path: pathlib.Path) -> None:
    with pytest.raises(HwaccelError, match=r"status 3(.|\n)*no such thing"):
        list(job(tmp_path, "echo no such thing; exit 3").run(str))
    assert all(line.startswith(", ") for line in job(tmp_path, "exit 0").run(str) if line)


def test_a_killed_job_is_reported(tmp_path: pathlib.Path) -> None:
    steps = job(tmp_path, "sleep 60").run(str)
    next(steps)
    known = process.known(tmp_path / "work.pid")
    assert known is not None
    os.killpg(known.pid, signal.SIGKILL)
    with pytest.raises(HwaccelError, match="was terminated"):
        list(steps)
