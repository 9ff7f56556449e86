# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""snapshot.py on a machine, with parts as etcd sends them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines.scripts import loaded

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_kubeadm" / "files" / "snapshot.py"
#: The first page of a database: its header, the mark, and some data.
DATABASE = bytes(16) + b"\xed\xda\x0c\xed" + b"data" * 1000
COMPLETE = DATABASE + hashlib.sha256(DATABASE).digest()


@pytest.fixture
def snapshot(monkeypatch: pytest.MonkeyPatch) -> t.Any:
    module = loaded(PATH)

    class Context:
        def load_cert_chain(self, *_files: str) -> None:
            """The test has no certificates."""

    monkeypatch.setattr(module.ssl, "create_default_context", lambda **_options: Context())
    return module


def sent(module: t.Any, monkeypatch: pytest.MonkeyPatch, *lines: dict[str, t.Any]) -> None:
    body = "".join(f"{json.dumps(line)}\n" for line in lines).encode("ascii")
    monkeypatch.setattr(module.urllib.request, "urlopen", lambda *_given, **_options: io.BytesIO(body))


def part(data: bytes) -> dict[str, t.Any]:
    return {"result": {"remaining_bytes": "1", "blob": base64.b64encode(data).decode("ascii")}}


def test_a_complete_snapshot_is_kept_and_only_root_can_read_it(
    snapshot: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent(snapshot, monkeypatch, part(COMPLETE[:1000]), part(COMPLETE[1000:]), {"result": {"remaining_bytes": "0"}})
    folder = tmp_path / "snapshots"
    assert snapshot.main("take", str(folder), "5") == 0
    (kept,) = folder.iterdir()
    assert kept.read_bytes() == COMPLETE
    assert [path.stat().st_mode & 0o777 for path in (folder, kept)] == [0o700, 0o600]
    assert capsys.readouterr().out == f"{kept} {len(COMPLETE)}\n"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (COMPLETE[:-1], "its checksum is wrong"),
        (COMPLETE[:500] + b"x" + COMPLETE[501:], "its checksum is wrong"),
        (b"", "it is no database of etcd"),
        (b"x" * 4096, "it is no database of etcd"),
    ],
)
def test_a_snapshot_that_cannot_be_used_is_none(
    snapshot: t.Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    data: bytes,
    told: str,
) -> None:
    sent(snapshot, monkeypatch, part(data))
    assert snapshot.main("take", str(tmp_path), "5") == 1
    assert list(tmp_path.iterdir()) == []
    assert told in capsys.readouterr().err


def test_an_error_of_etcd_ends_it_with_its_reason(
    snapshot: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of a run that was killed.
    (tmp_path / "20200101T000000Z.db.part").write_bytes(b"")
    sent(snapshot, monkeypatch, part(COMPLETE[:1000]), {"error": {"message": "etcdserver: no space"}})
    assert snapshot.main("take", str(tmp_path), "5") == 1
    assert list(tmp_path.iterdir()) == []
    assert "no snapshot of etcd could be taken: etcdserver: no space. Next: " in capsys.readouterr().err


def test_the_newest_snapshots_are_kept(
    snapshot: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for day in range(1, 8):
        (tmp_path / f"2020010{day}T000000Z.db").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"")
    sent(snapshot, monkeypatch, part(COMPLETE))
    assert snapshot.main("take", str(tmp_path), "5") == 0
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left[:4] == [f"2020010{day}T000000Z.db" for day in range(4, 8)]
    assert len(left) == 6


def test_a_complete_snapshot_is_verified_by_its_checksum(
    snapshot: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.db").write_bytes(COMPLETE)
    assert snapshot.main("verify", str(tmp_path / "good.db")) == 0
    assert capsys.readouterr().out.strip() == COMPLETE[-32:].hex()
    snapshot.fault = lambda _path: ""
    place = (
        b"x" * ((1 << 20) - 30)
        + b"k8s:enc:secretbox:v1:key-20260801T020000Z:ab"
        + b"k8s:enc:secretbox:v1:b:"
        + COMPLETE[-32:]
    )
    (tmp_path / "encrypted.db").write_bytes(place)
    assert snapshot.main("verify", str(tmp_path / "encrypted.db")) == 0
    assert capsys.readouterr().out.split() == [COMPLETE[-32:].hex(), "b", "key-20260801T020000Z"]


def test_a_snapshot_that_is_not_complete_is_none(
    snapshot: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.db").write_bytes(COMPLETE[:-40] + COMPLETE[-32:])
    for name, why in (("bad.db", "its checksum is wrong"), ("none.db", "No such file")):
        assert snapshot.main("verify", str(tmp_path / name)) == 1
        assert why in capsys.readouterr().err
