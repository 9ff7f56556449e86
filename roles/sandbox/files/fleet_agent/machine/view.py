# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's own view of files: its image, its volumes, and the machine behind host paths with mount propagation."""

from __future__ import annotations

import dataclasses
import fnmatch
import posixpath
from typing import Any

from fleet_agent.machine.hostfs import Host

#: Paths that users other than root may write to. All other paths of a machine and an image belong to root, including folders that kubelet creates.
FOR_EVERYONE = ("/tmp/", "/var/tmp/", "/dev/null", "/dev/shm/", "/dev/log")


@dataclasses.dataclass(frozen=True)
class VolumeMount:
    """One mount of a container, with its source."""

    path: str
    kind: str  # "host" or "pod"
    source: str  # host path, or the key of a pod volume with its sub path
    read_only: bool
    propagation: str  # None, HostToContainer or Bidirectional
    store: dict[str, str]  # files of a pod volume (ConfigMap, Secret, emptyDir, token)


@dataclasses.dataclass(frozen=True)
class Place:
    """The actual location of a container path."""

    host: bool
    path: str
    since: int | None
    read_only: bool
    store: dict[str, str]


class View:
    """File access of one container. Raises OSError with the message of the C library."""

    def __init__(self, host: Host, mounts: list[VolumeMount], privileged: bool, uid: int = 0) -> None:
        self.host, self.uid = host, uid
        self.mounts = sorted(mounts, key=lambda m: len(m.path), reverse=True)
        self.privileged = privileged
        self.own: dict[str, str] = {}
        self.own_folders: set[str] = {"/tmp", "/etc", "/usr", "/usr/bin", "/bin", "/var", "/run", "/drivers"}
        self.born = host.mount_sequence
        self.writes = 0

    def volume(self, path: str) -> VolumeMount | None:
        path = posixpath.normpath(path)
        for mount in self.mounts:
            if path == mount.path or path.startswith(mount.path.rstrip("/") + "/"):
                return mount
        return None

    def locate(self, path: str) -> Place:
        path = posixpath.normpath(path)
        mount = self.volume(path)
        if mount is None:
            if path.startswith(("/sys", "/proc")) or (path.startswith("/dev") and self.privileged):
                return Place(True, path, None, not self.privileged, {})
            return Place(False, path, None, False, self.own)
        rest = path[len(mount.path.rstrip("/")) :]
        if mount.kind == "host":
            since = None if mount.propagation in ("HostToContainer", "Bidirectional") else self.born
            return Place(True, (mount.source.rstrip("/") + rest) or "/", since, mount.read_only, {})
        return Place(False, (mount.source.rstrip("/") + rest), None, mount.read_only, mount.store)

    def read(self, path: str) -> str:
        place = self.locate(path)
        text = self.host.read(place.path, place.since) if place.host else place.store.get(place.path)
        if text is None:
            raise FileNotFoundError(2, "Is a directory" if self.is_folder(path) else "No such file or directory", path)
        return text

    def is_file(self, path: str) -> bool:
        place = self.locate(path)
        return (self.host.read(place.path, place.since) if place.host else place.store.get(place.path)) is not None

    def is_folder(self, path: str) -> bool:
        path = posixpath.normpath(path)
        place = self.locate(path)
        if place.host:
            return self.host.is_folder(place.path, place.since)
        prefix = path.rstrip("/") + "/"
        if any(m.path == path or m.path.startswith(prefix) for m in self.mounts) and not self.is_file(path):
            return True
        inner = place.path.rstrip("/") + "/"
        return any(name.startswith(inner) for name in place.store) or (
            place.store is self.own and (path in self.own_folders or path == "/")
        )

    def exists(self, path: str) -> bool:
        return self.is_file(path) or self.is_folder(path)

    def _writable(self, path: str) -> Place:
        place = self.locate(path)
        if place.read_only:
            raise PermissionError(30, "Read-only file system", path)
        if self.uid and (place.host or place.store is self.own) and not place.path.startswith(FOR_EVERYONE):
            raise PermissionError(13, "Permission denied", path)
        return place

    def write(self, path: str, text: str, append: bool = False) -> None:
        place = self._writable(path)
        if posixpath.normpath(path) == "/dev/null":
            return
        if not self.is_folder(posixpath.dirname(posixpath.normpath(path))):
            raise FileNotFoundError(2, "No such file or directory", path)
        if append and self.is_file(path):
            text = self.read(path) + text
        self.writes += 1
        if place.host:
            self.host.write(place.path, text)
        else:
            place.store[place.path] = text
            if place.store is not self.own:
                self.host.changed()  # Another container of the pod may wait for it.

    def make_folder(self, path: str, parents: bool) -> None:
        path = posixpath.normpath(path)
        if self.exists(path):
            if parents:
                return
            raise FileExistsError(17, "File exists", path)
        place = self._writable(path)
        if not parents and not self.is_folder(posixpath.dirname(path)):
            raise FileNotFoundError(2, "No such file or directory", path)
        self.writes += 1
        if place.host:
            self.host.make_folder(place.path)
        elif place.store is self.own:
            while path not in self.own_folders and path != "/":
                self.own_folders.add(path)
                path = posixpath.dirname(path)
        else:
            place.store[place.path.rstrip("/") + "/."] = ""

    def remove(self, path: str) -> bool:
        if not self.exists(path):
            return False
        place = self._writable(path)
        if place.host:
            gone = self.host.remove(place.path)
        else:
            gone = place.store.pop(place.path, None) is not None
            for name in [n for n in place.store if n.startswith(place.path + "/")]:
                del place.store[name]
                gone = True
        self.writes += gone
        return gone

    def names(self, folder: str) -> list[str]:
        place = self.locate(folder)
        prefix = posixpath.normpath(folder).rstrip("/") + "/"
        below = {m.path[len(prefix) :].split("/", maxsplit=1)[0] for m in self.mounts if m.path.startswith(prefix)}
        if place.host:
            return sorted(below | set(self.host.names(place.path, place.since)))
        inner = place.path.rstrip("/") + "/"
        return sorted(
            below
            | {name[len(inner) :].split("/", maxsplit=1)[0] for name in place.store if name.startswith(inner)} - {"."}
        )

    def glob(self, pattern: str) -> list[str]:
        """Shell expansion of a word: matching paths, or nothing. Only the last component may be a pattern, or any for short trees."""
        if not any(c in pattern for c in "*?["):
            return [pattern] if self.exists(pattern) else []
        folder, _slash, last = pattern.rpartition("/")
        folders = self.glob(folder) if any(c in folder for c in "*?[") else [folder or "/"]
        found = []
        for base in folders:
            if self.is_folder(base):
                found += [
                    f"{base.rstrip('/')}/{name}"
                    for name in self.names(base)
                    if fnmatch.fnmatchcase(name, last) and (last.startswith(".") or not name.startswith("."))
                ]
        return [path for path in sorted(found) if self.exists(path)]


def is_bidirectional(mount: VolumeMount | None) -> bool:
    return mount is not None and mount.kind == "host" and mount.propagation == "Bidirectional"


def key_path(items: list[dict[str, Any]] | None, data: dict[str, str]) -> dict[str, str]:
    """Files of a ConfigMap or Secret volume, `items` applied."""
    if not items:
        return {"/" + key: value for key, value in data.items()}
    return {"/" + item["path"]: data[item["key"]] for item in items if item["key"] in data}
