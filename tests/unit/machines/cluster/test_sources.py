# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sources.py on the controller: checksums of files, and names of images in archives of every format; and what is wrong with them."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.filter.cluster_sources import cluster_sources
from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.cluster import sources
from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster" / "files" / "sources.py"
LB, PAUSE = "docker.io/rancher/klipper-lb:v0.4.15", "docker.io/rancher/mirrored-pause:3.6"
DOCKER = [{"RepoTags": [LB]}, {"RepoTags": [PAUSE]}, {"RepoTags": None}]
OCI = {
    "manifests": [
        {"annotations": {"io.containerd.image.name": LB, "org.opencontainers.image.ref.name": "v0.4.15"}},
        {"annotations": {"org.opencontainers.image.ref.name": PAUSE}},
        {"digest": "sha256:1"},
    ]
}


def archive(name: str = "manifest.json", content: t.Any = None) -> bytes:
    """A tar file with a layer before the list, by default DOCKER."""
    content = DOCKER if content is None else content
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as file:
        for path, data in (("layer.tar", b"x" * 100_000), (name, json.dumps(content).encode())):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return target.getvalue()


def asked(*paths: pathlib.Path, kind: str = "archives") -> dict[str, t.Any]:
    """What the script prints."""
    wanted = {"files": [str(path) for path in paths], "archives": [], "texts": []}
    wanted[kind] = [str(path) for path in paths]
    run = subprocess.run(
        [sys.executable, str(PATH)], input=json.dumps(wanted), capture_output=True, check=True, text=True, timeout=60
    )
    return t.cast("dict[str, t.Any]", json.loads(run.stdout))


def compressed(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(("name", "content"), [("manifest.json", DOCKER), ("index.json", OCI), ("./index.json", OCI)])
@pytest.mark.parametrize(
    ("ending", "compress"),
    [
        ("tar", bytes),
        ("tar.gz", gzip.compress),
        ("TGZ", gzip.compress),
        ("tar.bz2", bz2.compress),
        pytest.param(
            "tar.zst", compressed, marks=pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")
        ),
    ],
)
def test_images_of_archives_are_listed(
    tmp_path: pathlib.Path, name: str, content: t.Any, ending: str, compress: t.Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"images.{ending}"
    path.write_bytes(compress(archive(name, content)))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert asked(path) == {str(path): {"checksum": f"sha256:{digest}", "images": [LB, PAUSE]}}


@pytest.mark.parametrize(
    ("ending", "data", "why"),
    [
        ("tar", archive()[:90_000], "ReadError: unexpected end of data"),
        ("tar.gz", b"no archive", "ReadError: not a gzip file"),
        ("tar.gz", gzip.compress(archive())[:200], "unexpected end of data"),
        ("tar", archive(content="text"), "AttributeError"),
        pytest.param(
            "tar.zst", b"no archive", "zstd", marks=pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd")
        ),
    ],
)
def test_a_damaged_archive_is_told(tmp_path: pathlib.Path, ending: str, data: bytes, why: str) -> None:
    path = tmp_path / f"images.{ending}"
    path.write_bytes(data)
    found = asked(path)[str(path)]
    assert "images" not in found and "later" not in found and found["checksum"]
    assert why in found["why"] or why == "zstd"


def test_what_cannot_be_read_here_may_be_right(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without zstd, and without a library of Python for it."""
    script = loaded(PATH)
    monkeypatch.setattr(script.shutil, "which", lambda _name: None)
    monkeypatch.setitem(sys.modules, "compression", None)
    paths = [tmp_path / "images.tar.zst", tmp_path / "images.tar.lz4"]
    for path in paths:
        path.write_bytes(b"compressed")
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"archives": [str(path) for path in paths]})))
    script.main()
    found = json.loads(capsys.readouterr().out)
    assert [one["later"] for one in found.values()] == [True, True]
    assert "has no zstd" in found[str(paths[0])]["why"] and "by machines only" in found[str(paths[1])]["why"]


def test_texts_are_read_and_missing_files_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / "list.txt").write_text(f"{LB}\n", encoding="utf-8")
    assert asked(tmp_path / "list.txt", kind="texts")[str(tmp_path / "list.txt")]["text"] == f"{LB}\n"
    missing = str(tmp_path / "missing")
    assert asked(tmp_path / "missing") == {missing: {"checksum": None, "why": "No such file or directory"}}


SUM, OTHER = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
SETTINGS = {
    "programs": [{"source": "/files/k3s", "checksum": SUM}, {"source": "https://example.com/k3s", "checksum": SUM}],
    "images": [{"source": "/files/images.tar", "checksum": SUM}],
}
READ = {"/files/k3s": {"checksum": SUM}, "/files/images.tar": {"checksum": SUM, "images": [LB]}}


def test_only_files_on_the_controller_are_read() -> None:
    assert sources.wanted(SETTINGS, ["", "/files/k3s-images.txt"]) == {
        "files": ["/files/k3s", "/files/images.tar"],
        "archives": ["/files/images.tar"],
        "texts": ["/files/k3s-images.txt"],
    }
    assert sources.faults("cluster_k3s", SETTINGS, READ) == []


@pytest.mark.parametrize(
    ("path", "seen", "told"),
    [
        (
            "/files/k3s",
            {"checksum": OTHER},
            "/files/k3s is another file than the one that is set (cluster_k3s_programs)",
        ),
        (
            "/files/images.tar",
            {"checksum": OTHER},
            f"it has the checksum {OTHER}, and {SUM} is set for it. Next: correct",
        ),
        (
            "/files/images.tar",
            {"checksum": None, "why": "Permission denied"},
            "cannot be read (cluster_k3s_images): Perm",
        ),
        ("/files/images.tar", {"checksum": SUM, "why": "ReadError: x"}, "the archive /files/images.tar is damaged"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(path: str, seen: dict[str, t.Any], told: str) -> None:
    (fault,) = sources.faults("cluster_k3s", SETTINGS, {**READ, path: seen})
    assert told in str(fault)


def test_an_archive_that_only_machines_can_read_is_no_problem() -> None:
    seen = {"checksum": SUM, "why": "the controller has no zstd", "later": True}
    assert sources.faults("cluster_k3s", SETTINGS, {**READ, "/files/images.tar": seen}) == []


@pytest.mark.parametrize("role", ["cluster_k3s", "cluster_kubeadm"])
def test_every_installer_reads_its_files_before_anything_is_changed(role: str) -> None:
    settings = {
        **SETTINGS,
        "image_list": "",
        "disable": [],
        "pause_image": "",
        "registries": {},
        "system_default_registry": "",
    }
    asked = cluster_sources(settings, role)
    assert asked["files"] == ["/files/k3s", "/files/images.tar"]
    found = cluster_sources(settings, role, read={**READ, "/files/k3s": {"checksum": OTHER}})
    assert [f"({role}_programs)" in one["text"] for one in found["faults"]] == [True]
