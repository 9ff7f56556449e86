# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubernetes.core for the comparison, which is extracted from the `ansible` package of the Python package index into the cache."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import environments

PACKAGE = "ansible==12.3.0"
COLLECTION = "ansible_collections/kubernetes/core/"


def collections_folder() -> pathlib.Path:
    """A folder for ANSIBLE_COLLECTIONS_PATH that contains kubernetes.core."""
    folder = environments.cache_folder() / "bench" / PACKAGE.replace("==", "-")
    if (folder / COLLECTION).is_dir():
        return folder
    print(f"downloading {PACKAGE} (54 MB) for its copy of kubernetes.core", flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, PACKAGE], check=True
        )
        (wheel,) = pathlib.Path(scratch).glob("*.whl")
        fresh = pathlib.Path(scratch) / "fresh"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(fresh, [name for name in archive.namelist() if name.startswith(COLLECTION)])
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return folder


def version() -> str:
    manifest = collections_folder() / COLLECTION / "MANIFEST.json"
    if not manifest.exists():
        return PACKAGE
    text = manifest.read_text(encoding="utf-8")
    return f"kubernetes.core {text.split('version')[1].split(chr(34))[2]} of {PACKAGE}"
