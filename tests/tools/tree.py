# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies the checkout to .build/ansible_collections/hwaccel/gpu, the path that Ansible and ansible-test require for a collection.

Only changed files are copied, and deleted ones are removed, so it takes a tenth of a second without changes. It does not use git, so that
a source archive works like a clone. Paths in .gitignore are skipped (its patterns are plain names and globs).
"""

from __future__ import annotations

import fnmatch
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / ".build" / "ansible_collections" / "hwaccel" / "gpu"


def patterns() -> list[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    return ["/.git", *(line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#"))]


def ignored(relative: str, ignore: list[str]) -> bool:
    """As in git, a pattern with a slash before its end is relative to the top, any other matches a name in any folder."""
    name = os.path.basename(relative)
    return any(
        fnmatch.fnmatch(relative, pattern.lstrip("/")) if "/" in pattern else fnmatch.fnmatch(name, pattern)
        for pattern in ignore
    )


def listing(top: pathlib.Path, ignore: list[str]) -> dict[str, os.stat_result]:
    """Files and symbolic links below top that are not ignored, by relative path."""
    files_by_path: dict[str, os.stat_result] = {}
    for folder, folders, files in os.walk(top):
        base = os.path.relpath(folder, top)
        prefix = "" if base == "." else f"{base}/"
        folders[:] = [name for name in folders if not ignored(prefix + name, ignore)]
        for name in files:
            if not ignored(prefix + name, ignore):
                files_by_path[prefix + name] = os.lstat(os.path.join(folder, name))
    return files_by_path


def same(one: os.stat_result, other: os.stat_result | None) -> bool:
    return other is not None and (one.st_size, one.st_mtime_ns, one.st_mode) == (
        other.st_size,
        other.st_mtime_ns,
        other.st_mode,
    )


def synchronise() -> tuple[int, int]:
    ignore = patterns()
    TARGET.mkdir(parents=True, exist_ok=True)
    expected, present = listing(ROOT, ignore), listing(TARGET, ignore)
    copied = [name for name, stat in expected.items() if not same(stat, present.get(name))]
    for name in copied:
        destination = TARGET / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.unlink(missing_ok=True)
        shutil.copy2(ROOT / name, destination, follow_symlinks=False)
    removed = sorted(set(present) - set(expected), reverse=True)
    for name in removed:
        (TARGET / name).unlink()
        remove_empty((TARGET / name).parent)
    return len(copied), len(removed)


def remove_empty(folder: pathlib.Path) -> None:
    while folder != TARGET and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def main() -> int:
    copied, removed = synchronise()
    if copied or removed:
        print(f"tree: {copied} files copied, {removed} removed in .build/ansible_collections/hwaccel/gpu", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
