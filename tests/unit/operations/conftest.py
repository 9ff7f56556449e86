# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for the tests of gates."""

from __future__ import annotations

import pytest

from ansible_collections.hwaccel.gpu.plugins.module_utils._operations.node_gate import gate
from ansible_collections.hwaccel.gpu.tests.unit.clusters.times import Time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time(100000.0)
    monkeypatch.setattr(gate.time, "time", time.time)
    monkeypatch.setattr(gate.time, "monotonic", time.monotonic)
    monkeypatch.setattr(gate.time, "sleep", time.advance)
    return time
