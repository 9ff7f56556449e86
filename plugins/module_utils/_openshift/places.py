# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of an installation on disk: it is observed, created beside its place, and put there when it is complete.

openshift-install writes files one by one, and with modes that others can read. So it works in a folder of mode 0700, which is renamed at the end: a run that is
killed leaves the previous folder, in its place or beside it, and never half of a new one.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import time

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import folders
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.observed import Folder
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift.record import Record, path_of

_STAGING, _LOCK = ".hwaccel-gpu.staging", ".hwaccel-gpu.lock"
#: Kernel, initramfs and rootfs of the agent-based installer.
ARTIFACTS = "boot-artifacts"
#: Of these: what is CoreOS's own, and a script. The initramfs has the ignition file with all keys and the pull secret.
_WITHOUT_KEYS = ("-vmlinuz", "-rootfs.img", ".ipxe")


@contextlib.contextmanager
def locked(path: pathlib.Path) -> c.Iterator[int]:
    """Locks the place of a folder against other runs, and yields the descriptor that holds the lock. Raises HwaccelError if another run has it.

    The folder above is created, but none above that: a path that nobody has is a mistake, or a file system that is not mounted.
    """
    place = pathlib.Path(f"{path}{_LOCK}")
    try:
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        next_step = "create the parent folder, and run as a user who can write to it"
        raise HwaccelError("the folder cannot be locked", str(place), str(error.strerror), next_step) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "another run, or an openshift-install that one has started, works on it"
            raise HwaccelError(
                "the folder is in use", str(path), why, "wait until it has ended, then run again"
            ) from None
        yield descriptor
    finally:
        os.close(descriptor)


def observe(path: pathlib.Path) -> Folder:
    """Raises HwaccelError if there is something else than a folder, or it cannot be read."""
    staging = pathlib.Path(f"{path}{_STAGING}")
    left = (str(staging),) if staging.exists() else ()
    try:
        names = [entry.name for entry in path.iterdir()]
        contents = {name: (path / name).read_bytes() for name in folders.contents_needed(names)}
        found = folders.folder(str(path), names, contents, left)
        artifacts = (
            [f"{ARTIFACTS}/{entry.name}" for entry in (path / ARTIFACTS).iterdir()] if ARTIFACTS in names else []
        )
        sums = {name: file_digest(path / name) for name in sorted(artifacts)}
        secret = found.secret | {name for name in sums if not name.endswith(_WITHOUT_KEYS)}
        return dataclasses.replace(found, checksums={**found.checksums, **sums}, secret=secret)
    except FileNotFoundError:
        return Folder(str(path), staging=left)
    except OSError as error:
        next_step = "name a folder that this user can read"
        raise HwaccelError(
            "the folder of the installation cannot be read", str(path), str(error.strerror), next_step
        ) from None


def record_of(path: pathlib.Path) -> Record | None:
    """Raises HwaccelError if it is damaged."""
    place = pathlib.Path(path_of(str(path)))
    try:
        return Record.from_json(place.read_bytes(), str(place))
    except FileNotFoundError:
        return None


def write_record(path: pathlib.Path, record: Record) -> None:
    place = pathlib.Path(path_of(str(path)))
    making = place.with_name(f"{place.name}.new")
    with contextlib.suppress(FileNotFoundError):
        making.unlink()
    descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(record.to_json())
        file.flush()
        os.fsync(descriptor)
    making.replace(place)


def staged(path: pathlib.Path) -> pathlib.Path:
    """An empty folder beside it, in which the tool can work."""
    staging = pathlib.Path(f"{path}{_STAGING}")
    clear(path)
    staging.mkdir(mode=0o700)
    return staging


def clear(path: pathlib.Path) -> None:
    """Removes what an interrupted run has left. Only under the lock."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(f"{path}{_STAGING}")


def write(staging: pathlib.Path, files: c.Mapping[str, str]) -> None:
    """files: contents by their path in the folder."""
    for name, content in files.items():
        place = staging / name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        place.chmod(0o600)


def tighten(staging: pathlib.Path) -> None:
    """The tool writes private keys and pull secrets with mode 0640 (pkg/asset/asset.go)."""
    for folder, _folders, names in os.walk(staging):
        os.chmod(folder, 0o700)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o600)


def put(staging: pathlib.Path, path: pathlib.Path, record: Record) -> str:
    """Puts the complete folder and its record in place. Returns where the previous one is, "" if there was none.

    The record comes first: one without a folder is like none, while a folder without a record would be somebody else's.
    """
    backup = back_up(path)
    write_record(path, record)
    staging.rename(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return backup


def back_up(path: pathlib.Path) -> str:
    """Moves a folder and its record away. Returns where the folder is, "" if it was empty or not there. Only under the lock."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    backup = pathlib.Path(f"{path}.bak-{stamp}")
    number = 1
    while backup.exists() or os.path.exists(path_of(str(backup))):
        number += 1
        backup = pathlib.Path(f"{path}.bak-{stamp}-{number}")
    moved = path.exists() and any(path.iterdir())
    if moved:
        path.rename(backup)
        backup.chmod(0o700)
    elif path.exists():
        path.rmdir()
    # After its folder, which without a record would be somebody else's.
    with contextlib.suppress(FileNotFoundError):
        os.rename(path_of(str(path)), path_of(str(backup)))
    return str(backup) if moved else ""


def masked(data: bytes, unit: str, origin: str) -> bytes:
    """An ignition file with a unit masked. Raises HwaccelError if the file does not have it, as in a release that renamed it."""
    value = json.loads(data)
    units = value.get("systemd", {}).get("units", [])
    found = [one for one in units if one.get("name") == unit]
    if len(found) != 1:
        raise HwaccelError(
            f"{unit} cannot be masked",
            origin,
            f"the file has {len(found)} units of this name",
            "leave own_approver unset for this release: its own program approves all requests until the bootstrap is complete",
        )
    found[0].update(mask=True, enabled=False)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
