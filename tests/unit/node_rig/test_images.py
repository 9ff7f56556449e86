# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images without a registry: content of archives, reproducibility, and names of images."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import tarfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._gpu import driver_matrix
from ansible_collections.hwaccel.gpu.tests.node.rig import archive, images, nvidia_images
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
    """All entries of an image by path."""
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


def test_an_archive_contains_programs_texts_links_and_folders(tmp_path: pathlib.Path, busybox: pathlib.Path) -> None:
    layers: dict[str, archive.Layer] = {
        "a": {"opt/x/run": busybox, "etc/name": "text", "bin/sh": Link("/opt/x/run"), "tmp": Folder(0o1777)}
    }
    archive.write(tmp_path / "a.tar", [Image("example.org/x:1", ("a",), entrypoint=("/opt/x/run",))], layers, "amd64")
    found = layer_of(tmp_path / "a.tar", "example.org/x:1")
    assert (found["opt/x/run"].mode, found["etc/name"].mode, found["tmp"].mode) == (0o755, 0o644, 0o1777)
    assert found["bin/sh"].linkname == "/opt/x/run"
    assert found["opt"].isdir()
    assert {(entry.uid, entry.mtime) for entry in found.values()} == {(0, 0)}


def test_archives_are_reproducible_and_have_shared_layers_once(tmp_path: pathlib.Path) -> None:
    layers: dict[str, archive.Layer] = {"a": {"etc/name": "text"}, "b": {"etc/other": "text"}}
    for name in ("one", "two"):
        archive.write(
            tmp_path / name, [Image("x:1", ("a",)), Image("x:2", ("a", "b")), Image("x:3", ("a",))], layers, "amd64"
        )
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with tarfile.open(tmp_path / "one") as file:
        names = file.getnames()
    assert len(names) == len(set(names))
    assert sum(name.endswith(".tar") for name in names) == 2


@pytest.fixture
def whole(programs: Components, busybox: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """An archive with all images of one node."""
    drivers = nvidia_images.driver_images("6.1.0-x", "debian", "12")
    return images.ensure_images(programs, busybox, print, drivers, {"XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_every_image_that_runs_on_each_node_is_in_the_archive(whole: pathlib.Path) -> None:
    names = {one["RepoTags"][0] for one in manifest(whole)}
    roles = ("device_plugin", "driver", "feature_discovery", "gpu_validation", "monitoring")
    required = {
        value
        for role in roles
        for name, value in nvidia_images.defaults(role).items()
        if name.endswith("_image") and "bandwidth" not in name
    }
    version = nvidia_images.defaults("driver")["driver_version"]
    assert names == required | {images.PAUSE, images.BUSYBOX, f"nvcr.io/nvidia/driver:{version}-debian12"}


def test_validation_runs_in_the_validators_image() -> None:
    expected = nvidia_images.defaults("driver")["driver_validator_image"]
    assert nvidia_images.defaults("gpu_validation")["gpu_validation_image"] == expected


@pytest.mark.parametrize(
    ("kernel", "system", "versions", "tags"),
    [
        (
            "6.8.0-134-generic",
            ("ubuntu", "24.04"),
            ("595.91.07",),
            {"595-6.8.0-134-generic-ubuntu24.04", "595.91.07-ubuntu24.04"},
        ),
        ("6.1.0", ("rocky", "9.6"), ("580.178.04", "595.91.07"), {"580.178.04-rocky9", "595.91.07-rocky9"}),
    ],
)
def test_driver_images_are_those_of_the_role(
    monkeypatch: pytest.MonkeyPatch,
    kernel: str,
    system: tuple[str, str],
    versions: tuple[str, ...],
    tags: set[str],
) -> None:
    monkeypatch.setattr(nvidia_images, "architecture", lambda: "amd64")
    found = nvidia_images.driver_images(kernel, *system, versions)
    assert {name.partition(":")[2] for name in found} == tags
    assert set(found.values()) == set(versions)
    assert {name.partition(":")[0] for name in found} == {f"{driver_matrix.REPOSITORY}/{driver_matrix.IMAGE}"}


def test_the_shell_has_its_tools(whole: pathlib.Path) -> None:
    found = layer_of(whole, images.BUSYBOX)
    assert {found["bin/sh"].linkname, found["bin/cat"].linkname} == {"busybox"}


def test_stand_ins_have_the_names_of_the_replaced_programs(whole: pathlib.Path) -> None:
    validator = layer_of(whole, nvidia_images.defaults("driver")["driver_validator_image"])
    assert {validator[f"usr/bin/{name}"].linkname for name in ("nvidia-validator", "vectorAdd")} == {
        "/usr/lib/hwaccel/stand-in"
    }
    assert "bin/sh" in validator
    assert "bin/sh" not in layer_of(whole, nvidia_images.defaults("monitoring")["monitoring_image"])


def test_a_driver_image_contains_nvidia_smi_and_libraries(whole: pathlib.Path) -> None:
    version = nvidia_images.defaults("driver")["driver_version"]
    found = layer_of(whole, f"nvcr.io/nvidia/driver:{version}-debian12")
    assert found["usr/bin/nvidia-smi"].isfile()
    libraries = {path.rpartition("/")[2] for path, entry in found.items() if ".so." in path and entry.isfile()}
    assert libraries == {f"libcuda.so.{version}", f"libnvidia-ml.so.{version}"}


def test_linked_libraries_of_a_program_are_included() -> None:
    found = nvidia_images.libraries_of(pathlib.Path("/bin/sh").resolve())
    assert any(path.rpartition("/")[2].startswith(("libc.so", "ld-")) for path in found)
    assert all(isinstance(file, pathlib.Path) and file.is_file() for file in found.values())


def test_an_archive_is_reused_until_its_content_changes(
    programs: Components, busybox: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    messages: list[str] = []
    first = images.ensure_images(programs, busybox, messages.append, None, environment)
    assert images.ensure_images(programs, busybox, messages.append, None, environment) == first
    assert len(messages) == 1
    assert (
        images.ensure_images(Components(programs.folder, "other"), busybox, messages.append, None, environment) != first
    )
