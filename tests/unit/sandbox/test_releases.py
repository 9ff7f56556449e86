# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads from a server on the loopback interface: verified before they are unpacked, and resumed after an interruption."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import hashlib
import http.server
import io
import pathlib
import tarfile
import threading
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox import pins, releases, resolver
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import CONTROL_PLANE
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import in_folder


@dataclasses.dataclass
class Server:
    """A server with files, recorded requests, and the number of bytes after which it closes one connection."""

    url: str
    files: dict[str, bytes]
    requested: list[tuple[str, str]]
    cut_after: int = 0


@pytest.fixture
def server() -> c.Iterator[Server]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            byte_range = self.headers.get("Range", "")
            state.requested.append((self.path, byte_range))
            body = state.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            begin = int(byte_range.removeprefix("bytes=").rstrip("-") or 0) if byte_range else 0
            if begin >= len(body):
                self.send_error(416)
                return
            self.send_response(206 if byte_range else 200)
            self.send_header("Content-Length", str(len(body) - begin))
            self.end_headers()
            cut, state.cut_after = state.cut_after, 0
            self.wfile.write(body[begin : begin + cut] if cut else body[begin:])

        def log_message(self, *_arguments: t.Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        state = Server(f"http://127.0.0.1:{web.server_address[1]}", {}, [])
        thread = threading.Thread(target=web.serve_forever, daemon=True)
        thread.start()
        yield state
        web.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def archive(**members: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in members.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "-"))
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def entries(server: Server) -> list[dict[str, t.Any]]:
    server.files = {
        "/k.tar.gz": archive(
            s__kube_apiserver="api", s__kube_controller_manager="kcm", s__kube_scheduler="sched", s__other="no"
        ),
        "/e.tar.gz": archive(e__etcd="etcd"),
        "/kwok": b"kwok" * 500_000,
    }
    controllers = {name: f"s/{name}" for name in CONTROL_PLANE if name.startswith("kube-")}
    files = {"/k.tar.gz": controllers, "/e.tar.gz": {"etcd": "e/etcd"}, "/kwok": {"kwok": ""}}
    return [
        {"url": server.url + path, "checksum": "sha256:" + hashlib.sha256(body).hexdigest(), "files": files[path]}
        for path, body in server.files.items()
    ]


def fetch(server_entries: list[dict[str, t.Any]], cache: pathlib.Path) -> pathlib.Path:
    downloads = releases.parse(server_entries)
    assert set(releases.Fetch(downloads, cache).run()) <= {""}
    found = releases.cached_release(cache, downloads)
    assert found is not None
    return pathlib.Path(found.folder)


def test_downloads_become_a_verified_folder_in_the_cache(server: Server, tmp_path: pathlib.Path) -> None:
    data = entries(server)
    folder = fetch(data, tmp_path)
    found = in_folder(folder, "release")
    assert found.verified
    assert (folder / "kube-scheduler").read_text(encoding="utf-8") == "sched"
    assert sorted(path.name for path in folder.iterdir()) == ["SHA256SUMS", *sorted(CONTROL_PLANE)]
    assert list((tmp_path / "downloading").iterdir()) == []
    server.requested.clear()
    assert fetch(data, tmp_path) == folder
    assert server.requested == []


@pytest.mark.parametrize("ways", [("cache", "release"), ("release",)])
@pytest.mark.parametrize("checksums", [None, "", "00  kwok\n"])
def test_an_unverified_cache_entry_is_downloaded_again(
    server: Server, tmp_path: pathlib.Path, checksums: str | None, ways: tuple[str, ...]
) -> None:
    data = entries(server)
    manifest = fetch(data, tmp_path) / "SHA256SUMS"
    written = manifest.read_bytes()
    manifest.unlink()
    if checksums is not None:
        manifest.write_text(checksums, encoding="utf-8")
    server.requested.clear()
    request = resolver.ComponentRequest(tmp_path, releases=data, ways=ways)
    assert resolver.look(request) is None
    steps = resolver.resolve(request)
    with pytest.raises(StopIteration) as ended:
        while True:
            next(steps)
    assert (ended.value.value.source, ended.value.value.verified) == ("release", True)
    assert manifest.read_bytes() == written
    assert {path for path, _range in server.requested} == set(server.files)
    assert list((tmp_path / "downloading").iterdir()) == []


def test_an_interrupted_download_is_resumed(server: Server, tmp_path: pathlib.Path) -> None:
    data = entries(server)
    downloads = releases.parse(data)
    server.cut_after = 100
    with pytest.raises(HwaccelError, match="ended early"):
        list(releases.Fetch(downloads, tmp_path).run())
    fetch(data, tmp_path)
    assert ("/k.tar.gz", "bytes=100-") in server.requested
    assert [path for path, _range in server.requested].count("/kwok") == 1


def test_an_interrupted_slice_is_resumed(server: Server, tmp_path: pathlib.Path) -> None:
    data = entries(server)
    steps = releases.Fetch(releases.parse(data), tmp_path).run()
    for _step in range(3):
        next(steps)
    t.cast("c.Generator[str, None, None]", steps).close()
    fetch(data, tmp_path)
    assert ("/kwok", f"bytes={1 << 20}-") in server.requested


def test_a_file_with_another_checksum_is_deleted(server: Server, tmp_path: pathlib.Path) -> None:
    data = entries(server)
    server.files["/e.tar.gz"] += b"!"
    with pytest.raises(HwaccelError, match=r"e\.tar\.gz does not match its pinned checksum"):
        list(releases.Fetch(releases.parse(data), tmp_path).run())
    assert not (tmp_path / "components").exists()
    assert not list((tmp_path / "downloading").rglob("e.tar.gz*"))


def test_an_archive_without_the_program_is_reported(server: Server, tmp_path: pathlib.Path) -> None:
    data = entries(server)
    data[1]["files"] = {"etcd": "somewhere/else"}
    with pytest.raises(HwaccelError, match="it lacks somewhere/else"):
        list(releases.Fetch(releases.parse(data), tmp_path).run())


@pytest.mark.parametrize("missing", ["/k.tar.gz", "/kwok"])
def test_a_missing_file_is_reported_with_its_url(server: Server, tmp_path: pathlib.Path, missing: str) -> None:
    data = entries(server)
    del server.files[missing]
    with pytest.raises(HwaccelError) as caught:
        list(releases.Fetch(releases.parse(data), tmp_path).run())
    assert caught.value.faults[0].where == server.url + missing
    assert "404" in caught.value.faults[0].why


def test_all_invalid_fields_of_downloads_are_reported() -> None:
    with pytest.raises(ManyFaults) as caught:
        releases.parse([{"url": "ftp://x/y", "checksum": "sha256:123", "files": {"kubelet": "a"}}])
    assert [fault.where for fault in caught.value.faults] == [
        "releases[0].url",
        "releases[0].checksum",
        "releases[0].files",
        "releases",
    ]


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_pins_are_complete(architecture: str) -> None:
    downloads = releases.parse(pins.releases(architecture))
    assert {name for one in downloads for name in one.files} == set(CONTROL_PLANE)
    assert len({one.digest for one in downloads}) == 3


def test_no_pins_for_other_architectures() -> None:
    assert pins.releases("s390x") == []
