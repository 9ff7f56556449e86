# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever has binaries of K3s runs the tests of clusters with them, in the versions that they print."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import images, real


def binary(folder: pathlib.Path, name: str, printed: str) -> pathlib.Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{printed}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_real_binaries_have_the_versions_that_they_print(tmp_path: pathlib.Path) -> None:
    first = binary(tmp_path, "one", "k3s version v1.36.1+k3s1 (36645e73)")
    later = binary(tmp_path, "two", "k3s version v1.36.2+k3s1 (4c5d6e7f)")
    given = {"HWACCEL_K3S": str(first), "HWACCEL_K3S_NEXT": str(later), "HWACCEL_K3S_IMAGES": str(tmp_path)}
    assert list(real(given).items()) == [("v1.36.1+k3s1", first), ("v1.36.2+k3s1", later)]
    assert images("v1.36.1+k3s1", given) == tmp_path / "v1.36.1+k3s1"
    assert real({}) == {}


def test_a_part_of_them_or_another_program_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="HWACCEL_K3S_NEXT"):
        real({"HWACCEL_K3S": "/usr/local/bin/k3s"})
    other = str(binary(tmp_path, "other", "Kubernetes v1.36.1"))
    with pytest.raises(ValueError, match="is no K3s"):
        real({"HWACCEL_K3S": other, "HWACCEL_K3S_NEXT": other, "HWACCEL_K3S_IMAGES": "/"})
