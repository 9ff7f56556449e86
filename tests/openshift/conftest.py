# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on OpenShift.

keys  a folder of private keys, with which the stand-in needs a tenth of the time: no test that compares keys may have it
made  an installation that the stand-in made with keys of its own; tests read it only
disk  its bootstrap machine's disk; tests read it only
program  the stand-in for kubelet
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.network import ip
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.openshift import support
from ansible_collections.hwaccel.gpu.tests.openshift.rig.disk import Disk, unpack
from ansible_collections.hwaccel.gpu.tests.openshift.rig.node_program import ensure_machine

#: Whether they run in namespaces of their own, as by make test-openshift.
ISOLATED = "HWACCEL_ISOLATED" in os.environ


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()
    if ISOLATED:
        ip("link", "set", "lo", "up")


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("keys"))


@dataclasses.dataclass(frozen=True)
class Made:
    """begin, end: around the run."""

    folder: pathlib.Path
    run: support.Run
    begin: datetime.datetime
    end: datetime.datetime


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = support.configure(tmp_path_factory.mktemp("made"))
    umask = os.umask(0o022)
    begin = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    try:
        run = support.run(folder, *support.IGNITION)
    finally:
        os.umask(umask)
    assert run.status == 0, run.err
    return Made(folder, run, begin, datetime.datetime.now(datetime.UTC))


@pytest.fixture(scope="session")
def disk(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return unpack(made.folder / "bootstrap.ign", tmp_path_factory.mktemp("disk"))


@pytest.fixture(scope="session")
def program() -> pathlib.Path:
    try:
        return ensure_machine(say)
    except Unavailable as missing:
        pytest.skip(str(missing))
