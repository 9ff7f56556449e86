# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on clusters that machines become, in namespaces of their own.

rig      machines of a module's own: rig.machine("cp1")
k3s_rig  the same for the stand-in for K3s, which they have in two versions
"""

from __future__ import annotations

import collections.abc as c
import contextlib

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s import K3sRig
from ansible_collections.hwaccel.gpu.tests.cluster.rig.k3s_binaries import NEXT
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


@pytest.fixture(scope="module")
def rig() -> c.Iterator[ClusterRig]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    try:
        rig = ClusterRig(say)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        yield rig


@pytest.fixture(scope="module")
def k3s_rig() -> c.Iterator[K3sRig]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    try:
        rig = K3sRig(say, NEXT)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        yield rig
