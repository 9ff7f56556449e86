# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One task of a module, by the command ansible."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

from ansible_collections.hwaccel.gpu.tests.live.support.site import COLLECTIONS


def command(module: str, arguments: dict[str, t.Any]) -> list[str]:
    """Runs the module on this host."""
    ansible = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-i", "localhost,", "-c", "local"]
    return [*ansible, "-m", f"hwaccel.gpu.{module}", "-a", json.dumps(arguments)]


def task(
    module: str, arguments: dict[str, t.Any], *options: str, home: pathlib.Path
) -> tuple[int, dict[str, t.Any], str]:
    """Exit status, result, and output."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
    }
    environment |= {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_PYTHON_INTERPRETER": sys.executable}
    done = subprocess.run(
        [*command(module, arguments), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    head = re.search(r"^localhost \| \S+ => ", done.stdout, re.MULTILINE)
    assert head, done.stdout + done.stderr
    result = json.JSONDecoder().raw_decode(done.stdout[head.end() :])[0]
    return done.returncode, result, done.stdout[: head.start()] + done.stderr
