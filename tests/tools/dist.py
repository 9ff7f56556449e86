# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make dist: builds the collection's tarball.

dist.py FOLDER [--repository URL]    from the collection in the working directory; an earlier tarball of the same version is replaced

Galaxy and Automation Hub refuse a collection without the address of its repository (galaxy-importer, schema.py), which is set here, and not in
galaxy.yml, because forks and mirrors publish under their own.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.parse

import tarball


def published(folder: pathlib.Path, repository: str) -> pathlib.Path:
    """A copy of the collection in the working directory, whose galaxy.yml has this repository."""
    copy = folder / "gpu"
    shutil.copytree(".", copy, ignore=shutil.ignore_patterns("__pycache__", ".build", ".git"))
    path = copy / "galaxy.yml"
    text, changed = re.subn(
        r'^repository: ""$', f"repository: {repository}", path.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert changed == 1, "galaxy.yml has no empty repository"
    path.write_text(text, encoding="utf-8")
    return copy


def fault(repository: str) -> str:
    """Why this cannot be the address of a repository, empty if it can."""
    parts = urllib.parse.urlsplit(repository)
    if not repository or (parts.scheme in ("http", "https") and parts.netloc and not re.search(r"\s", repository)):
        return ""
    return f"{repository!r} is not the address of a repository. Next: set REPOSITORY=https://HOST/PATH"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--repository", default="")
    given = parser.parse_args(arguments)
    if wrong := fault(given.repository):
        print(wrong, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        source = published(pathlib.Path(scratch), given.repository) if given.repository else pathlib.Path()
        built = tarball.build(f"{scratch}/built", source)
        given.folder.mkdir(parents=True, exist_ok=True)
        shutil.move(built, given.folder / built.name)
    print(f"built {given.folder / built.name}")
    if not given.repository:
        print(
            "It can be installed, but Galaxy refuses it without a repository. Next, to publish it: make dist REPOSITORY=https://HOST/PATH"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
