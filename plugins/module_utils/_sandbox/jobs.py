# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long commands that keep running in the background while the run reports their progress.

A job is identified by its folder with files for log, process and exit status, so that any later run finds it again.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import process

_TICK = 0.2
_REPORT_SECONDS = 5.0
#: The shell writes the exit status to a file, because the run may end before the process.
_WRAPPER = 'status=$1; shift; "$@"; echo $? > "$status.new" && mv "$status.new" "$status"'


@dataclasses.dataclass(frozen=True)
class Job:
    """One command in the background."""

    name: str
    argv: tuple[str, ...]
    environment: t.Mapping[str, str]
    folder: pathlib.Path
    #: Folder of the job's own files.
    state: pathlib.Path

    @property
    def log(self) -> pathlib.Path:
        return self.state / f"{self.name}.log"

    @property
    def _status(self) -> pathlib.Path:
        return self.state / f"{self.name}.status"

    @property
    def _pid_file(self) -> pathlib.Path:
        return self.state / f"{self.name}.pid"

    def run(self, how_far: t.Callable[[], str]) -> t.Iterator[str]:
        """Starts it unless it is running or done. Yields its progress every few seconds and "" in between."""
        reported = 0.0
        while not self._status.exists():
            process.reap()
            known = process.known(self._pid_file)
            if known is None:
                self._start()
            elif not process.running(known) and not self._status.exists():
                self._pid_file.unlink()
                raise self._failure("was terminated")
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                yield f"{how_far()}, {self._seconds():.0f} s"
            else:
                yield ""
            time.sleep(_TICK)
        if self._status.read_text(encoding="utf-8").strip() != "0":
            failure = self._failure(f"ended with status {self._status.read_text(encoding='utf-8').strip()}")
            # The next run should try again, because the cause may have been corrected.
            self._status.unlink()
            self._pid_file.unlink(missing_ok=True)
            raise failure

    def lines(self) -> int:
        """Number of lines of its output so far."""
        try:
            with self.log.open("rb") as file:
                return sum(1 for line in file if not line.startswith(b"--- "))
        except FileNotFoundError:
            return 0

    def _seconds(self) -> float:
        """Seconds since it was started, by this run or an earlier one."""
        return max(0.0, time.time() - self._pid_file.stat().st_mtime) if self._pid_file.exists() else 0.0

    def _start(self) -> None:
        self.log.unlink(missing_ok=True)
        argv = ("/bin/sh", "-c", _WRAPPER, self.name, str(self._status), *self.argv)
        process.start(process.Command(self.name, argv, self.environment, self.folder), self.log, self._pid_file)

    def _failure(self, what: str) -> HwaccelError:
        tail = "\n".join(f"    {line}" for line in process.log_tail(self.log))
        shown = " ".join(os.path.basename(part) if index == 0 else part for index, part in enumerate(self.argv))[:120]
        why = f"its output ends with\n{tail}\n" if tail else "it has no output"
        return HwaccelError(
            f"{shown} {what}",
            str(self.log),
            why,
            "correct the cause (the file has the whole output), and run again: completed steps are not repeated",
        )
