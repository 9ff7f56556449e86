# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detection of a dead holder of a record."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._manifest_set import holder


def test_a_holder_is_only_dead_if_this_can_be_verified() -> None:
    me = holder.this_run()
    assert not me.is_dead(me.identity)
    head, _separator, tail = me.identity.rpartition(" (")
    assert me.is_dead(f"{head.rpartition(' ')[0]} 4194999 ({tail}")
    assert not me.is_dead("other-host pid 4194999 (boot pid:[1] 5 aa)")
    assert not me.is_dead("anything else")
    assert not me.ended


@pytest.mark.parametrize(
    ("signal", "stat", "dead"),
    [
        (ProcessLookupError(), None, True),
        (PermissionError(), None, False),
        (PermissionError(), "77", False),
        (PermissionError(), "78", True),
        (None, None, False),
        (None, "77", False),
        (None, "78", True),
    ],
    ids=[
        "ended",
        "hidden",
        "another user's",
        "another user's, with the pid reused",
        "unreadable",
        "alive",
        "pid reused",
    ],
)
def test_a_process_is_only_dead_if_it_can_be_observed(
    monkeypatch: pytest.MonkeyPatch, signal: OSError | None, stat: str | None, dead: bool
) -> None:
    """If /proc is mounted with hidepid, a process of another user cannot be read, and must not count as dead."""

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (12, 0)
        if signal is not None:
            raise signal

    files = {"/proc/sys/kernel/random/boot_id": "boot\n"} | (
        {"/proc/12/stat": f"12 (x) {' '.join(['0'] * 19)} {stat}"} if stat else {}
    )

    def opened(path: str, **_options: t.Any) -> t.Any:
        if path not in files:
            raise PermissionError(path)
        return io.StringIO(files[path])

    monkeypatch.setattr(holder.os, "kill", kill)
    monkeypatch.setattr(holder.os, "readlink", lambda path: "pid:[1]")
    monkeypatch.setattr("builtins.open", opened)
    assert holder.this_run().is_dead("host pid 12 (boot pid:[1] 77 aa)") is dead


def test_the_holder_of_a_task_with_slices_is_the_process_that_starts_them() -> None:
    """If this host cannot observe that process, no process counts, because the process of a slice ends before the next slice begins."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    pid, place = str(ended.pid), holder.this_process().partition(" ")[2]
    assert holder.this_run(f"{pid} {place}", sliced=True).ended
    assert not holder.this_run(holder.this_process(), sliced=True).ended
    for on_another_host in ("", f"{pid} another-boot {place.partition(' ')[2]}"):
        unknown = holder.this_run(on_another_host, sliced=True)
        assert not unknown.ended
        assert not holder.this_run().is_dead(unknown.identity)
    assert f" pid {os.getpid()} " in holder.this_run(f"{pid} {place}").identity, (
        "without slices, this process is the task"
    )
