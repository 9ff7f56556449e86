# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of a sandbox, and how its files are written."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import time
import typing as t

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


class Busy(HwaccelError):
    """Another run holds the lock."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The paths of one sandbox."""

    name: str
    root: pathlib.Path

    @property
    def kubeconfig(self) -> pathlib.Path:
        return self.root / "kubeconfig"

    @property
    def audit_log(self) -> pathlib.Path:
        return self.root / "audit.log"

    @property
    def pki(self) -> pathlib.Path:
        return self.root / "pki"

    @property
    def config(self) -> pathlib.Path:
        """Configuration files of the components, including their kubeconfigs."""
        return self.root / "config"

    @property
    def bin(self) -> pathlib.Path:
        """One link for each component. Its process is recognized by this path in argv[0]."""
        return self.root / "bin"

    @property
    def agent(self) -> pathlib.Path:
        """The fleet agent's program."""
        return self.root / "agent"

    @property
    def fleet(self) -> pathlib.Path:
        return self.root / "fleet.json"

    @property
    def record(self) -> pathlib.Path:
        """The record of values that are chosen once: ports, components, declared fleet."""
        return self.root / "sandbox.json"

    def log(self, component: str) -> pathlib.Path:
        return self.root / "logs" / f"{component}.log"

    def pid_file(self, component: str) -> pathlib.Path:
        return self.root / "run" / f"{component}.pid"

    def make_folders(self) -> None:
        for folder in (self.root, self.config, self.bin, self.agent, self.root / "logs", self.root / "run"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)


def layout(name: str, state_dir: str | None = None, environment: t.Mapping[str, str] | None = None) -> Layout:
    """The layout of the sandbox `name`; state_dir takes precedence over the XDG state folder."""
    if not _NAME.fullmatch(name):
        raise HwaccelError(
            f"{name!r} is not a valid name of a sandbox",
            "name",
            "it becomes the name of a folder",
            "use lower case letters, digits and '-', at most 40",
        )
    if state_dir:
        return Layout(name, pathlib.Path(state_dir).expanduser().absolute())
    base = (os.environ if environment is None else environment).get("XDG_STATE_HOME") or "~/.local/state"
    return Layout(name, pathlib.Path(base).expanduser().absolute() / "hwaccel-gpu" / "sandbox" / name)


def cache_folder(environment: t.Mapping[str, str] | None = None) -> pathlib.Path:
    base = (os.environ if environment is None else environment).get("XDG_CACHE_HOME") or "~/.cache"
    return pathlib.Path(base).expanduser().absolute() / "hwaccel-gpu"


def write_if_changed(path: pathlib.Path, text: str, mode: int = 0o600) -> bool:
    """Writes the file atomically, with its mode set from the start. False if it is unchanged."""
    try:
        if path.read_text(encoding="utf-8") == text and path.stat().st_mode & 0o777 == mode:
            return False
    except FileNotFoundError:
        pass
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    temporary.replace(path)
    return True


def read_json(path: pathlib.Path) -> dict[str, t.Any]:
    """The object in the file, {} if the file does not exist."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise HwaccelError(
            "a file of the sandbox is damaged",
            str(path),
            str(error),
            "run once with state: absent, then start it again",
        ) from error
    return data if isinstance(data, dict) else {}


@contextlib.contextmanager
def locked(folder: pathlib.Path, patience: float = 10.0) -> t.Iterator[None]:
    """Locks the folder against other runs. The lock is on the folder itself, so no lock file remains."""
    give_up = time.monotonic() + patience
    while True:
        # If the folder was deleted during mkdir, it is created in the next iteration.
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _lock(folder)
        if descriptor is not None:
            break
        if time.monotonic() > give_up:
            raise Busy(
                "another run is using this folder", str(folder), next_step="wait until it has finished, then run again"
            )
        time.sleep(0.1)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: pathlib.Path) -> int | None:
    """A descriptor that holds the lock, None if another run holds it or has just deleted the folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == folder.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
