# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""restore.py on a machine, with a root of its own."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.tests.unit.machines import scripts

PATH = pathlib.Path(__file__).parents[4] / "roles" / "cluster_kubeadm" / "files" / "restore.py"
SNAPSHOTS = "/var/lib/hwaccel-gpu/cluster_kubeadm/snapshots"
ETCD = """spec:
  containers:
  - command:
    - etcd
    - --initial-advertise-peer-urls=https://10.0.0.11:2380
    - --name=cp1
    image: registry.k8s.io/etcd:3.6.8-0
"""
KEPT = "/var/lib/etcd-before-20260801T020000Z"


@pytest.fixture
def restore(tmp_path: pathlib.Path) -> t.Any:
    module = scripts.loaded(PATH)
    module.ROOT = str(tmp_path)
    for path, text in {
        "/etc/kubernetes/manifests/etcd.yaml": ETCD,
        "/etc/kubernetes/manifests/kube-apiserver.yaml": "spec: {}\n",
        "/etc/kubernetes/pki/ca.crt": "PEM",
        "/var/lib/etcd/member/snap/db": "old",
        f"{SNAPSHOTS}/a.db": "123",
    }.items():
        file = tmp_path / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return module


def looked(restore: t.Any, capsys: pytest.CaptureFixture[str]) -> dict[str, t.Any]:
    assert restore.main("look", SNAPSHOTS) == 0
    return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))


def test_what_a_server_holds(restore: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = looked(restore, capsys)
    assert found["member"] == {
        "name": "cp1",
        "peer": "https://10.0.0.11:2380",
        "image": "registry.k8s.io/etcd:3.6.8-0",
    }
    assert (found["authority"], found["data"], found["record"]) == ("PEM", True, {})
    assert found["snapshots"] == {f"{SNAPSHOTS}/a.db": 3}
    assert "admin.conf" in found["missing"] and "pki/ca.crt" not in found["missing"]


def test_data_and_manifests_are_moved_away_and_never_replaced(
    restore: t.Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restore.main("keep", KEPT)
    kept = tmp_path / KEPT[1:]
    assert (kept / "member/snap/db").read_text() == "old"
    assert not (tmp_path / "var/lib/etcd/member").exists()
    assert not list((tmp_path / "etc/kubernetes/manifests").iterdir())
    capsys.readouterr()
    # Of a run that was killed, the member is still known, and its manifest comes back.
    assert looked(restore, capsys)["member"]["name"] == "cp1"
    restore.main("release", KEPT)
    assert (tmp_path / "etc/kubernetes/manifests/etcd.yaml").read_text() == ETCD
    (tmp_path / "var/lib/etcd/member").mkdir()
    restore.main("keep", KEPT)
    assert (kept / "member/snap/db").read_text() == "old" and (kept / "member-2").is_dir()
    assert sorted(path.name for path in (tmp_path / "etc/kubernetes/manifests").iterdir()) == []


def test_the_program_is_that_of_etcds_version(restore: t.Any) -> None:
    for tag, program in (("3.6.8-0", "etcdutl"), ("3.5.24-0", "etcdctl"), ("v4.0.0", "etcdutl")):
        found = {**restore.member(ETCD), "image": f"mirror.example.com:5000/etcd:{tag}"}
        named, options = restore.command(f"{SNAPSHOTS}/a.db", found)
        assert named == program
        assert "--initial-cluster=cp1=https://10.0.0.11:2380" in options
        assert {"--mark-compacted", "--bump-revision=1000000000", "--data-dir=/var/lib/etcd/restoring"} <= set(options)


def test_a_restoration_takes_its_place_as_a_whole(
    restore: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def made(argv: list[str], **_options: t.Any) -> None:
        asked.append(argv)
        (tmp_path / "var/lib/etcd/restoring/member").mkdir(parents=True)

    restore.main("keep", KEPT)
    monkeypatch.setattr(restore.subprocess, "run", made)
    assert restore.main("restore", f"{SNAPSHOTS}/a.db") == 0
    assert (tmp_path / "var/lib/etcd/member").is_dir() and not (tmp_path / "var/lib/etcd/restoring").exists()
    assert asked[0][:5] == ["ctr", "--namespace", "k8s.io", "run", "--rm"]
    assert "registry.k8s.io/etcd:3.6.8-0" in asked[0]


def test_a_restoration_that_fails_says_why(
    restore: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failed(*_argv: t.Any, **_options: t.Any) -> None:
        raise restore.subprocess.CalledProcessError(1, "ctr", output=b"snapshot file integrity check failed")

    monkeypatch.setattr(restore.subprocess, "run", failed)
    assert restore.main("restore", f"{SNAPSHOTS}/a.db") == 1
    assert "etcdutl of the image registry.k8s.io/etcd:3.6.8-0 has failed: snapshot file integrity check failed" in (
        capsys.readouterr().out
    )


def test_only_static_pods_of_kubeadm_are_ended(
    restore: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for pid, name, line in (
        (11, "etcd", "etcd\0--cert-file=/etc/kubernetes/pki/etcd/server.crt"),
        (12, "etcd", "etcd\0--data-dir=/data"),
        (13, "kube-controller", "kube-controller-manager\0--kubeconfig=/etc/kubernetes/controller-manager.conf"),
        (14, "kubelet", "kubelet\0--kubeconfig=/etc/kubernetes/kubelet.conf"),
    ):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "comm").write_text(name + "\n")
        (folder / "cmdline").write_text(line)
    ended: list[int] = []

    def kill(pid: int, _number: int) -> None:
        ended.append(pid)
        (tmp_path / "proc" / str(pid) / "comm").unlink()

    monkeypatch.setattr(restore.os, "kill", kill)
    monkeypatch.setattr(restore.time, "sleep", lambda _seconds: None)
    assert restore.main("stop") == 0
    assert sorted(ended) == [11, 13]
    assert sorted(capsys.readouterr().out.splitlines()) == ["stop etcd", "stop kube-controller-manager"]
