# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of an installation that is not needed any more, as the stand-in of the install tool has written it."""

from __future__ import annotations

import json
import os
import pathlib
import re

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import places
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.openshift_archive import run
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.test_install import Installation


@pytest.fixture
def ours(tmp_path: pathlib.Path, keys: str) -> Installation:
    made = Installation(tmp_path, keys)
    made.run()
    return made


def test_it_is_moved_once_with_all_its_keys(ours: Installation) -> None:
    infrastructure = json.loads((ours.path / "metadata.json").read_text(encoding="utf-8"))["infraID"]
    before, names = ours.digests(), ours.names()
    checked = run(ours.path, infrastructure, check_mode=True)
    assert checked.changed and checked.values["backup"] == "" and ours.names() == names
    moved = run(ours.path, infrastructure)
    backup = pathlib.Path(moved.values["backup"])
    assert moved.changed and re.fullmatch(r"dgxpod\.bak-\d{8}T\d{6}Z", backup.name) and not ours.path.exists()
    assert {name: places.file_digest(backup / name) for name in support.names(backup)} == before
    assert places.record_of(backup) is not None and places.record_of(ours.path) is None
    assert backup.stat().st_mode & 0o777 == 0o700
    assert all(os.stat(backup / name).st_mode & 0o077 == 0 for name in before)
    again = run(ours.path, infrastructure)
    assert not again.changed and not again.values["present"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_folder_of_another_cluster_than_the_one_that_answers_is_kept(ours: Installation, check_mode: bool) -> None:
    before = ours.digests()
    with pytest.raises(HwaccelError, match="its infrastructureName is other-a1b2c, and infraID of the folder is"):
        run(ours.path, "other-a1b2c", check_mode=check_mode)
    assert ours.digests() == before


def test_the_infrastructure_is_known_by_the_record_alone(ours: Installation) -> None:
    (ours.path / "metadata.json").unlink()
    with pytest.raises(HwaccelError, match="another cluster answers"):
        run(ours.path, "other-a1b2c")
    assert ours.path.exists()


def test_what_no_installer_has_written_is_never_moved(tmp_path: pathlib.Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("text", encoding="utf-8")
    with pytest.raises(HwaccelError, match=r"the folder is not that of an installation .* it has thesis\.tex"):
        run(tmp_path / "home", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_where_nothing_is_nothing_is_made(tmp_path: pathlib.Path) -> None:
    assert not run(tmp_path / "above" / "dgxpod", "").changed
    assert not list(tmp_path.iterdir())


def test_while_another_run_works_on_it_it_is_in_use(ours: Installation) -> None:
    with places.locked(ours.path), pytest.raises(HwaccelError, match="the folder is in use"):
        run(ours.path, "")
    assert ours.path.exists()
