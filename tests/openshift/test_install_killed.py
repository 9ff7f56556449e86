# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""openshift_install, killed at each change of the folder and its record: nothing is lost, and the next run ends with files that can be used."""

from __future__ import annotations

import collections.abc as c
import datetime
import os
import pathlib
import shutil
import typing as t

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._model.hashing import file_digest
from ansible_collections.hwaccel.gpu.plugins.module_utils._openshift import places
from ansible_collections.hwaccel.gpu.plugins.module_utils._operations import openshift_install
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.test_install import Installation

#: What changes something beside the folder in which the tool works, with what has it.
CHANGES: tuple[tuple[t.Any, str], ...] = (
    *((pathlib.Path, name) for name in ("rename", "replace", "rmdir")),
    (os, "rename"),
)
#: More than any run makes.
MOST = 30


class Killed(BaseException):
    """As SIGKILL: nothing that follows is done."""


def killed(installation: Installation, number: int, regenerate: bool) -> list[str]:
    """A run that is killed before the change of this number. Returns the changes that it made."""
    options, made = installation.options(regenerate=regenerate), []

    def counted(name: str, change: c.Callable[..., t.Any]) -> c.Callable[..., t.Any]:
        def call(*arguments: t.Any, **more: t.Any) -> t.Any:
            if len(made) == number:
                # A process that is gone clears nothing.
                patch.setattr(places, "clear", lambda _path: None)
                raise Killed
            made.append(name)
            return change(*arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in CHANGES:
            patch.setattr(owner, name, counted(name, getattr(owner, name)))
        with pytest.raises(Killed):
            openshift_install.run(options, datetime.datetime.now(datetime.UTC), False)
            raise Killed
    return made


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory, keys: str) -> Installation:
    made = Installation(tmp_path_factory.mktemp("previous"), keys)
    made.run()
    return made


def complete(place: pathlib.Path) -> dict[str, dict[str, str]]:
    """Digests of files, by the folders that have all of an installation."""
    found = {path.parent for path in place.rglob("metadata.json") if "staging" not in path.parent.name}
    return {path.name: {name: file_digest(path / name) for name in support.names(path)} for path in found}


@pytest.mark.parametrize("regenerate", [False, True])
def test_killed_at_each_change(tmp_path: pathlib.Path, previous: Installation, regenerate: bool) -> None:
    for number in range(MOST):
        installation = Installation(tmp_path / str(number), previous.keys)
        shutil.copytree(previous.place, installation.place) if regenerate else installation.place.mkdir()
        before = complete(installation.place)
        made = killed(installation, number, regenerate)
        after = complete(installation.place)
        # The previous folder is in its place, or beside it. A new one is whole.
        assert all(files in after.values() for files in before.values()), made
        assert all(len(files) >= len(next(iter(complete(previous.place).values()))) for files in after.values()), made
        again = installation.run()
        assert again.failure is None and again.values["row"] in (1, 2), (made, again.failure)
        assert installation.run(check_mode=True).values["row"] == 2
        assert not [path for path in installation.place.iterdir() if "staging" in path.name]
        if len(made) < number:
            break
    assert (3 < number < MOST, made[-1]) == (True, "rename"), made
