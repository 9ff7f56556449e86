# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tarball that make dist builds has the repository that Galaxy asks for, and lies where demo-down does not remove it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tarfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]


def dist(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tests" / "tools" / "dist.py"), str(folder), *arguments]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)


def repository(folder: pathlib.Path) -> str | None:
    (built,) = folder.glob("hwaccel-gpu-*.tar.gz")
    with tarfile.open(built) as archive:
        manifest = archive.extractfile("MANIFEST.json")
        assert manifest is not None
        found: str | None = json.load(manifest)["collection_info"]["repository"]
        return found


def test_the_repository_is_in_the_tarball_and_a_missing_one_is_reported(tmp_path: pathlib.Path) -> None:
    done = dist(tmp_path)
    assert (done.returncode, repository(tmp_path)) in ((0, ""), (0, None)), done.stderr
    assert "Galaxy refuses it without a repository. Next, to publish it: make dist REPOSITORY=" in done.stdout
    # The second one replaces it.
    done = dist(tmp_path, "--repository", "https://example.com/hwaccel/gpu")
    assert (done.returncode, repository(tmp_path)) == (0, "https://example.com/hwaccel/gpu"), done.stderr
    assert "Galaxy refuses" not in done.stdout


@pytest.mark.parametrize("wrong", ["example.com/gpu", "https://", "git@example.com:gpu", "https://a b"])
def test_what_is_no_address_is_refused(tmp_path: pathlib.Path, wrong: str) -> None:
    done = dist(tmp_path / "dist", "--repository", wrong)
    assert (done.returncode, (tmp_path / "dist").exists()) == (2, False)
    assert "is not the address of a repository. Next: set REPOSITORY=https://HOST/PATH" in done.stderr


def test_the_tarball_is_kept_outside_of_what_demo_down_removes() -> None:
    recipes = (TOP / "Makefile").read_text(encoding="utf-8")
    assert 'tests/tools/dist.py "$(CURDIR)/dist"' in recipes
    assert "/dist/" in (TOP / ".gitignore").read_text(encoding="utf-8").split()
