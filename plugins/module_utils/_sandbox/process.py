# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts, recognizes and stops processes that outlive the run. Linux only (/proc).

A pid alone is not sufficient, because pids are reused. A process is identified by pid, boot of the machine, start time and command.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import write_if_changed

_LARGEST_LOG = 32 * 1024 * 1024
PROC = pathlib.Path("/proc")


@dataclasses.dataclass(frozen=True)
class Command:
    """How a component is started. digest_of: content outside of argv whose change requires a restart."""

    name: str
    argv: tuple[str, ...]
    environment: t.Mapping[str, str]
    folder: pathlib.Path
    digest_of: str = ""

    @property
    def digest(self) -> str:
        text = json.dumps([self.argv, sorted(self.environment.items()), str(self.folder), self.digest_of])
        return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Known:
    """A process from its pid file."""

    pid: int
    identity: str
    digest: str


def identity(pid: int, proc: pathlib.Path = PROC) -> str:
    """The identity that distinguishes this process from a later one with the same pid; "" if it is not running (or is a zombie)."""
    state, name = _state_and_identity(pid, proc)
    return "" if state in "ZX" else name


def _state_and_identity(pid: int, proc: pathlib.Path) -> tuple[str, str]:
    """State letter of the first thread, and the identity; ("X", "") if there is no such process."""
    try:
        stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, ProcessLookupError):
        return "X", ""
    # The command in parentheses may contain blanks and parentheses, so fields are counted from the last one.
    fields = stat.rpartition(")")[2].split()
    return fields[0], f"{boot}:{fields[19]}"


def known(pid_file: pathlib.Path) -> Known | None:
    """The process in the pid file, None if the file is missing or invalid."""
    try:
        pid, name, digest = pid_file.read_text(encoding="utf-8").split("\n")[:3]
        return Known(int(pid), name, digest)
    except (FileNotFoundError, ValueError):
        return None


def running(process: Known | None) -> bool:
    return process is not None and identity(process.pid) == process.identity != ""


def ended(process: Known, proc: pathlib.Path = PROC) -> bool:
    """Whether all of its threads have ended, so that its ports are free.

    A process whose first thread has ended shows as a zombie, but holds its ports until its last thread has.
    """
    state, name = _state_and_identity(process.pid, proc)
    if name != process.identity or state not in "ZX":
        return name != process.identity
    try:
        return len(list((proc / str(process.pid) / "task").iterdir())) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def start(command: Command, log: pathlib.Path, pid_file: pathlib.Path) -> Known:
    """Starts it in a new session, so that it outlives the run. Its output is appended to the log."""
    if log.exists() and log.stat().st_size > _LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as output:
        output.write(f"--- {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} starting {command.name}\n".encode())
        output.flush()
        try:
            # run_command would wait for the end of the process, which must outlive the module.
            child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                command.argv,
                cwd=command.folder,
                env=dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise HwaccelError(
                f"{command.name} cannot be started", command.argv[0], str(error), "check the folder of the components"
            ) from error
    # As a child it stays in /proc until it is reaped, so it has an identity even if it has ended by now.
    process = Known(child.pid, _state_and_identity(child.pid, PROC)[1], command.digest)
    write_if_changed(pid_file, f"{process.pid}\n{process.identity}\n{process.digest}\n")
    _CHILDREN.append(child)
    return process


#: Children of this run, kept so that ended ones are reaped and do not count as running.
_CHILDREN: list[subprocess.Popen[bytes]] = []


def reap() -> None:
    for child in list(_CHILDREN):
        if child.poll() is not None:
            _CHILDREN.remove(child)


def stop(processes: t.Iterable[Known], patience: float) -> None:
    """Sends SIGTERM to all, and SIGKILL to those that remain after `patience` seconds (0: at once). Returns when their ports are free."""
    left = [process for process in processes if not ended(process)]
    if patience:
        _signal(left, signal.SIGTERM)
        left = _wait_gone(left, patience)
    _signal(left, signal.SIGKILL)
    stuck = _wait_gone(left, 10)
    if stuck:
        numbers = ", ".join(str(process.pid) for process in stuck)
        raise HwaccelError(
            "processes of the sandbox do not end",
            f"pid {numbers}",
            "they were sent SIGKILL",
            "check them with ps, then run again",
        )


def _signal(processes: t.Iterable[Known], number: signal.Signals) -> None:
    for process in processes:
        if not ended(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)


def _wait_gone(processes: list[Known], patience: float) -> list[Known]:
    give_up = time.monotonic() + patience
    while True:
        reap()
        processes = [process for process in processes if not ended(process)]
        if not processes or time.monotonic() > give_up:
            return processes
        time.sleep(0.02)


def strays(logs: t.Iterable[pathlib.Path], proc: pathlib.Path = PROC) -> list[Known]:
    """Processes that write to one of the logs, independently of the pid files.

    A run that was killed between starting a process and writing its pid file leaves such a process. Its command is not sufficient to find it:
    it may not have called execve yet, but it already has the log open.
    """
    # The kernel marks a log that was deleted in the meantime.
    paths = {name for log in logs for name in (os.path.realpath(log), f"{os.path.realpath(log)} (deleted)")}
    numbers = (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())
    return [
        Known(pid, identity(pid, proc), "")
        for pid in numbers
        if pid != os.getpid() and _writes_to(paths, proc / str(pid))
    ]


def _writes_to(names: c.Container[str], process: pathlib.Path) -> bool:
    """Whether a process writes to the log. Readers (tail -f) do not count."""
    # The process belongs to another user, or has just ended.
    with contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if (
                    os.readlink(descriptor) in names
                    and _flags(process / "fdinfo" / descriptor.name) & os.O_ACCMODE != os.O_RDONLY
                ):
                    return True
    return False


def _flags(description: pathlib.Path) -> int:
    """How a file was opened: the line "flags", octal (proc_pid_fdinfo(5))."""
    fields = dict(line.split(":", 1) for line in description.read_text(encoding="ascii").splitlines())
    return int(fields["flags"], 8)


def log_tail(path: pathlib.Path, lines: int = 12, width: int = 400) -> list[str]:
    """The end of a log, each line cut to `width`."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 65536))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return [line[:width] for line in text.splitlines()[-lines:]]
