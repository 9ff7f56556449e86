# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupted downloads are resumed, and files are moved to their place once they are verified."""

from __future__ import annotations

import collections.abc as c
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import pytest

from ansible_collections.hwaccel.gpu.tests.node.rig.repository import Signer
from ansible_collections.hwaccel.gpu.tests.unit.machines.dns_pxe.mirror import CONTENT, Mirror

SCRIPT = pathlib.Path(__file__).parents[4] / "roles" / "dns_pxe" / "files" / "fetch.py"


@pytest.fixture
def mirror() -> c.Iterator[c.Callable[..., Mirror]]:
    started: list[tuple[Mirror, threading.Thread]] = []

    def start(*breaks: int, ranges: bool = True) -> Mirror:
        server = Mirror(list(breaks), ranges)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        started.append((server, thread))
        return server

    yield start
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(server: Mirror | None, path: pathlib.Path, checksum: str = "", signature: str = "", keyring: str = "") -> str:
    """The error message, empty if the file was fetched. `server` is None if the file was transferred in another way."""
    request = {
        "url": server.url if server else "",
        "path": str(path),
        "checksum": checksum or hashlib.sha256(CONTENT).hexdigest(),
    }
    request |= {"signature": signature, "keyring": keyring}
    program = SCRIPT.read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert bool(done.returncode) == bool(done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_a_download_that_was_interrupted_twice_is_resumed(
    mirror: c.Callable[..., Mirror], tmp_path: pathlib.Path
) -> None:
    server, path = mirror(500_000, 700_000), tmp_path / "rootfs"
    for received in (500_000, 1_200_000):
        assert "was interrupted after" in fetch(server, path)
        assert not path.exists()
        assert (tmp_path / "rootfs.part").stat().st_size == received
    assert fetch(server, path) == ""
    assert path.read_bytes() == CONTENT
    assert server.requested == ["", "bytes=500000-", "bytes=1200000-"]
    assert (sorted(one.name for one in tmp_path.iterdir()), oct(path.stat().st_mode)[-3:]) == (["rootfs"], "644")


def test_a_complete_download_that_was_not_moved_is_not_fetched_again(
    mirror: c.Callable[..., Mirror], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "rootfs.part").write_bytes(CONTENT)
    assert fetch(mirror(), tmp_path / "rootfs") == ""
    assert (tmp_path / "rootfs").read_bytes() == CONTENT


def test_a_mirror_without_ranges_sends_the_whole_file(mirror: c.Callable[..., Mirror], tmp_path: pathlib.Path) -> None:
    (tmp_path / "rootfs.part").write_bytes(CONTENT[:1000])
    assert fetch(mirror(ranges=False), tmp_path / "rootfs") == ""
    assert (tmp_path / "rootfs").read_bytes() == CONTENT


def test_a_file_with_another_checksum_is_removed_and_replaces_nothing(
    mirror: c.Callable[..., Mirror], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "rootfs"
    path.write_bytes(b"before")
    assert fetch(mirror(), path, "0" * 64) == f"the file has sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    assert (path.read_bytes(), sorted(one.name for one in tmp_path.iterdir())) == (b"before", ["rootfs"])
    # A partial download of another file is deleted as well.
    (tmp_path / "rootfs.part").write_bytes(b"other" * 1000)
    server = mirror()
    assert "the file has" in fetch(server, path)
    assert fetch(server, path) == ""
    assert path.read_bytes() == CONTENT


def test_an_unreachable_mirror_is_reported(tmp_path: pathlib.Path) -> None:
    server = Mirror([])
    server.server_close()
    assert "refused" in fetch(server, tmp_path / "rootfs")


@pytest.fixture
def signer() -> c.Iterator[Signer]:
    if not shutil.which("gpgv"):
        pytest.skip("signatures are checked by gpgv")
    # The path of a GPG socket must be short.
    with tempfile.TemporaryDirectory(prefix="hw-") as folder, Signer.made(pathlib.Path(folder) / "gpg") as signer:
        yield signer


def test_a_file_needs_a_signature_of_a_trusted_key(
    mirror: c.Callable[..., Mirror], tmp_path: pathlib.Path, signer: Signer
) -> None:
    content = tmp_path / "content"
    content.write_bytes(CONTENT)
    keyring, signature = str(signer.keyring(tmp_path / "keyring")), str(signer.detached(content))
    path = tmp_path / "served" / "rootfs"
    path.parent.mkdir()
    assert fetch(mirror(), path, "", signature, keyring) == ""
    assert path.read_bytes() == CONTENT
    path.unlink()
    content.write_bytes(CONTENT[1:])
    (tmp_path / "content.sig").unlink()
    for invalid in (str(signer.detached(content)), str(tmp_path / "missing")):
        assert fetch(mirror(), path, "", invalid, keyring).startswith("its signature is not by a trusted key: ")
        assert list(path.parent.iterdir()) == []
    with tempfile.TemporaryDirectory(prefix="hw-") as folder, Signer.made(pathlib.Path(folder) / "gpg") as other_signer:
        content.write_bytes(CONTENT)
        (tmp_path / "content.sig").unlink()
        assert "No public key" in fetch(mirror(), path, "", str(other_signer.detached(content)), keyring)
    assert list(path.parent.iterdir()) == []


def test_a_file_that_was_transferred_in_another_way_is_verified_as_well(tmp_path: pathlib.Path) -> None:
    (tmp_path / "kernel.part").write_bytes(CONTENT)
    assert fetch(None, tmp_path / "kernel") == ""
    assert (tmp_path / "kernel").read_bytes() == CONTENT
    (tmp_path / "kernel.part").write_bytes(b"other")
    assert fetch(None, tmp_path / "kernel").startswith("the file has")
    assert (tmp_path / "kernel").read_bytes() == CONTENT
