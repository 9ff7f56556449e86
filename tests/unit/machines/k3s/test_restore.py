# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""restore.py on a machine, with a root of its own."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import typing as t
import zipfile

import pytest

from ansible_collections.hwaccel.gpu.plugins.plugin_utils.machines.k3s import tokens
from ansible_collections.hwaccel.gpu.tests.unit.machines import scripts

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_k3s" / "files" / "restore.py"
SERVER = "var/lib/rancher/k3s/server"
NAME = tokens.storage_name("planted")


@pytest.fixture
def restore(tmp_path: pathlib.Path) -> t.Any:
    module = scripts.loaded(PATH)
    module.ROOT = str(tmp_path)
    for path, text in {
        f"{SERVER}/tls/server-ca.crt": "PEM",
        f"{SERVER}/token": "K10::server:planted\n",
        f"{SERVER}/db/etcd/member/snap/db": "old",
        f"{SERVER}/db/snapshots/on-demand-s1-1": "123",
        "etc/rancher/k3s/agent-token": "agents\n",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return module


def snapshot(path: pathlib.Path, *, before: int = 100, text: bytes = b"\0/bootstrap/" + NAME.encode() + b"\0") -> str:
    content = b"\0" * 16 + b"\xed\xda\x0c\xed" + b"\0" * before + text + b"\0" * 100
    path.write_bytes(content + hashlib.sha256(content).digest())
    return hashlib.sha256(content).hexdigest()


def verified(restore: t.Any, path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> dict[str, t.Any]:
    assert restore.main("verify", str(path)) == 0
    return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))


def test_what_a_server_holds(restore: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert restore.main("look") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "authority": "PEM",
        "sqlite": False,
        "token": "K10::server:planted",
        "agent_token": "agents",
        "snapshots": {f"/{SERVER}/db/snapshots/on-demand-s1-1": 3},
        "record": {},
    }


@pytest.mark.parametrize("before", [100, (1 << 20) - 16 - 4 - 8])
def test_a_snapshot_says_with_which_token_it_was_taken(
    restore: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], before: int
) -> None:
    path = tmp_path / "snapshot"
    digest = snapshot(path, before=before)
    file = hashlib.sha256(path.read_bytes()).hexdigest()
    assert verified(restore, path, capsys) == {"sha256": digest, "file": file, "keys": [NAME]}
    with zipfile.ZipFile(tmp_path / "snapshot.zip", "w") as archive:
        archive.write(path, "snapshot")
    packed = verified(restore, tmp_path / "snapshot.zip", capsys)
    assert (packed["sha256"], packed["keys"]) == (digest, [NAME]) and packed["file"] != file


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "its checksum is wrong"),
        (b"no database" * 100, "it is no database of etcd"),
        (b"\0" * 16 + b"\xed\xda\x0c\xed" + b"\0" * 500, "its checksum is wrong"),
        (None, "No such file"),
    ],
)
def test_what_is_no_complete_snapshot(
    restore: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], content: bytes | None, why: str
) -> None:
    path = tmp_path / "snapshot"
    if content is not None:
        path.write_bytes(content)
    assert restore.main("verify", str(path)) == 1
    assert why in capsys.readouterr().err


def test_the_newest_snapshot_of_a_name_is_verified(
    restore: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / SERVER / "db/snapshots"
    assert restore.main("newest", "before-") == 1
    assert "there is no snapshot before-*" in capsys.readouterr().err
    (folder / "before-1.35-s1-1").write_bytes(b"damaged")
    os.utime(folder / "before-1.35-s1-1", (1, 1))
    digest = snapshot(folder / "before-1.36-s1-2")
    assert restore.main("newest", "before-") == 0
    assert json.loads(capsys.readouterr().out)["sha256"] == digest
    os.utime(folder / "before-1.35-s1-1")
    os.utime(folder / "before-1.36-s1-2", (2, 2))
    assert restore.main("newest", "before-") == 1


def test_the_data_of_before_is_kept_also_a_second_time(restore: t.Any, tmp_path: pathlib.Path) -> None:
    kept = tmp_path / "var/lib/rancher/k3s-before-NOW"
    for name in ("db", "db-2"):
        assert restore.main("keep", "/var/lib/rancher/k3s-before-NOW") == 0
        assert (kept / name).is_dir() and not (tmp_path / SERVER / "db").exists()
        (tmp_path / SERVER / "db").mkdir()
    assert (kept / "db/etcd/member/snap/db").read_text(encoding="utf-8") == "old"
    assert kept.stat().st_mode & 0o777 == 0o700


def test_k3s_is_told_the_snapshot_and_no_token(
    restore: t.Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[list[str]] = []
    serves = iter((True, False))
    monkeypatch.setattr(restore, "serves", lambda: next(serves))
    monkeypatch.setattr(restore.time, "sleep", lambda _seconds: None)

    def run(argv: list[str], **_options: t.Any) -> subprocess.CompletedProcess[bytes]:
        called.append(argv)
        return subprocess.CompletedProcess(argv, 1, b"level=fatal msg=ended")

    monkeypatch.setattr(restore.subprocess, "run", run)
    assert restore.main("reset", "/snapshot") == 1
    assert called[0][1:] == ["server", "--cluster-reset", "--cluster-reset-restore-path=/snapshot", "--etcd-s3=false"]
    assert "level=fatal msg=ended" in capsys.readouterr().out and next(serves, None) is None
