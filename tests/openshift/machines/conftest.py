# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on machines that become OpenShift, in namespaces of their own.

rig     machines and hosts on one bridge
system  what machines boot
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import pathlib

import pytest

from ansible_collections.hwaccel.gpu.tests.boot.rig.boot_rig import BootRig
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say
from ansible_collections.hwaccel.gpu.tests.openshift.rig.coreos import CoreOS


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


@pytest.fixture(scope="session")
def rig() -> c.Iterator[BootRig]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    with contextlib.closing(BootRig(say)) as rig:
        yield rig


@pytest.fixture(scope="session")
def system(rig: BootRig, program: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> CoreOS:
    return CoreOS.of(rig, tmp_path_factory.mktemp("coreos") / "system", program)
