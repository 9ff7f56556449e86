# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the logs end when a machine is started, as logs.sh keeps it."""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess

import ansible_collections.hwaccel.gpu as collection

SCRIPT = pathlib.Path(next(iter(collection.__path__))) / "roles" / "machine_boot" / "files" / "logs.sh"
MAC = "52:54:00:77:00:21"
#: Another run marks the same machine, from beginning to end, just before the first one moves its file.
MV = """#!/bin/sh
PATH=${{PATH#*:}}
{mark} && exec mv "$@"
"""


def test_two_runs_that_mark_one_machine_at_the_same_time_both_succeed(tmp_path: pathlib.Path) -> None:
    programs, marks, dhcp, web = (tmp_path / name for name in ("programs", "marks", "dhcp.log", "web.log"))
    dhcp.write_text("four", encoding="ascii")
    mark = ["sh", *map(str, (SCRIPT, "mark", marks, MAC, "10.77.0.21", dhcp, web))]
    programs.mkdir()
    (programs / "mv").write_text(MV.format(mark=shlex.join(mark)), encoding="ascii")
    (programs / "mv").chmod(0o755)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(mark, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [kept] = marks.iterdir()
    where, *logs = kept.read_text(encoding="ascii").splitlines()
    assert (kept.name, where.partition(":")[2], logs) == (MAC, "4:0", [str(dhcp), str(web)])
