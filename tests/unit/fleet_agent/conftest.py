# Copyright (c) 2026 hwaccel.gpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fixture for tests of the fleet agent, and the import path of its package."""

from __future__ import annotations

import pathlib
import sys
import typing as t

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "roles" / "sandbox" / "files"))

from ansible_collections.hwaccel.gpu.tests.unit.fleet_agent.world import World


@pytest.fixture
def world() -> t.Iterator[World]:
    created = World(0.002)
    yield created
    created.pool.shutdown(wait=True, cancel_futures=True)
