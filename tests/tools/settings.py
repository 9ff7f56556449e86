# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A setting of the kernel that has no namespace: it is raised while any run of tests needs it, and then put back."""

from __future__ import annotations

import collections.abc as c
import contextlib
import fcntl
import os
import pathlib

#: A control plane has 13, a machine with systemd about ten, and each kubelet, containerd and kube-proxy takes some. With the kernel's default of 128 for each
#: user, the kubelet of a third node does not start.
INSTANCES, ENOUGH = pathlib.Path("/proc/sys/fs/inotify/max_user_instances"), 1024


@contextlib.contextmanager
def enough_instances(cache: pathlib.Path) -> c.Iterator[None]:
    """Enough inotify instances. Users who cannot change the limit cannot run machines either. cache: a folder that runs of this machine share."""
    with contextlib.ExitStack() as raised:
        if os.access(INSTANCES, os.W_OK):
            raised.enter_context(at_least(ENOUGH, INSTANCES, cache / "node" / "inotify-instances"))
        yield


@contextlib.contextmanager
def at_least(value: int, setting: pathlib.Path, record: pathlib.Path) -> c.Iterator[None]:
    """Raises an integer setting to the value, if it is lower, until the last of concurrent contexts ends, also in other processes.

    record: file with the original value meanwhile. If all processes are killed, the end of the next context puts that value back.
    """
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a+", encoding="ascii") as kept:
        fcntl.flock(kept, fcntl.LOCK_SH)
        # The setting may be put back by another context's end, until this one has its lock again.
        while _read(setting) < value:
            fcntl.flock(kept, fcntl.LOCK_EX)
            if (present := _read(setting)) < value:
                print(present, file=kept, flush=True)
                setting.write_text(f"{value}\n", encoding="ascii")
            fcntl.flock(kept, fcntl.LOCK_SH)
        try:
            yield
        finally:
            # It fails while others share the lock, which need the value as well.
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
                kept.seek(0)
                if original := kept.readline():
                    setting.write_text(original, encoding="ascii")
                    kept.truncate(0)


def _read(setting: pathlib.Path) -> int:
    return int(setting.read_text(encoding="ascii"))
