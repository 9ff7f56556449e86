# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images without a registry: what is in an archive, that the same files make the same bytes, and under which names images are."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import tarfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig import archive, images
from ansible_collections.hwaccel.gpu.tests.node.rig.archive import Folder, Image, Link
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Components, parts


@pytest.fixture
def busybox(tmp_path: pathlib.Path) -> pathlib.Path:
    program = tmp_path / "busybox"
    program.write_text("#!/bin/sh\nprintf 'busybox\\ncat\\nsh\\n'\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.fixture
def programs(tmp_path: pathlib.Path) -> Components:
    folder = tmp_path / "bin"
    folder.mkdir()
    for part in parts():
        for name in part.programs:
            (folder / name).write_text(name, encoding="utf-8")
            (folder / name).chmod(0o755)
    return Components(folder, "key")


def manifest(path: pathlib.Path) -> list[dict[str, t.Any]]:
    with tarfile.open(path) as file:
        found = file.extractfile("manifest.json")
        assert found
        return list(json.loads(found.read()))


def layer_of(path: pathlib.Path, image: str) -> dict[str, tarfile.TarInfo]:
    """Everything in an image, by path."""
    entries: dict[str, tarfile.TarInfo] = {}
    with tarfile.open(path) as file:
        for layer in next(one for one in manifest(path) if one["RepoTags"] == [image])["Layers"]:
            found = file.extractfile(layer)
            assert found
            content = found.read()
            assert hashlib.sha256(content).hexdigest() == layer.removesuffix(".tar")
            with tarfile.open(fileobj=io.BytesIO(content)) as inner:
                entries |= {entry.name: entry for entry in inner}
    return entries


def test_an_archive_holds_programs_texts_links_and_folders(tmp_path: pathlib.Path, busybox: pathlib.Path) -> None:
    layers: dict[str, archive.Layer] = {"a": {"opt/x/run": busybox, "etc/name": "text", "bin/sh": Link("/opt/x/run"), "tmp": Folder(0o1777)}}
    archive.write(tmp_path / "a.tar", [Image("example.org/x:1", ("a",), entrypoint=("/opt/x/run",))], layers, "amd64")
    found = layer_of(tmp_path / "a.tar", "example.org/x:1")
    assert (found["opt/x/run"].mode, found["etc/name"].mode, found["tmp"].mode) == (0o755, 0o644, 0o1777)
    assert found["bin/sh"].linkname == "/opt/x/run"
    assert found["opt"].isdir()
    assert {(entry.uid, entry.mtime) for entry in found.values()} == {(0, 0)}


def test_the_same_files_make_the_same_bytes_and_shared_layers_are_there_once(tmp_path: pathlib.Path) -> None:
    layers: dict[str, archive.Layer] = {"a": {"etc/name": "text"}, "b": {"etc/other": "text"}}
    for name in ("one", "two"):
        archive.write(tmp_path / name, [Image("x:1", ("a",)), Image("x:2", ("a", "b")), Image("x:3", ("a",))], layers, "amd64")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with tarfile.open(tmp_path / "one") as file:
        names = file.getnames()
    assert len(names) == len(set(names))
    assert sum(name.endswith(".tar") for name in names) == 2


def test_images_have_the_names_of_the_roles(programs: Components, busybox: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = images.ensure_images(programs, busybox, print, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    names = {one["RepoTags"][0] for one in manifest(path)}
    assert {images.PAUSE, images.BUSYBOX, images.defaults("feature_discovery")["feature_discovery_image"]} <= names


def test_the_shell_has_its_tools(programs: Components, busybox: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = images.ensure_images(programs, busybox, print, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    found = layer_of(path, images.BUSYBOX)
    assert {found["bin/sh"].linkname, found["bin/cat"].linkname} == {"busybox"}


def test_an_archive_is_kept_until_something_in_it_changes(programs: Components, busybox: pathlib.Path, tmp_path: pathlib.Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    told: list[str] = []
    first = images.ensure_images(programs, busybox, told.append, environment)
    assert images.ensure_images(programs, busybox, told.append, environment) == first
    assert len(told) == 1
    assert images.ensure_images(Components(programs.folder, "other"), busybox, told.append, environment) != first
