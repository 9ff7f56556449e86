# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The setting of the kernel that concurrent runs raise, on a file."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.tools import settings
from ansible_collections.hwaccel.gpu.tests.tools.settings import at_least


@pytest.fixture
def setting(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "setting"
    path.write_text("128\n", encoding="ascii")
    return path


def test_it_is_raised_until_the_last_of_concurrent_contexts_ends(setting: pathlib.Path, tmp_path: pathlib.Path) -> None:
    record = tmp_path / "record"
    first, second = (at_least(1024, setting, record) for _each in range(2))
    first.__enter__()
    assert setting.read_text(encoding="ascii") == "1024\n"
    second.__enter__()
    first.__exit__(None, None, None)
    assert setting.read_text(encoding="ascii") == "1024\n"
    second.__exit__(None, None, None)
    assert setting.read_text(encoding="ascii") == "128\n"
    assert record.read_text(encoding="ascii") == ""


def test_the_value_before_a_killed_run_is_put_back(setting: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "record").write_text("128\n", encoding="ascii")
    setting.write_text("1024\n", encoding="ascii")
    with at_least(1024, setting, tmp_path / "record"):
        pass
    assert setting.read_text(encoding="ascii") == "128\n"


def test_a_value_that_is_high_enough_is_not_changed(setting: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with at_least(64, setting, tmp_path / "record"):
        assert setting.read_text(encoding="ascii") == "128\n"
    assert setting.read_text(encoding="ascii") == "128\n"


@pytest.mark.parametrize("initial", ["128\n", "8192\n"])
def test_jobs_and_rigs_share_the_limit_of_inotify_instances(
    monkeypatch: pytest.MonkeyPatch, setting: pathlib.Path, tmp_path: pathlib.Path, initial: str
) -> None:
    """A run of all jobs that ended earlier took it from the machines of a rig, which then had another setting than they were made with."""
    setting.write_text(initial)
    monkeypatch.setattr(settings, "INSTANCES", setting)
    with settings.enough_instances(tmp_path):
        with pytest.raises(KeyboardInterrupt), settings.enough_instances(tmp_path):
            raise KeyboardInterrupt
        assert int(setting.read_text()) >= settings.ENOUGH
    assert setting.read_text() == initial
