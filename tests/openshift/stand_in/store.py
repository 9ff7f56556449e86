# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The asset store of a target directory (section 4.1 of behaviours.yml): what comes from disk, from the state file, or is generated, and what is consumed."""

from __future__ import annotations

import base64
import collections.abc as c
import contextlib
import dataclasses
import json
import pathlib
import typing as t

from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.faults import Ended, Files
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.log import Log
from ansible_collections.hwaccel.gpu.tests.openshift.stand_in.reading import Refused

STATE = ".openshift_install_state.json"
#: Status of an error that names the install-config (section 4.2 of behaviours.yml).
_INSTALL_CONFIG, _GENERIC = 3, 1
#: Contents by path, relative to the target directory.
Value = dict[str, bytes]


@dataclasses.dataclass(frozen=True)
class Asset:
    """name: as messages have it. type: its key in the state file, without *. patterns: of its files in the target directory.

    load: makes a value of these files, and raises Refused. make: generates one from the values of its parents.
    """

    name: str
    type: str
    parents: tuple[str, ...]
    make: c.Callable[[Value], Value]
    patterns: tuple[str, ...] = ()
    load: c.Callable[[Value], Value] = dict


@dataclasses.dataclass
class _Loaded:
    """value: None until it is generated. present: files of it are on disk."""

    value: Value | None
    dirty: bool
    present: bool


class Store:
    """The assets, by type, and their values in a folder."""

    def __init__(self, assets: c.Mapping[str, Asset], files: Files, log: Log) -> None:
        self._assets = assets
        self._files = files
        self._log = log
        self._loaded: dict[str, _Loaded] = {}
        self._state = _read(files.folder / STATE)
        self._consumed: set[str] = set()

    def kept(self, type_: str) -> Value | None:
        """What the state file has of an asset."""
        entry = self._state.get(f"*{type_}")
        return {one["Filename"]: base64.b64decode(one["Data"]) for one in entry["FileList"]} if entry else None

    def run(self, targets: c.Sequence[str]) -> None:
        """Fetches and writes the targets, one after the other: an error leaves those before it."""
        for target in targets:
            asset = self._assets[target]
            try:
                value = self._fetch(target)
            except Refused as error:
                text = f"failed to fetch {asset.name}: {error}"
                status = _INSTALL_CONFIG if "failed to create install config" in text else _GENERIC
                raise Ended(text, status) from None
            self._save()
            self._consume(targets)
            for path, content in value.items():
                self._files.write(path, content)

    def _load(self, type_: str) -> _Loaded:
        if type_ in self._loaded:
            return self._loaded[type_]
        asset = self._assets[type_]
        parents = [self._load(parent) for parent in asset.parents]
        parents_dirty = any(parent.dirty for parent in parents)
        present = self._present(asset)
        kept = self.kept(type_)
        if present:
            try:
                value = asset.load(present)
            except Refused as error:
                raise Refused(f'failed to load asset "{asset.name}": {error}') from None
        if parents_dirty:
            if present:
                self._log.warning(
                    f"Discarding the {asset.name} that was provided in the target directory because its dependencies are dirty "
                    "and it needs to be regenerated"
                )
            loaded = _Loaded(None, True, bool(present))
        elif present and value != kept:
            loaded = _Loaded(value, True, True)
        else:
            loaded = _Loaded(kept, False, bool(present))
        self._loaded[type_] = loaded
        return loaded

    def _present(self, asset: Asset) -> Value:
        folder = self._files.folder
        paths = sorted(path for pattern in asset.patterns for path in folder.glob(pattern) if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}

    def _fetch(self, type_: str) -> Value:
        loaded = self._load(type_)
        if loaded.value is None:
            asset = self._assets[type_]
            parents: Value = {}
            for parent in asset.parents:
                parents |= self._fetch(parent)
            self._log.debug(f"Generating {asset.name}...")
            loaded.value = asset.make(parents)
        self._state[f"*{type_}"] = _entry(loaded.value)
        return loaded.value

    def _save(self) -> None:
        self._files.keep(STATE, json.dumps(self._state, indent=4).encode())

    def _consume(self, targets: c.Collection[str]) -> None:
        for type_, loaded in self._loaded.items():
            if not loaded.present or type_ in targets or type_ in self._consumed:
                continue
            asset = self._assets[type_]
            self._log.info(f"Consuming {asset.name} from target directory")
            self._consumed.add(type_)
            for path in self._present(asset):
                place = self._files.folder / path
                place.unlink()
                # The folder goes with its last file, the target directory never.
                if place.parent != self._files.folder:
                    with contextlib.suppress(OSError):
                        place.parent.rmdir()


def _read(path: pathlib.Path) -> dict[str, t.Any]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("cannot unmarshal into Go value of type map")
    except ValueError as error:
        raise Ended(f"failed to create asset store: failed to unmarshal state file: {error}") from None
    return content


def _entry(value: Value) -> dict[str, t.Any]:
    files = [{"Filename": name, "Data": base64.b64encode(content).decode()} for name, content in value.items()]
    configs = [json.loads(content) for name, content in value.items() if name.endswith(".ign")]
    return {"FileList": files, **({"Config": configs[0]} if configs else {})}
