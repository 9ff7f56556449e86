# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on clusters that kubeadm makes, in namespaces of their own.

rig  machines: rig.machine("cp1")
"""

from __future__ import annotations

import collections.abc as c
import contextlib

import pytest

from ansible_collections.hwaccel.gpu.tests.cluster.rig.cluster_rig import ClusterRig
from ansible_collections.hwaccel.gpu.tests.live.support.ending import interrupted_by_sigterm
from ansible_collections.hwaccel.gpu.tests.node.rig.components import Unavailable
from ansible_collections.hwaccel.gpu.tests.node.rig.machines import unmet_precondition
from ansible_collections.hwaccel.gpu.tests.node.rig.prepare import say


def pytest_sessionstart() -> None:
    interrupted_by_sigterm()


@pytest.fixture(scope="session")
def rig() -> c.Iterator[ClusterRig]:
    if reason := unmet_precondition():
        pytest.skip(reason)
    try:
        rig = ClusterRig(say)
    except Unavailable as missing:
        pytest.skip(str(missing))
    with contextlib.closing(rig):
        yield rig
