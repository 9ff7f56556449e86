# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tool reports: on standard error from a level on, and all of it in .openshift_install.log of the target directory."""

from __future__ import annotations

import collections.abc as c
import datetime
import json
import pathlib
import sys

LEVELS = ("debug", "info", "warning", "error", "fatal")
#: Names that the flag takes beside these.
OTHER_NAMES = {"warn": "warning", "panic": "fatal", "trace": "debug"}
STAND_IN = "This is a stand-in for openshift-install, made for tests: nothing that it makes installs a cluster"
LOG = ".openshift_install.log"


class Log:
    """Lines of logrus: without times and quotation marks on standard error, with both in the file, whose mode only the umask limits."""

    def __init__(self, level: str, now: c.Callable[[], datetime.datetime]) -> None:
        self._least = LEVELS.index(level)
        self._now = now
        self._path: pathlib.Path | None = None
        self.info(STAND_IN)

    def open(self, folder: pathlib.Path) -> None:
        """From here on all of it is in the folder's log too, which begins with what this is."""
        path = folder / LOG
        path.touch()
        self._path = path
        self._write("info", STAND_IN)

    def _say(self, level: str, text: str) -> None:
        if LEVELS.index(level) >= self._least:
            print(f"level={level} msg={text}", file=sys.stderr, flush=True)
        self._write(level, text)

    def _write(self, level: str, text: str) -> None:
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f'time="{self._now():%Y-%m-%dT%H:%M:%SZ}" level={level} msg={json.dumps(text)}\n')

    def debug(self, text: str) -> None:
        self._say("debug", text)

    def info(self, text: str) -> None:
        self._say("info", text)

    def warning(self, text: str) -> None:
        self._say("warning", text)

    def error(self, text: str) -> None:
        self._say("error", text)

    def fatal(self, text: str) -> None:
        self._say("fatal", text)
