# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ignition files on the host, one or several, readable or not."""

from __future__ import annotations

import datetime
import os
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.errors import HwaccelError
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import ignition_files
from ansible_collections.hwaccel.gpu.tests.unit.openshift import installation as i

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    installation = i.Installation()
    (tmp_path / "bootstrap.ign").write_bytes(i.written(installation.bootstrap()))
    (tmp_path / "worker.ign").write_bytes(i.written(installation.pointer("worker")))
    (tmp_path / "broken.ign").write_text("{", encoding="ascii")
    return tmp_path


def test_files_are_returned_in_their_order_and_once(folder: pathlib.Path) -> None:
    paths = [str(folder / name) for name in ("worker.ign", "bootstrap.ign", "worker.ign")]
    outcome = ignition_files.run(paths, i.NOW + HOUR)
    assert (outcome.changed, outcome.failure) == (False, None)
    worker, bootstrap = outcome.values["files"]
    assert [worker["path"], bootstrap["path"]] == paths[:2]
    assert (worker["clock"], worker["valid"], worker["problems"], worker["private_keys"]) == (None, True, [], [])
    assert bootstrap["clock"] | {"first": None} == {
        "not_before": "2026-11-30T06:00:00Z",
        "not_after": "2026-12-01T06:00:00Z",
        "seconds_left": 23 * 3600,
        "expired": False,
        "first": None,
        "certificates": 48,
    }
    assert bootstrap["clock"]["first"]["subject"] == "CN=kubelet-signer"
    assert bootstrap["certificates"][0]["not_after"] == "2026-12-01T06:00:00Z"


@pytest.mark.parametrize(("hours", "left", "expired"), [(24, 0, True), (25, -3600, True), (23, 3600, False)])
def test_a_file_has_expired_from_its_end_on(folder: pathlib.Path, hours: int, left: int, expired: bool) -> None:
    (found,) = ignition_files.run([str(folder / "bootstrap.ign")], i.NOW + hours * HOUR).values["files"]
    assert (found["clock"]["seconds_left"], found["clock"]["expired"]) == (left, expired)


def test_a_copy_has_the_clock_of_the_original(folder: pathlib.Path) -> None:
    copy = folder / "copy.ign"
    copy.write_bytes((folder / "bootstrap.ign").read_bytes())
    os.utime(copy, (0, 0))
    original, copied = ignition_files.run([str(folder / "bootstrap.ign"), str(copy)], i.NOW).values["files"]
    assert original | {"path": ""} == copied | {"path": ""}


def test_what_cannot_be_read_fails_and_the_others_are_returned(folder: pathlib.Path) -> None:
    os.mkfifo(folder / "pipe")
    names = ["worker.ign", "broken.ign", "missing.ign", "pipe", "."]
    outcome = ignition_files.run([str(folder / name) for name in names], i.NOW)
    assert [one["path"] for one in outcome.values["files"]] == [str(folder / "worker.ign")]
    assert outcome.failure is not None
    assert [(fault.where, fault.why.partition(":")[0]) for fault in outcome.failure.faults] == [
        (str(folder / "broken.ign"), "it is not valid JSON"),
        (str(folder / "missing.ign"), "No such file or directory"),
        (str(folder / "pipe"), "it is not a regular file"),
        (str(folder), "Is a directory"),
    ]
    assert all(fault.next_step for fault in outcome.failure.faults)


def test_what_ignition_would_refuse_is_a_problem_and_no_failure(folder: pathlib.Path) -> None:
    config = i.Installation().pointer("worker") | {"systemd": {"units": [{"name": "a"}]}}
    (folder / "worker.ign").write_bytes(i.written(config))
    outcome = ignition_files.run([str(folder / "worker.ign")], i.NOW)
    (found,) = outcome.values["files"]
    assert (outcome.failure, found["valid"]) == (None, False)
    assert [f"{folder}/worker.ign: systemd.units[0].name" in problem for problem in found["problems"]] == [True]


@pytest.mark.parametrize(
    ("paths", "why"),
    [(["/a\0b"], "it is not a path"), ([""], "a path is empty"), ([" "], "a path is empty"), ([], "it is empty")],
)
def test_a_path_that_is_none_is_an_error(paths: list[str], why: str) -> None:
    try:
        failure = ignition_files.run(paths, i.NOW).failure
    except HwaccelError as error:
        failure = error
    assert failure is not None
    assert [(fault.why, bool(fault.next_step)) for fault in failure.faults] == [(why, True)]
