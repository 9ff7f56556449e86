# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the logs end when a machine is started, as logs.sh keeps it, and requests to write a machine once more."""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess
import threading
import time

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
    mark = ["sh", *map(str, (SCRIPT, "mark", marks, MAC, "10.77.0.21", dhcp, web, tmp_path / "again"))]
    programs.mkdir()
    (programs / "mv").write_text(MV.format(mark=shlex.join(mark)), encoding="ascii")
    (programs / "mv").chmod(0o755)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(mark, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [kept] = marks.iterdir()
    where, *logs = kept.read_text(encoding="ascii").splitlines()
    assert (kept.name, where.partition(":")[2], logs) == (MAC, "4:0", [str(dhcp), str(web)])


def again(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    argv = ("again", folder / "marks", MAC, "10.77.0.21", folder / "dhcp", folder / "web", folder / "again")
    return subprocess.run(["sh", str(SCRIPT), *map(str, argv)], capture_output=True, text=True, check=False)


def test_a_machine_is_requested_once_more_where_the_boot_server_has_the_service(tmp_path: pathlib.Path) -> None:
    done = again(tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), "a boot server without the service turns no entry either"
    (tmp_path / "again").mkdir()
    request = tmp_path / "again" / MAC

    def serve() -> None:
        while not request.exists():
            time.sleep(0.05)
        request.unlink()

    service = threading.Thread(target=serve)
    service.start()
    done = again(tmp_path)
    service.join()
    assert (done.returncode, done.stderr) == (0, "")


def test_a_request_that_nobody_takes_is_withdrawn(tmp_path: pathlib.Path) -> None:
    """Otherwise it would wipe the machine at a later restart."""
    (tmp_path / "again").mkdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sleep").write_text("#!/bin/sh\n", encoding="ascii")
    (programs / "sleep").chmod(0o755)
    argv = ("again", tmp_path / "marks", MAC, "10.77.0.21", tmp_path / "dhcp", tmp_path / "web", tmp_path / "again")
    environ = {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", str(SCRIPT), *map(str, argv)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and f"hwaccel-gpu-once does not turn the boot entries of {MAC}" in done.stderr
    assert list((tmp_path / "again").iterdir()) == []
