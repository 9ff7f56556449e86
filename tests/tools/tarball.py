# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the collection's tarball, installs it into an empty folder, and verifies the installed collection."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

LIMIT = 20 * 1024 * 1024
UNWANTED = (".build", ".git/", "__pycache__", ".pyc", "tests/output", ".ci/")


def only(collections: str) -> dict[str, str]:
    """The environment in which Ansible uses only collections in this folder, without those on the path of Python modules."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "ANSIBLE_COLLECTIONS_PATH": collections
    }


def ansible(*command: str, collections: str | None = None) -> str:
    environment = only(collections) if collections else None
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def build(folder: str, collection: str | os.PathLike[str] = ".") -> pathlib.Path:
    """Builds the tarball of a collection, by default of that in the working directory."""
    ansible("ansible-galaxy", "collection", "build", "--output-path", folder, str(collection))
    (tarball,) = pathlib.Path(folder).glob("*.tar.gz")
    return tarball


def install(tarball: pathlib.Path) -> str:
    """Installs the tarball into a new folder of collections beside it, and returns that folder."""
    folder = str(tarball.with_name("installed"))
    # With access to the checkout, ansible-galaxy would regard the collection as installed.
    ansible("ansible-galaxy", "collection", "install", str(tarball), "--offline", "-p", folder, collections=folder)
    return folder


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        tarball = build(scratch)
        with tarfile.open(tarball) as archive:
            names = archive.getnames()
        unwanted = [name for name in names if any(part in name for part in UNWANTED)]
        assert not unwanted, f"in the tarball, but not meant for it: {unwanted}; see build_ignore in galaxy.yml"
        assert tarball.stat().st_size < LIMIT, f"{tarball.name} has {tarball.stat().st_size} bytes, more than {LIMIT}"
        installed = install(tarball)
        listed = ansible("ansible-doc", "--list", "hwaccel.gpu", collections=installed)
        modules = [line.split()[0] for line in listed.splitlines() if line.startswith("hwaccel.gpu.")]
        expected = sorted(
            f"hwaccel.gpu.{path.stem}"
            for path in pathlib.Path("plugins/modules").glob("*.py")
            if path.stem != "__init__"
        )
        assert sorted(modules) == expected, f"ansible-doc lists {modules} of the installed tarball, not {expected}"
        for playbook in sorted(pathlib.Path("playbooks").glob("*.yml")):
            name = f"hwaccel.gpu.{playbook.stem}"
            ansible("ansible-playbook", "--syntax-check", "-i", "localhost,", name, collections=installed)
            print(f"{name}: syntax is fine")
        print(f"{tarball.name}: {len(names)} files, {tarball.stat().st_size // 1024} KiB, modules {', '.join(modules)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
