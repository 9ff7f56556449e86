# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signed repository of Debian packages that requires a username and a password, like the mirror of a company."""

from __future__ import annotations

import base64
import collections.abc as c
import contextlib
import dataclasses
import functools
import hashlib
import http.server
import pathlib
import subprocess
import threading

from ansible_collections.hwaccel.gpu.tests.node.rig import network


@dataclasses.dataclass(frozen=True)
class Signer:
    """A key in its own keyring. folder: an empty folder; its path has to be short, because it contains gpg's socket."""

    folder: pathlib.Path

    @classmethod
    @contextlib.contextmanager
    def made(cls, folder: pathlib.Path) -> c.Iterator[Signer]:
        folder.mkdir(mode=0o700)
        signer = cls(folder)
        signer._gpg("--passphrase", "", "--quick-gen-key", "Tests <tests@example.com>", "ed25519", "sign")
        try:
            yield signer
        finally:
            subprocess.run(
                ["gpgconf", f"--homedir={folder}", "--kill", "all"], check=True, capture_output=True, timeout=240
            )

    @property
    def key(self) -> str:
        """The public key in ASCII armor."""
        return self._gpg("--armor", "--export")

    def keyring(self, path: pathlib.Path) -> pathlib.Path:
        """Writes the public key in the format of gpgv."""
        self._gpg("--output", str(path), "--export")
        return path

    def detached(self, path: pathlib.Path) -> pathlib.Path:
        """Writes the signature of a file to another file beside it, and returns that one."""
        self._gpg("--output", f"{path}.sig", "--detach-sign", str(path))
        return path.with_name(f"{path.name}.sig")

    def signed(self, text: str) -> str:
        return self._gpg("--clearsign", text=text)

    def _gpg(self, *arguments: str, text: str = "") -> str:
        command = ["gpg", f"--homedir={self.folder}", "--batch", "--quiet", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=text, timeout=240).stdout


def index(folder: pathlib.Path, packages: c.Iterable[pathlib.Path], signer: Signer) -> None:
    """Creates a flat repository of packages in the folder (Debian's wiki, DebianRepository/Format)."""
    entries = []
    for package in packages:
        control = subprocess.run(
            ["dpkg-deb", "--field", str(package)], check=True, capture_output=True, text=True, timeout=240
        ).stdout
        content = package.read_bytes()
        entries.append(
            f"{control}Filename: ./{package.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
    listed = "\n".join(entries).encode()
    (folder / "Packages").write_bytes(listed)
    release = (
        f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {hashlib.sha256(listed).hexdigest()} {len(listed)} Packages\n"
    )
    (folder / "InRelease").write_text(signer.signed(release), encoding="ascii")


@contextlib.contextmanager
def served(folder: pathlib.Path, username: str, password: str) -> c.Iterator[str]:
    """The URL at which machines of the rig can download the folder's files."""
    expected = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") == expected:
                return super().do_GET()
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="packages"')
            self.send_header("Content-Length", "0")
            return self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Requests are not logged, because the machine logs them."""

    with http.server.ThreadingHTTPServer(
        (network.GATEWAY, 0), functools.partial(Handler, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{network.GATEWAY}:{server.server_port}"
        finally:
            server.shutdown()
