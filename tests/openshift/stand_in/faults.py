# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a test asks for (STAND_IN_FAULT), after N files of the target directory were written: KIND[=VALUE][@N], N is 0 without it.

hang       waits until a signal ends it
kill       ends itself by SIGKILL
torn       the same in the middle of the next file
exit=CODE  ends with this status and an error
slow=SECONDS  waits before each file from there on
"""

from __future__ import annotations

import os
import pathlib
import re
import signal
import time

FORM = re.compile(r"(?P<kind>hang|kill|torn|exit|slow)(=(?P<value>[0-9.]+))?(@(?P<after>[0-9]+))?")
FILE_MODE, FOLDER_MODE = 0o640, 0o750


class Ended(Exception):
    """The run ends with this status; the text is the last error."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Files:
    """Writes files of the target directory with the tool's modes, and does what the fault says in between."""

    def __init__(self, folder: pathlib.Path, fault: str) -> None:
        self.folder = folder
        match = FORM.fullmatch(fault) if fault else None
        if fault and not match:
            raise ValueError(f"STAND_IN_FAULT is {FORM.pattern}, not {fault}")
        self._kind = match["kind"] if match else ""
        self._value = float(match["value"] or 0) if match else 0.0
        self._after = int(match["after"] or 0) if match else 0
        self._written = 0

    def due(self) -> None:
        """What happens now, if it is time for it. Called at the start and after each file."""
        if self._written < self._after:
            return
        if self._kind == "hang":
            while True:
                signal.pause()
        if self._kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._kind == "exit":
            raise Ended(f"failed as the test asks, after {self._written} files", int(self._value))
        if self._kind == "slow":
            time.sleep(self._value)

    def keep(self, name: str, content: bytes) -> None:
        """Writes what is not counted: the state file."""
        self._put(name, content)

    def write(self, name: str, content: bytes) -> None:
        if self._kind == "torn" and self._written >= self._after:
            self._put(name, content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self._put(name, content)
        self._written += 1
        self.due()

    def _put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb") as file:
            file.write(content)
