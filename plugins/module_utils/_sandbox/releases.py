# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The components from official release downloads, each verified by its pinned checksum before it is opened."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import shutil
import tarfile
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import Fault, HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.build import put
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import CONTROL_PLANE
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import (
    Components,
    in_cache,
    write_manifest,
)
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.layout import Busy, locked

_KINDS = {"sha256": 64, "sha512": 128}
_CHUNK = 1024 * 1024
_REPORT_SECONDS = 5.0
_TIMEOUT = 15
_OTHER_WAYS = "check that this machine can reach the server (https_proxy is used), or set a mirror in option releases, or a folder in option components"


@dataclasses.dataclass(frozen=True)
class Download:
    """One file of a release and which components are in it."""

    url: str
    kind: str
    digest: str
    #: Component -> path in the archive; "" if the download is the program itself.
    files: t.Mapping[str, str]

    @property
    def name(self) -> str:
        return urllib.parse.urlsplit(self.url).path.rpartition("/")[2]


def parse(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[Download]:
    """Downloads from pinned or user data. Raises ManyFaults with all errors."""
    faults = []
    downloads = []
    for index, entry in enumerate(entries):
        where = f"releases[{index}]"
        kind, _colon, digest = str(entry.get("checksum") or "").partition(":")
        files = entry.get("files") or {}
        if urllib.parse.urlsplit(str(entry.get("url") or "")).scheme not in ("http", "https"):
            faults.append(
                Fault(
                    f"{entry.get('url')!r} is not an http or https URL",
                    f"{where}.url",
                    next_step="set the URL of the file",
                )
            )
        if len(digest) != _KINDS.get(kind, -1) or set(digest.lower()) - set("0123456789abcdef"):
            faults.append(
                Fault("there is no valid checksum", f"{where}.checksum", next_step="write it as sha256:… or sha512:…")
            )
        faults += [
            Fault(f"{name!r} is not a component", f"{where}.files", next_step="choose from " + ", ".join(CONTROL_PLANE))
            for name in files
            if name not in CONTROL_PLANE
        ]
        downloads.append(
            Download(
                str(entry.get("url")),
                kind,
                digest.lower(),
                {str(name): str(path or "") for name, path in files.items()},
            )
        )
    missing = sorted(set(CONTROL_PLANE) - {name for download in downloads for name in download.files})
    if downloads and missing:
        faults.append(
            Fault(
                "no download contains " + ", ".join(missing),
                "releases",
                next_step="add them to files of the downloads that contain them",
            )
        )
    if faults:
        raise ManyFaults(faults)
    return downloads


def key(downloads: t.Sequence[Download]) -> str:
    text = json.dumps([[one.kind, one.digest, sorted(one.files.items())] for one in downloads])
    return hashlib.sha256(text.encode()).hexdigest()


def cached_release(cache: pathlib.Path, downloads: t.Sequence[Download]) -> Components | None:
    """The unpacked and unaltered components of these downloads."""
    return in_cache(cache / "components" / key(downloads)) if downloads else None


class Fetch:
    """Downloads, verifies and unpacks, over as many slices as needed. Partial downloads are resumed."""

    def __init__(self, downloads: t.Sequence[Download], cache: pathlib.Path) -> None:
        self._downloads, self._cache = downloads, cache
        self._work = cache / "downloading" / key(downloads)[:16]

    def run(self) -> t.Iterator[str]:
        while not cached_release(self._cache, self._downloads):
            self._work.mkdir(parents=True, exist_ok=True)
            try:
                with locked(self._work, patience=2):
                    yield from self._fetch_all()
                    self._store()
                    shutil.rmtree(self._work)
                return
            except Busy:
                yield "another run is downloading the same components, waiting for it"

    def _fetch_all(self) -> t.Iterator[str]:
        for download in self._downloads:
            path = self._work / download.name
            if not path.exists():
                yield from self._fetch(download, path.with_name(f"{download.name}.part"))
                self._check(download, path.with_name(f"{download.name}.part"))
                path.with_name(f"{download.name}.part").replace(path)

    def _fetch(self, download: Download, part: pathlib.Path) -> t.Iterator[str]:
        have = part.stat().st_size if part.exists() else 0
        request = urllib.request.Request(
            download.url, headers={"User-Agent": "hwaccel-sandbox", **({"Range": f"bytes={have}-"} if have else {})}
        )
        reported = time.monotonic()
        try:
            # A separate opener uses proxies from the environment and does not change the process-wide one.
            with urllib.request.build_opener().open(request, timeout=_TIMEOUT) as answer:
                have = have if answer.status == 206 else 0
                total = have + int(answer.headers.get("Content-Length") or 0)
                with part.open("ab" if have else "wb") as file:
                    while chunk := answer.read(_CHUNK):
                        file.write(chunk)
                        have += len(chunk)
                        late = time.monotonic() - reported > _REPORT_SECONDS
                        reported = time.monotonic() if late else reported
                        yield f"downloading {download.name}, {have >> 20} of {total >> 20} MiB" if late else ""
            if have < total:
                raise HwaccelError(
                    f"the download of {download.name} ended early",
                    download.url,
                    f"{have} of {total} bytes were received",
                    "run again to resume it",
                )
        except urllib.error.HTTPError as error:
            error.close()
            # 416 means that the file is already complete.
            if error.code != 416:
                why = f"the server returns {error.code} {error.reason}"
                raise HwaccelError(f"{download.name} cannot be downloaded", download.url, why, _OTHER_WAYS) from error
        except OSError as error:
            raise HwaccelError(
                f"{download.name} cannot be downloaded", download.url, str(error), _OTHER_WAYS
            ) from error

    def _check(self, download: Download, part: pathlib.Path) -> None:
        digest = file_digest(part, download.kind)
        if digest != download.digest:
            part.unlink()
            why = f"its {download.kind} is {digest}, the pinned one is {download.digest}"
            raise HwaccelError(
                f"{download.name} does not match its pinned checksum",
                download.url,
                why,
                "do not use it; if you chose the release, correct its checksum",
            )

    def _store(self) -> None:
        making = self._work / "store"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        for download in self._downloads:
            self._unpack(download, making)
        names = sorted(path.name for path in making.iterdir())
        for name in names:
            (making / name).chmod(0o755)
        write_manifest(making, names)
        put(making, self._cache / "components" / key(self._downloads))

    def _unpack(self, download: Download, target: pathlib.Path) -> None:
        source = self._work / download.name
        for name in (name for name, path in download.files.items() if not path):
            shutil.copyfile(source, target / name)
        members = {path: name for name, path in download.files.items() if path}
        if not members:
            return
        try:
            with tarfile.open(source) as archive:
                # Only requested members are extracted, in one pass, under names that are not from the archive, so that no path in it is used.
                for member in archive:
                    name = members.pop(member.name.removeprefix("./"), "")
                    content = archive.extractfile(member) if name and member.isfile() else None
                    if name and content:
                        with (target / name).open("wb") as file:
                            shutil.copyfileobj(content, file)
        except tarfile.TarError as error:
            next_step = "use a tar archive, or a program with an empty path in files"
            raise HwaccelError(f"{download.name} cannot be unpacked", download.url, str(error), next_step) from error
        if members:
            why = "it lacks " + ", ".join(sorted(members))
            raise HwaccelError(
                f"{download.name} is incomplete",
                download.url,
                why,
                "correct the paths in files of this download",
            )
