# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs in a folder: all exist, are executable, and match the folder's checksums."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError, ManyFaults
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.commands import CONTROL_PLANE
from ansible_collections.hwaccel.gpu.plugins.module_utils._sandbox.components import in_folder, write_manifest


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    for name in CONTROL_PLANE:
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_without_checksums_programs_are_unverified(folder: pathlib.Path) -> None:
    found = in_folder(folder, "folder")
    assert not found.verified
    assert found.programs == {name: str(folder / name) for name in CONTROL_PLANE}
    assert len(set(found.digests.values())) == 5


def test_with_checksums_programs_are_verified(folder: pathlib.Path) -> None:
    write_manifest(folder, CONTROL_PLANE)
    assert in_folder(folder, "folder").verified


def test_one_binary_can_have_all_programs(tmp_path: pathlib.Path) -> None:
    (tmp_path / "controlplane").touch(mode=0o755)
    found = in_folder(tmp_path, "folder")
    assert set(found.programs.values()) == {str(tmp_path / "controlplane")}


def test_links_to_one_binary_are_verified_by_its_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "controlplane").touch(mode=0o755)
    write_manifest(tmp_path, ["controlplane"])
    (tmp_path / "etcd").symlink_to("controlplane")
    assert in_folder(tmp_path, "folder").verified


def test_all_problems_are_reported_at_once(folder: pathlib.Path) -> None:
    write_manifest(folder, [name for name in CONTROL_PLANE if name != "kwok"])
    (folder / "etcd").write_text("altered", encoding="utf-8")
    (folder / "kube-apiserver").chmod(0o644)
    (folder / "kube-scheduler").unlink()
    with pytest.raises(ManyFaults) as caught:
        in_folder(folder, "folder")
    assert [fault.what for fault in caught.value.faults] == [
        "etcd does not match the folder's checksums",
        "kube-apiserver is not executable",
        "kube-scheduler is missing",
        "kwok does not match the folder's checksums",
    ]


def test_a_missing_folder_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(HwaccelError, match="does not exist"):
        in_folder(tmp_path / "none", "folder")
