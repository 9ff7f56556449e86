# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images as one archive in the format of `docker save`, which `ctr images import` and `podman load` read.

The same files result in the same bytes: no owner, no time stamp, sorted entries. Shared layers are contained once. No program is run for it.
Format: moby's image/spec/spec.md (v1.2, "Combined Image JSON + Filesystem Changeset Format").
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import io
import json
import pathlib
import tarfile

_EPOCH = "1970-01-01T00:00:00Z"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclasses.dataclass(frozen=True)
class Folder:
    """An empty folder. Parents of files are added automatically."""

    mode: int = 0o755


@dataclasses.dataclass(frozen=True)
class Script:
    """A text file that is executable."""

    text: str


#: Paths without the leading slash, to a file on this machine (with its mode), a text, a script, a link or a folder.
Layer = dict[str, pathlib.Path | str | Script | Link | Folder]


@dataclasses.dataclass(frozen=True)
class Image:
    """name: complete reference with tag, as in manifests. user: in the format of the runtime, "" for root."""

    name: str
    layers: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    user: str = ""


def write(target: pathlib.Path, images: c.Sequence[Image], layers: c.Mapping[str, Layer], architecture: str) -> None:
    """Writes all images and their layers. architecture: in the spelling of Go."""
    used = sorted({name for image in images for name in image.layers})
    digests: dict[str, str] = {}
    manifest = []
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for name in used:
            packed = target.with_name(f"{target.name}.layer")
            digests[name] = _pack(packed, layers[name])
            with packed.open("rb") as file:
                _add(archive, f"{digests[name]}.tar", file, packed.stat().st_size)
            packed.unlink()
        for image in images:
            config = json.dumps(_config(image, digests, architecture), sort_keys=True).encode()
            place = f"{hashlib.sha256(config).hexdigest()}.json"
            if place not in archive.getnames():
                _add(archive, place, io.BytesIO(config), len(config))
            manifest.append(
                {"Config": place, "RepoTags": [image.name], "Layers": [f"{digests[name]}.tar" for name in image.layers]}
            )
        document = json.dumps(manifest, sort_keys=True).encode()
        _add(archive, "manifest.json", io.BytesIO(document), len(document))


def _config(image: Image, digests: c.Mapping[str, str], architecture: str) -> dict[str, object]:
    settings: dict[str, object] = {"Env": [_PATH, *image.environment], "WorkingDir": "/"}
    for key, value in (("Entrypoint", list(image.entrypoint)), ("Cmd", list(image.command)), ("User", image.user)):
        if value:
            settings[key] = value
    return {
        "architecture": architecture,
        "os": "linux",
        "created": _EPOCH,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digests[name]}" for name in image.layers]},
        "history": [{"created": _EPOCH, "created_by": name} for name in image.layers],
    }


def _pack(target: pathlib.Path, layer: Layer) -> str:
    """Writes the layer as a tar file; returns its SHA-256."""
    entries: Layer = {folder: Folder() for path in layer for folder in _parents(path)} | layer
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for path, what in sorted(entries.items()):
            if isinstance(what, pathlib.Path):
                with what.open("rb") as file:
                    _add(archive, path, file, what.stat().st_size, 0o755 if what.stat().st_mode & 0o100 else 0o644)
            elif isinstance(what, (str, Script)):
                content = (what.text if isinstance(what, Script) else what).encode()
                _add(archive, path, io.BytesIO(content), len(content), 0o755 if isinstance(what, Script) else 0o644)
            else:
                archive.addfile(_special(path, what))
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in pathlib.PurePosixPath(path).parents if str(parent) != "."]


def _special(path: str, what: Link | Folder) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    if isinstance(what, Link):
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, what.target, 0o777
    else:
        entry.type, entry.mode = tarfile.DIRTYPE, what.mode
    return entry


def _add(archive: tarfile.TarFile, path: str, file: io.BufferedIOBase, size: int, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = size, mode
    archive.addfile(entry, file)
