# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads files on the controller that machines are to get: checksums, and the names of images in archives. Changes nothing.

sources.py   reads {"files": [PATH...], "archives": [PATH...], "texts": [PATH...]} from standard input, and prints a dictionary in JSON, by path:
             checksum, null for a file that cannot be read; images, of an archive; text; and why, if anything could not be read. later: whether machines may
             still be able to read what could not be read here

Archives are those of `docker save` and of OCI layouts, as containerd imports them (github.com/containerd/containerd, core/images/archive/importer.go). They are
read as streams, and nothing is extracted. Runs on the controller, with Python 3.11 or newer, and with zstd for .zst where Python has no library for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zlib

#: Names of an image in the index of an OCI layout. The second one is only a tag where Docker has written it.
NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
#: Endings by the name of the mode of tarfile, as K3s knows them (preloadFile in pkg/agent/containerd/containerd.go).
MODES = {".tar": "r:", ".tar.gz": "r|gz", ".tgz": "r|gz", ".tar.bz2": "r|bz2", ".tbz": "r|bz2"}
ZSTANDARD = (".tar.zst", ".tzst")
#: Of a list of images, which is much smaller.
LARGEST = 64 << 20


class Unread(Exception):
    """An archive that this controller cannot read, although it may be right."""


def checksum(path):
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def images(path):
    """Names of the images in an archive."""
    name = path.lower()
    if name.endswith(ZSTANDARD):
        with zstandard(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            return names(archive)
    mode = next((mode for ending, mode in MODES.items() if name.endswith(ending)), None)
    if mode is None:
        raise Unread("its format is read by machines only")
    with tarfile.open(path, mode) as archive:
        return names(archive)


@contextlib.contextmanager
def zstandard(path):
    """A stream of what is compressed in a file."""
    try:
        # Python 3.14
        from compression import zstd
    except ImportError:
        if not shutil.which("zstd"):
            raise Unread("the controller has no zstd: install it, or take the archive that ends in .tar.gz") from None
    else:
        with zstd.open(path) as stream:
            yield stream
        return
    with subprocess.Popen(
        ["zstd", "--decompress", "--stdout", "--quiet", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield process.stdout
        # A tar file may end before its stream does.
        while process.stdout.read(1 << 20):
            pass
    if process.returncode:
        raise tarfile.ReadError(f"zstd has ended with status {process.returncode}")


def names(archive):
    found = []
    for member in archive:
        if member.name.removeprefix("./") not in ("index.json", "manifest.json") or not member.isreg():
            continue
        if member.size > LARGEST:
            raise tarfile.ReadError(f"{member.name} has {member.size} bytes")
        read = json.load(archive.extractfile(member))
        if isinstance(read, list):
            found += [name for one in read for name in one.get("RepoTags") or ()]
        else:
            annotations = [one.get("annotations") or {} for one in read.get("manifests") or ()]
            found += [one[name] for one in annotations for name in NAMES if ":" in one.get(name, "")]
    return sorted(set(found))


def read(path, kinds):
    found = {"checksum": None}
    try:
        if "texts" in kinds:
            with open(path, encoding="utf-8") as file:
                found["text"] = file.read(LARGEST)
        if "files" in kinds:
            found["checksum"] = checksum(path)
        if "archives" in kinds:
            found["images"] = images(path)
    except Unread as error:
        found.update(why=str(error), later=True)
    except OSError as error:
        found["why"] = error.strerror or str(error)
    except (tarfile.TarError, EOFError, zlib.error, ValueError, AttributeError, TypeError) as error:
        found["why"] = f"{type(error).__name__}: {error}"
    return found


def main():
    wanted = json.load(sys.stdin)
    paths = dict.fromkeys(path for each in wanted.values() for path in each)
    print(json.dumps({path: read(path, [kind for kind in wanted if path in wanted[kind]]) for path in paths}))


if __name__ == "__main__":
    main()
